//! A nats-server of a test's own, and how tests wait.
#![allow(dead_code, reason = "no test file uses all of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use feedgate_common::intake::{Answer, Backend, Call, Wrong};
use feedgate_common::jobs::{Delivery, Job, Lane};
use feedgate_common::{Jobs, UserNo};
use feedgate_engines::Nats;
use feedgate_nats::{Bus, NatsJobs, Settings};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long a test waits for something: far longer than the slowest machine takes for it.
pub(crate) const SOON: Duration = Duration::from_secs(300);

pub(crate) async fn bus(server: &Nats) -> Bus {
    Bus::connect(&server.url()).await.expect("it answers")
}

pub(crate) async fn jobs(server: &Nats, settings: &Settings) -> NatsJobs {
    NatsJobs::open(bus(server).await, settings.clone()).await.expect("the queue can be set up")
}

pub(crate) fn fan_out(author: u32) -> Job {
    Job::FanOut { author: UserNo(author) }
}

pub(crate) async fn take(jobs: &NatsJobs) -> Delivery {
    take_of(jobs, Lane::Posts).await
}

pub(crate) async fn take_of(jobs: &NatsJobs, lane: Lane) -> Delivery {
    timeout(SOON, jobs.take(lane)).await.expect("a job waits").expect("take waits for the queue")
}

/// Puts until it is taken.
pub(crate) async fn put_again(jobs: &NatsJobs, job: Job) {
    eventually("the queue takes jobs again", async || jobs.put(&[job]).await.is_ok()).await;
}

/// Acknowledges until it is heard, as a worker does.
pub(crate) async fn ack_again(jobs: &NatsJobs, delivery: Delivery) {
    eventually("the ack is heard", async || jobs.ack(delivery.id).await.is_ok()).await;
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let wait = async {
        while !condition().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, wait).await.unwrap_or_else(|_| panic!("{what}, within {SOON:?}"));
}

/// A backend that comes back from no call before this is cancelled.
#[derive(Default)]
pub(crate) struct Hanging(pub(crate) CancellationToken);

#[async_trait]
impl Backend for Hanging {
    async fn carry_out(&self, _: Call) -> Answer {
        self.0.cancelled().await;
        Answer { status: 204, headers: vec![], body: vec![] }
    }

    fn refuse(&self, _: Wrong) -> Answer {
        Answer { status: 404, headers: vec![], body: vec![] }
    }

    fn overloaded(&self) -> Answer {
        Answer { status: 503, headers: vec![("retry-after".to_owned(), "1".to_owned())], body: vec![] }
    }
}

/// Where the server keeps its streams.
pub(crate) fn store(server: &Nats) -> PathBuf {
    server.directory().join("jetstream")
}

/// A copy of a directory, which must not exist yet.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a new directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let from = entry.expect("its entry").path();
        let to = to.join(from.file_name().expect("a name"));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("a copy of a file");
        }
    }
}
