//! The embedded job queue against the promises of its trait, and what is its own: it is bounded.

use std::sync::Arc;

use feedgate_common::jobs::{Job, Lane};
use feedgate_common::{Jobs, StoreError, UserNo};
use feedgate_embedded::EmbeddedJobs;
use futures_util::{FutureExt, StreamExt};

#[tokio::test(flavor = "multi_thread")]
async fn embedded_jobs_keep_the_promises_of_jobs() {
    feedgate_conformance::jobs::jobs(async |_| Arc::new(EmbeddedJobs::with_room(3000)) as Arc<dyn Jobs>).await;
}

#[tokio::test]
async fn i18_a_full_queue_takes_what_it_can_refuses_the_rest_and_says_when_it_has_room() {
    let jobs = EmbeddedJobs::with_room(2);
    let mut returns = jobs.returns();
    let all = [1, 2, 3].map(|n| Job::FanOut { author: UserNo(n) });
    let refused = jobs.put(&all).await;
    assert!(matches!(refused, Err(StoreError::Overloaded { .. })), "{refused:?}");
    assert_eq!(jobs.pending().await.unwrap(), 2);
    assert_eq!(returns.next().now_or_never(), None, "it is full");
    assert_eq!(jobs.take(Lane::Posts).await.unwrap().job, all[0]);
    assert_eq!(returns.next().now_or_never(), Some(Some(())), "half of it is free");
    jobs.put(&all[2..]).await.unwrap();
    assert_eq!(returns.next().now_or_never(), None, "it was said");
}
