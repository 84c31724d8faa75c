//! The tests that every implementation ("home") of [`Jobs`] must pass: jobs are delivered at least once, and merged
//! while they wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::UserNo;
use feedgate_common::jobs::{Delivery, Job, Jobs, Lane};
use futures_util::FutureExt;
use tokio::time::timeout;

/// Runs the tests of every queue. `open(name)` opens the queue of that name, which is empty at first and has room for
/// 3000 jobs of each lane.
pub async fn jobs(open: impl AsyncFn(&str) -> Arc<dyn Jobs>) {
    what_waits_longest_is_taken_first(open("order").await).await;
    equal_jobs_that_wait_are_one(open("merge").await).await;
    a_job_equal_to_one_in_flight_gets_at_most_one_turn_more(open("own").await).await;
    what_is_put_after_an_ack_is_a_job_of_its_own(open("again").await).await;
    a_job_given_back_comes_again(open("back").await).await;
    what_waits_in_one_lane_delays_nothing_in_the_other(open("lanes").await).await;
    the_edges_of_one_reader_are_one_job(open("reader").await).await;
    what_is_put_again_after_its_ack_waits_behind_the_others(open("turns").await).await;
    a_waiting_take_hears_of_new_work(open("wait").await).await;
    a_cancelled_take_has_taken_nothing(open("cancel").await).await;
    workers_share_the_jobs_without_repeating_any(open("share").await).await;
    a_long_queue_loses_and_repeats_nothing(open("long").await).await;
}

/// Runs the tests of a queue that outlives the processes which use it, so that others go on with what one has left.
/// `open` opens it; to open it again after every handle was dropped is a restart.
pub async fn lasting_jobs(open: impl AsyncFn() -> Arc<dyn Jobs>) {
    what_was_not_acknowledged_comes_again_after_a_restart(&open).await;
}

/// Waits for a job of the lane of posts.
async fn take(jobs: &dyn Jobs) -> Delivery {
    take_of(jobs, Lane::Posts).await
}

async fn take_of(jobs: &dyn Jobs, lane: Lane) -> Delivery {
    let delivery = crate::in_time(jobs.take(lane)).await.expect("a job waits").expect("the queue works");
    assert_eq!(delivery.job.lane(), lane);
    delivery
}

/// Whether no job waits that could be taken now.
async fn is_idle(jobs: &dyn Jobs) -> bool {
    let [posts, edges] = Lane::ALL.map(|lane| timeout(Duration::from_millis(50), jobs.take(lane)));
    posts.await.is_err() && edges.await.is_err()
}

fn fan_out(n: u32) -> Job {
    Job::FanOut { author: UserNo(n) }
}

fn direct(reader: u32) -> Job {
    Job::Direct { reader: UserNo(reader) }
}

fn edge(reader: u32, author: u32) -> Job {
    Job::Edge { reader: UserNo(reader), author: UserNo(author) }
}

fn edges(reader: u32) -> Job {
    Job::Edges { reader: UserNo(reader) }
}

async fn put(jobs: &dyn Jobs, of: &[Job]) {
    jobs.put(of).await.expect("the queue works");
}

async fn ack(jobs: &dyn Jobs, delivery: Delivery) {
    jobs.ack(delivery.id).await.expect("the queue works");
}

async fn pending(jobs: &dyn Jobs) -> u64 {
    jobs.pending().await.expect("the queue works")
}

async fn what_waits_longest_is_taken_first(jobs: Arc<dyn Jobs>) {
    let all = [fan_out(9), direct(1), fan_out(3), direct(2), fan_out(1)];
    put(&*jobs, &all[..2]).await;
    put(&*jobs, &all[2..]).await;
    for wants in all {
        let got = take(&*jobs).await;
        assert_eq!(got.job, wants);
        ack(&*jobs, got).await;
    }
    assert_eq!(pending(&*jobs).await, 0);
}

async fn equal_jobs_that_wait_are_one(jobs: Arc<dyn Jobs>) {
    put(&*jobs, &[fan_out(1), direct(1), fan_out(1)]).await;
    put(&*jobs, &[direct(1), fan_out(1)]).await;
    assert_eq!(pending(&*jobs).await, 2);
    let both = [take(&*jobs).await, take(&*jobs).await];
    assert_eq!(both.map(|d| d.job), [fan_out(1), direct(1)]);
    for delivery in both {
        ack(&*jobs, delivery).await;
    }
    assert!(is_idle(&*jobs).await, "merged jobs are delivered once");
}

