//! The embedded home against the suite, and against more random histories than the suite has.

use std::path::Path;
use std::sync::Arc;

use feedgate_common::archive::Archive;
use feedgate_common::change::DEFAULT_PULL_ABOVE;
use feedgate_conformance::archive::oracle::{History, Step, i4_feeds_agree_with_the_naive_rule};
use feedgate_embedded::{Database, EmbeddedArchive};
use proptest::prelude::*;

async fn open(dir: &Path, pull_above: u64) -> Arc<dyn Archive> {
    let db = Database::open(dir).unwrap();
    Arc::new(EmbeddedArchive::open(db, 16).await.unwrap().with_pull_above(pull_above))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_archive_keeps_every_promise_of_the_trait() {
    let dir = tempfile::tempdir().unwrap();
    feedgate_conformance::archive::archive(async |name, pull_above| open(&dir.path().join(name), pull_above).await)
        .await;
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => any::<usize>().prop_map(|who| Step::Post(who, 0)),
        2 => (any::<usize>(), -50i64..50).prop_map(|(who, offset)| Step::Post(who, offset)),
        1 => (any::<usize>(), any::<i32>()).prop_map(|(who, offset)| Step::Post(who, offset.into())),
        1 => any::<usize>().prop_map(Step::Edit),
        3 => any::<usize>().prop_map(Step::Delete),
        3 => any::<(usize, usize)>().prop_map(|(who, whom)| Step::Follow(who, whom)),
        1 => any::<(usize, usize)>().prop_map(|(who, whom)| Step::Unfollow(who, whom)),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn i4_feeds_agree_with_the_naive_rule_for_any_history(steps in steps(), done in 0u64..=100, half: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        runtime.block_on(async {
            let history = History { steps, done, half };
            i4_feeds_agree_with_the_naive_rule(open(dir.path(), DEFAULT_PULL_ABOVE).await, &history).await;
        });
    }
}
