//! The embedded home against the suite, and against more random histories than the suite has.

#![allow(clippy::unwrap_used, reason = "what fails says where")]

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::archive::{Answer, Archive};
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_conformance::archive;
use feedgate_conformance::archive::oracle::{History, Step, i4_feeds_agree_with_the_naive_rule};
use feedgate_conformance::archive::reactions::s1_counts_are_the_sizes_of_the_sets_after_any_schedule;
use feedgate_embedded::{Database, EmbeddedArchive};
use proptest::prelude::*;
use tempfile::TempDir;

async fn open(dir: &Path, pull_above: u64) -> Arc<dyn Archive> {
    let db = Database::open(dir).unwrap();
    Arc::new(EmbeddedArchive::open(db, 16).await.unwrap().with_pull_above(pull_above))
}

struct Stores(TempDir);

#[async_trait]
impl archive::Stores for Stores {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    async fn open(&self, name: &str, pull_above: u64) -> Arc<dyn Archive> {
        open(&self.0.path().join(name), pull_above).await
    }
}

mod the_embedded_archive_keeps_its_promises_of {
    feedgate_conformance::archive_tests!(super::Stores);
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (who, whom, feed) = (any::<usize>, any::<usize>, any::<usize>);
    let shield = prop_oneof![Just(Shield::Mute), Just(Shield::Hide), Just(Shield::Block)];
    let class =
        prop_oneof![2 => Just(Class::Auto), 1 => Just(Class::Push), 2 => Just(Class::Pull), 1 => Just(Class::Everyone)];
    let answer = prop_oneof![2 => Just(Answer::Accept), 1 => Just(Answer::Refuse), 1 => Just(Answer::LetIn)];
    let step = prop_oneof![
        6 => (who(), feed()).prop_map(|(who, feed)| Step::Post(who, feed, 0)),
        2 => (who(), feed(), -50i64..50).prop_map(|(who, feed, offset)| Step::Post(who, feed, offset)),
        1 => (who(), feed(), any::<i32>()).prop_map(|(who, feed, offset)| Step::Post(who, feed, offset.into())),
        1 => (who(), any::<usize>(), feed()).prop_map(|(who, bits, feed)| Step::Address(who, bits, feed)),
        2 => (who(), any::<usize>(), feed(), -50i64..50)
            .prop_map(|(who, bits, feed, offset)| Step::Narrow(who, bits, feed, offset)),
        1 => any::<usize>().prop_map(Step::Edit),
        2 => (any::<usize>(), -50i64..50).prop_map(|(which, offset)| Step::Move(which, offset)),
        3 => any::<usize>().prop_map(Step::Delete),
        4 => (who(), whom()).prop_map(|(who, whom)| Step::Follow(who, whom)),
        2 => (who(), whom()).prop_map(|(who, whom)| Step::FollowAll(who, whom)),
        1 => (who(), whom()).prop_map(|(who, whom)| Step::Unfollow(who, whom)),
        2 => (who(), any::<bool>()).prop_map(|(who, on)| Step::OwnPosts(who, on)),
        3 => (who(), whom(), shield, any::<bool>()).prop_map(|(who, whom, shield, up)| Step::Shield(who, whom, shield, up)),
        1 => (who(), class).prop_map(|(who, class)| Step::Classify(who, class)),
        2 => (who(), any::<bool>()).prop_map(|(who, private)| Step::Private(who, private)),
        3 => (who(), whom(), answer).prop_map(|(who, whom, answer)| Step::Answer(who, whom, answer)),
        2 => (who(), any::<usize>()).prop_map(|(who, which)| Step::Repost(who, which)),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn s1_counts_are_the_sizes_of_the_sets(
        schedule in proptest::collection::vec((0usize..3, 0usize..3, 0usize..4, any::<bool>()), 0..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        runtime.block_on(async {
            let archive = open(dir.path(), 10).await;
            s1_counts_are_the_sizes_of_the_sets_after_any_schedule(archive, &schedule).await;
        });
    }

    #[test]
    fn i4_feeds_agree_with_the_naive_rule_for_any_history(
        steps in steps(),
        pull_above in 0u64..4,
        done in 0u64..=100,
        half: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        runtime.block_on(async {
            let history = History { steps, pull_above, done, half };
            i4_feeds_agree_with_the_naive_rule(open(dir.path(), pull_above).await, &history).await;
        });
    }
}