/// The second job is merged with the one in flight or is delivered by itself, but only once.
async fn a_job_equal_to_one_in_flight_gets_at_most_one_turn_more(jobs: Arc<dyn Jobs>) {
    put(&*jobs, &[fan_out(1)]).await;
    let first = take(&*jobs).await;
    put(&*jobs, &[fan_out(1)]).await;
    put(&*jobs, &[fan_out(1)]).await;
    ack(&*jobs, first).await;
    put(&*jobs, &[fan_out(2)]).await;
    let mut turns = vec![];
    while turns.last() != Some(&fan_out(2)) {
        let turn = take(&*jobs).await;
        turns.push(turn.job);
        ack(&*jobs, turn).await;
    }
    assert!(turns == [fan_out(2)] || turns == [fan_out(1), fan_out(2)], "one more turn, not two: {turns:?}");
    assert_eq!(pending(&*jobs).await, 0);
}

async fn what_is_put_after_an_ack_is_a_job_of_its_own(jobs: Arc<dyn Jobs>) {
    for _ in 0..20 {
        put(&*jobs, &[fan_out(1)]).await;
        let delivery = take(&*jobs).await;
        assert_eq!(delivery.job, fan_out(1));
        ack(&*jobs, delivery).await;
    }
    assert!(is_idle(&*jobs).await);
}

async fn a_job_given_back_comes_again(jobs: Arc<dyn Jobs>) {
    put(&*jobs, &[fan_out(1)]).await;
    let first = take(&*jobs).await;
    jobs.nack(first.id).await.expect("the queue works");
    assert_eq!(pending(&*jobs).await, 1);
    put(&*jobs, &[fan_out(1)]).await;
    let again = take(&*jobs).await;
    assert_eq!(again.job, fan_out(1));
    ack(&*jobs, again).await;
    jobs.ack(first.id).await.expect("an old delivery is nothing");
    assert!(is_idle(&*jobs).await);
    assert_eq!(pending(&*jobs).await, 0);
}

async fn what_waits_in_one_lane_delays_nothing_in_the_other(jobs: Arc<dyn Jobs>) {
    let edges: Vec<Job> = (1..=100).map(|n| edge(n, 9)).collect();
    put(&*jobs, &edges).await;
    put(&*jobs, &[fan_out(1), edge(101, 9), direct(2)]).await;
    for wants in [fan_out(1), direct(2)] {
        let got = take_of(&*jobs, Lane::Posts).await;
        assert_eq!(got.job, wants);
        ack(&*jobs, got).await;
    }
    put(&*jobs, &[edges[40]]).await;
    assert_eq!(pending(&*jobs).await, 101, "equal edges are one");
    for reader in 1..=101 {
        let got = take_of(&*jobs, Lane::Edges).await;
        assert_eq!(got.job, self::edges(reader));
        ack(&*jobs, got).await;
    }
    assert!(is_idle(&*jobs).await);
}

/// Edges that are put while the job waits, or while it is in flight, need at most one further delivery.
async fn the_edges_of_one_reader_are_one_job(jobs: Arc<dyn Jobs>) {
    let batch: Vec<Job> = (1..=500).map(|author| edge(7, author)).chain([edge(8, 1)]).collect();
    put(&*jobs, &batch).await;
    put(&*jobs, &[edge(7, 501), edges(7)]).await;
    assert_eq!(pending(&*jobs).await, 2);
    let first = take_of(&*jobs, Lane::Edges).await;
    assert_eq!(first.job, edges(7));
    put(&*jobs, &[edge(7, 502)]).await;
    put(&*jobs, &[edge(7, 503)]).await;
    ack(&*jobs, first).await;
    put(&*jobs, &[first.job, edge(9, 1)]).await;
    let mut turns = vec![];
    while turns.last() != Some(&edges(9)) {
        let turn = take_of(&*jobs, Lane::Edges).await;
        turns.push(turn.job);
        ack(&*jobs, turn).await;
    }
    turns.sort_unstable();
    assert_eq!(turns, [edges(7), edges(8), edges(9)]);
    assert!(is_idle(&*jobs).await);
}

/// A job that is put again after each turn does not come before the others.
async fn what_is_put_again_after_its_ack_waits_behind_the_others(jobs: Arc<dyn Jobs>) {
    put(&*jobs, &[fan_out(1), fan_out(2)]).await;
    let mut turns = vec![];
    for _ in 0..4 {
        let turn = take(&*jobs).await;
        ack(&*jobs, turn).await;
        put(&*jobs, &[turn.job]).await;
        turns.push(turn.job);
    }
    assert_eq!(turns, [fan_out(1), fan_out(2), fan_out(1), fan_out(2)]);
}

