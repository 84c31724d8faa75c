//! What the doors besides push cost: news of readers who are woken at once, follows of one author, posts that are
//! pulled.
//!
//! ```text
//!   cargo bench -p feedgate-postgres --bench doors --profile dev
//! ```

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::sync::Arc;

use feedgate_common::archive::{Content, Names, Publish, Write, Writes};
use feedgate_common::change::Class;
use feedgate_common::{Body, InboxKey, UserId, UserNo, Watermarks};
use feedgate_engines::Postgres;
use feedgate_postgres::{Options, PostgresArchive};
use tokio::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const NOW: i64 = 1_800_000_000_000;

const READERS: usize = 1000;

/// Authors that each reader follows, and how many of them have news.
const FOLLOWED: usize = 100;
const HOT: usize = 3;

#[tokio::main]
async fn main() -> Outcome<()> {
    let server = Postgres::start();
    let url = server.database("doors");
    let nodes = [open(&url).await?, open(&url).await?];
    let readers = fill(&nodes[0]).await?;
    println!("| what | tasks | calls/s |");
    println!("|---|---|---|");
    for tasks in [1, 16, 256] {
        let calls = if tasks == 1 { 500 } else { 10_000 };
        let rate = run(&nodes[..1], tasks, calls, |node, n| news(node, readers[n % READERS])).await?;
        println!("| news | {tasks} | {rate:.0} |");
    }
    for (nodes, what) in [(&nodes[..1], "one node"), (&nodes[..], "two nodes")] {
        for tasks in [2, 64] {
            let one = |node, n| write(node, follow(&format!("f{}-{tasks}-{n}", what.len()), "star"));
            let rate = run(nodes, tasks, 1000, one).await?;
            println!("| follows of one author, {what} | {tasks} | {rate:.0} |");
            let rate = run(nodes, tasks, 1000, |node, n| write(node, Write::Publish(post(&format!("hot{}", n % HOT)))))
                .await?;
            println!("| posts that are pulled, {what} | {tasks} | {rate:.0} |");
            let rate =
                run(nodes, tasks, 1000, |node, n| write(node, Write::Publish(post(&format!("a{}", n % HOT))))).await?;
            println!("| posts that are pushed, {what} | {tasks} | {rate:.0} |");
        }
    }
    Ok(())
}

async fn open(url: &str) -> Outcome<Arc<PostgresArchive>> {
    Ok(Arc::new(PostgresArchive::connect(url, Options::default()).await?))
}

/// Readers who follow authors, some of whom have been pulled since.
async fn fill(node: &PostgresArchive) -> Outcome<Vec<UserNo>> {
    let names: Vec<UserId> = (0..READERS).map(|n| format!("r{n}").parse()).collect::<Result<_, _>>()?;
    for name in &names {
        let of = |n: usize| if n < HOT { format!("hot{n}") } else { format!("a{}", n - HOT) };
        node.write((0..FOLLOWED).map(|n| follow(name.as_str(), &of(n))).collect(), NOW).await?;
    }
    for n in 0..HOT {
        let author: UserId = format!("hot{n}").parse()?;
        let posts = (0..10).map(|_| Write::Publish(post(author.as_str())));
        let class = Write::Classify { author: author.clone(), class: Class::Pull };
        node.write(std::iter::once(class).chain(posts).collect(), NOW).await?;
    }
    Ok(node.intern(&names).await?)
}

fn follow(reader: &str, author: &str) -> Write {
    Write::Follow { reader: reader.parse().expect("a name"), author: author.parse().expect("a name") }
}

fn post(author: &str) -> Publish {
    Publish::new(
        author.parse().expect("a name"),
        Body::parse(format!("{{\"text\":\"{}\"}}", "x".repeat(189))).expect("JSON"),
    )
}

/// The last ten of thirty.
async fn news(node: Arc<PostgresArchive>, reader: UserNo) -> Outcome<()> {
    let news = node.news(InboxKey::main(reader), Watermarks { pull: 20, direct: 0 }, 1000).await?;
    if news.entries.len() < 10 { Err("news are missing".into()) } else { Ok(()) }
}

async fn write(node: Arc<PostgresArchive>, write: Write) -> Outcome<()> {
    node.write(vec![write], NOW).await?.remove(0).map(drop).map_err(Into::into)
}

/// How many calls a second were answered.
async fn run<F>(
    nodes: &[Arc<PostgresArchive>],
    tasks: usize,
    calls: usize,
    call: impl Fn(Arc<PostgresArchive>, usize) -> F,
) -> Outcome<f64>
where
    F: Future<Output = Outcome<()>>,
{
    let began = Instant::now();
    let task = |task: usize| {
        let call = &call;
        async move {
            for n in (task..calls).step_by(tasks) {
                call(nodes[task % nodes.len()].clone(), n).await?;
            }
            Outcome::Ok(())
        }
    };
    futures_util::future::try_join_all((0..tasks).map(task)).await?;
    Ok(calls as f64 / began.elapsed().as_secs_f64())
}
