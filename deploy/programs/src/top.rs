//! The command `top`: shows what a server or a whole cluster does at the moment.
//!
//! ```text
//!   GET /metrics of each process ──▶ Numbers ──▶ picture of (Numbers before, Numbers now) ──▶ stdout
//! ```
//!
//! A picture shows what has happened since the picture before. On a terminal it replaces the last picture; elsewhere
//! the pictures stand below each other, with an empty line between. A process that does not answer is named, and asked
//! again.

mod numbers;
mod picture;

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Context;
use hyper::Method;
use tokio::time::Instant;

use crate::cli;
use crate::client::Client;
use crate::stdout::print;
use numbers::Numbers;

/// Clears the screen of a terminal, and goes to its first line.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Runs until Ctrl-C, or until it has printed as many pictures as it was asked for. Fails if a process does not answer
/// at the beginning, or if it answers something else than numbers.
pub(crate) async fn run(args: cli::Top) -> anyhow::Result<()> {
    let first = Client::find(args.server)?;
    let others: Result<Vec<_>, _> = args.also.iter().map(|url| first.elsewhere(url)).collect();
    let processes: Vec<Client> = [first].into_iter().chain(others?).collect();
    let title = processes.iter().map(|process| process.reach().authority()).collect::<Vec<_>>().join(", ");
    let clear = if std::io::stdout().is_terminal() { CLEAR } else { "" };
    let mut before = (Instant::now(), all(&processes).await?);
    let mut every = tokio::time::interval(Duration::from_secs(args.every));
    every.tick().await;
    let mut left = args.count;
    while left != Some(0) {
        every.tick().await;
        match all(&processes).await {
            Ok(numbers) => {
                let now = (Instant::now(), numbers);
                let passed = now.0.duration_since(before.0);
                print(&format!("{clear}{}", picture::draw(&title, passed, &before.1, &now.1)))?;
                before = now;
                left = left.map(|left| left - 1);
            }
            Err(error) => print(&format!("{clear}{error:#}; asking again"))?,
        }
    }
    Ok(())
}

/// The numbers of all processes together. The processes are asked one after the other.
async fn all(processes: &[Client]) -> anyhow::Result<Numbers> {
    let mut all = Numbers::default();
    for process in processes {
        let page = process.call(Method::GET, "/metrics", None).await?;
        let numbers = Numbers::read(&page).with_context(|| format!("{}/metrics", process.reach().url()))?;
        all.add(numbers);
    }
    Ok(all)
}