async fn a_waiting_take_hears_of_new_work(jobs: Arc<dyn Jobs>) {
    let waiting = tokio::spawn({
        let jobs = jobs.clone();
        async move { [take(&*jobs).await, take(&*jobs).await] }
    });
    tokio::task::yield_now().await;
    put(&*jobs, &[fan_out(1), fan_out(2)]).await;
    let got = waiting.await.expect("no panic").map(|d| d.job);
    assert_eq!(got, [fan_out(1), fan_out(2)]);
}

async fn a_cancelled_take_has_taken_nothing(jobs: Arc<dyn Jobs>) {
    let wants: BTreeSet<Job> = (1..=200).map(fan_out).collect();
    let mut got = BTreeSet::new();
    for job in &wants {
        // A future of `take` that waits is dropped just when work arrives.
        let mut waiting = Box::pin(jobs.take(Lane::Posts));
        let early = waiting.as_mut().now_or_never();
        put(&*jobs, &[*job]).await;
        drop(waiting);
        if let Some(delivery) = early {
            let delivery = delivery.expect("the queue works");
            assert!(got.insert(delivery.job), "a job was delivered twice");
            ack(&*jobs, delivery).await;
        }
    }
    while got.len() < wants.len() {
        let delivery = take(&*jobs).await;
        assert!(got.insert(delivery.job), "a job was delivered twice");
        ack(&*jobs, delivery).await;
    }
    assert_eq!(got, wants);
}

async fn workers_share_the_jobs_without_repeating_any(jobs: Arc<dyn Jobs>) {
    let all: Vec<Job> = (1..=300).map(fan_out).collect();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let jobs = jobs.clone();
            tokio::spawn(async move {
                let mut got = vec![];
                for _ in 0..100 {
                    let delivery = take(&*jobs).await;
                    got.push(delivery.job);
                    ack(&*jobs, delivery).await;
                }
                got
            })
        })
        .collect();
    for chunk in all.chunks(7) {
        put(&*jobs, chunk).await;
    }
    let mut got = vec![];
    for worker in workers {
        got.extend(worker.await.expect("no panic"));
    }
    got.sort_unstable();
    assert_eq!(got, all);
    assert_eq!(pending(&*jobs).await, 0);
}

async fn a_long_queue_loses_and_repeats_nothing(jobs: Arc<dyn Jobs>) {
    let all: Vec<Job> = (1..=3000).map(direct).collect();
    for chunk in all.chunks(500) {
        put(&*jobs, chunk).await;
    }
    // Equal jobs are merged wherever they stand in the queue, near its front as well as far behind.
    put(&*jobs, &[all[2], all[1700], all[2999]]).await;
    assert_eq!(pending(&*jobs).await, 3000);
    for (n, wants) in all.iter().enumerate() {
        let got = take(&*jobs).await;
        assert_eq!(got.job, *wants);
        ack(&*jobs, got).await;
        if n == 1500 {
            put(&*jobs, &[all[0], all[2000]]).await;
        }
    }
    let again = take(&*jobs).await;
    assert_eq!(again.job, all[0], "put again after it was done, behind everything that waited");
    ack(&*jobs, again).await;
    assert_eq!(pending(&*jobs).await, 0);
}

async fn what_was_not_acknowledged_comes_again_after_a_restart(open: &impl AsyncFn() -> Arc<dyn Jobs>) {
    let jobs = open().await;
    put(&*jobs, &[fan_out(1), fan_out(2), fan_out(3), fan_out(4), edge(7, 8)]).await;
    let done = take(&*jobs).await;
    ack(&*jobs, done).await;
    let _in_flight = take(&*jobs).await;
    let given_back = take(&*jobs).await;
    jobs.nack(given_back.id).await.expect("the queue works");
    // The job is acknowledged, and then put again.
    let again = take_of(&*jobs, Lane::Edges).await;
    ack(&*jobs, again).await;
    put(&*jobs, &[again.job]).await;
    drop(jobs);

    let jobs = open().await;
    let mut got = BTreeSet::new();
    for lane in [Lane::Posts, Lane::Posts, Lane::Posts, Lane::Edges] {
        let delivery = take_of(&*jobs, lane).await;
        got.insert(delivery.job);
        ack(&*jobs, delivery).await;
    }
    assert_eq!(got, BTreeSet::from([fan_out(2), fan_out(3), fan_out(4), edges(7)]));
    assert!(is_idle(&*jobs).await, "the acknowledged job is gone");
    drop(jobs);
    assert_eq!(pending(&*open().await).await, 0);
}
