//! What merging of jobs saves: a burst of posts of one author against one worker, over three kinds of work queue.
//!
//! ```text
//!   cargo bench -p feedgate-nats --bench merging --profile dev
//! ```
//!
//! Each post is one put, awaited. The worker works [`WORK`] per job, in which it takes in all posts so far; after
//! its ack it looks again and puts what came meanwhile. A worker of its own runs for each job in flight, as many as
//! [`IN_FLIGHT`].

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use async_nats::jetstream::{self, Context};
use feedgate_engines::Nats;
use futures_util::StreamExt;
use tokio::time::Instant;
use tokio::time::sleep;

const POSTS: u64 = 1000;
const WORK: Duration = Duration::from_millis(5);
const IN_FLIGHT: usize = 4;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What happened to one author.
#[derive(Default)]
struct Author {
    posted: AtomicU64,
    taken_in: AtomicU64,
    at_work: AtomicU64,
    turns: AtomicU64,
    /// Turns that began while another worker was at the same author.
    doubled: AtomicU64,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    println!(
        "| queue | messages stored | turns of a worker | of these beside another | put p50 / p99 | drained after |"
    );
    println!("|---|---|---|---|---|---|");
    let bounded = Config { max_messages_per_subject: 1, ..Config::default() };
    let new = Config { discard: DiscardPolicy::New, discard_new_per_subject: true, ..bounded.clone() };
    let old = Config { discard: DiscardPolicy::Old, ..bounded };
    for (name, config) in
        [("discard new per subject", new), ("discard old per subject", old), ("no merging", Config::default())]
    {
        let server = Nats::start();
        let jetstream = jetstream::new(async_nats::connect(server.url()).await?);
        let retention = RetentionPolicy::WorkQueue;
        let config = Config { name: "WORK".to_owned(), subjects: vec!["work.>".to_owned()], retention, ..config };
        run(name, &jetstream, config).await?;
    }
    Ok(())
}

async fn run(name: &str, jetstream: &Context, config: Config) -> Outcome<()> {
    let stream = jetstream.create_stream(config).await?;
    let workers = pull::Config { durable_name: Some("workers".to_owned()), ..pull::Config::default() };
    let consumer: PullConsumer = stream.create_consumer(workers).await?;
    let author = Arc::new(Author::default());
    for _ in 0..IN_FLIGHT {
        tokio::spawn(work(jetstream.clone(), consumer.clone(), author.clone()));
    }
    let began = Instant::now();
    let mut took = vec![];
    for _ in 0..POSTS {
        author.posted.fetch_add(1, Ordering::SeqCst);
        let put = Instant::now();
        put_job(jetstream).await;
        took.push(put.elapsed());
    }
    while stream.get_info().await?.state.messages > 0 || author.taken_in.load(Ordering::SeqCst) < POSTS {
        sleep(Duration::from_millis(5)).await;
    }
    let drained = began.elapsed();
    took.sort_unstable();
    let [p50, p99] = [took.len() / 2, took.len() * 99 / 100].map(|at| took[at].as_secs_f64() * 1e3);
    let stored = stream.get_info().await?.state.last_sequence;
    let [turns, doubled] = [&author.turns, &author.doubled].map(|count| count.load(Ordering::SeqCst));
    println!("| {name} | {stored} | {turns} | {doubled} | {p50:.2} / {p99:.2} ms | {:.2} s |", drained.as_secs_f64());
    Ok(())
}

/// One job of the one author; refused if an equal one is there, where the queue does so.
async fn put_job(jetstream: &Context) {
    if let Ok(answer) = jetstream.publish("work.fan-out.1", "".into()).await {
        _ = answer.await;
    }
}

async fn work(jetstream: Context, consumer: PullConsumer, author: Arc<Author>) -> Outcome<()> {
    loop {
        let mut jobs = consumer.batch().max_messages(1).expires(Duration::from_secs(5)).messages().await?;
        while let Some(job) = jobs.next().await {
            author.turns.fetch_add(1, Ordering::SeqCst);
            if author.at_work.fetch_add(1, Ordering::SeqCst) > 0 {
                author.doubled.fetch_add(1, Ordering::SeqCst);
            }
            let seen = author.posted.load(Ordering::SeqCst);
            sleep(WORK).await;
            author.taken_in.fetch_max(seen, Ordering::SeqCst);
            author.at_work.fetch_sub(1, Ordering::SeqCst);
            job?.double_ack().await?;
            if author.posted.load(Ordering::SeqCst) > seen {
                put_job(&jetstream).await;
            }
        }
    }
}
