//! A rebuild ends whatever arrives meanwhile, in the stores of one machine.

use std::sync::Arc;

use feedgate_common::{Archive, Inboxes};
use feedgate_embedded::Embedded;
use feedgate_tests::arrivals::{a_rebuild_ends_while_all_sorts_arrive, a_rebuild_ends_while_posts_arrive};
use tokio::runtime::Builder;

fn on_one_machine(arrive: fn(&Arc<dyn Archive>, &Arc<dyn Inboxes>)) {
    let runtime = Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let _entered = runtime.enter();
    let dir = tempfile::tempdir().expect("a directory");
    let stores = Embedded::open(dir.path(), 1).expect("new stores");
    arrive(&(stores.archive.clone() as Arc<dyn Archive>), &(stores.inboxes.clone() as Arc<dyn Inboxes>));
}

#[test]
fn a_rebuild_ends_in_its_first_try_while_a_thousand_posts_are_pushed_past_it() {
    on_one_machine(a_rebuild_ends_while_posts_arrive);
}

#[test]
fn a_rebuild_ends_while_follows_and_messages_arrive_and_holds_each_once() {
    on_one_machine(a_rebuild_ends_while_all_sorts_arrive);
}
