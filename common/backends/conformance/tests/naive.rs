//! The suite of inboxes, run against the naive store that it compares all others with.

use feedgate_conformance::inboxes::{Naive, Schedule};

#[tokio::test]
async fn the_naive_store_agrees_with_itself() {
    let (one, other) = (Naive::new(4), Naive::new(4));
    let mut schedule = Schedule::new(1);
    schedule.run(&one, &other, 300).await;
    schedule.compare(&one, &other).await;
}
