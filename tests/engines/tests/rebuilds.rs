//! A rebuild ends whatever arrives meanwhile, over a real PostgreSQL and a real Redis.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::accept::Policy;
use feedgate_common::archive::Epochs;
use feedgate_common::{Archive, Inboxes};
use feedgate_engines::{Postgres, Redis};
use feedgate_postgres::{Options, PostgresArchive};
use feedgate_redis::{Link, RedisInboxes, Timeouts};
use feedgate_tests::arrivals::{a_rebuild_ends_while_all_sorts_arrive, a_rebuild_ends_while_posts_arrive};
use tokio::runtime::Builder;

/// No call fails because the machine is slow.
const PATIENT: Timeouts = Timeouts { connect: Duration::from_secs(300), call: Duration::from_secs(300) };
const BUCKETS: u16 = 1;

fn in_a_cluster(database: &str, arrive: fn(&Arc<dyn Archive>, &Arc<dyn Inboxes>)) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let _entered = runtime.enter();
    let (postgres, redis) = (Postgres::shared().database(database), Redis::start());
    let policy = Policy { pull_above: u64::MAX, ..Policy::default() };
    let options = Options { max_connections: 4, buckets: BUCKETS, policy, ..Options::default() };
    let archive = runtime.block_on(PostgresArchive::connect(&postgres, options)).expect("PostgreSQL answers");
    let archive: Arc<dyn Archive> = Arc::new(archive);
    let link = runtime.block_on(Link::connect(&redis.url(), PATIENT)).expect("Redis answers");
    let epochs: Arc<dyn Epochs> = archive.clone();
    let inboxes = runtime.block_on(RedisInboxes::open(link, epochs, BUCKETS)).expect("Redis answers");
    arrive(&archive, &(Arc::new(inboxes) as Arc<dyn Inboxes>));
}

#[test]
fn a_rebuild_ends_in_its_first_try_while_a_thousand_posts_are_pushed_past_it() {
    in_a_cluster("posts_past_a_rebuild", a_rebuild_ends_while_posts_arrive);
}

#[test]
fn a_rebuild_ends_while_follows_and_messages_arrive_and_holds_each_once() {
    in_a_cluster("all_sorts_past_a_rebuild", a_rebuild_ends_while_all_sorts_arrive);
}
