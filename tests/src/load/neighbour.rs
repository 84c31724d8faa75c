//! An author who posts on schedule, and the device of the only follower.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{sleep, sleep_until, timeout};

use super::{Backend, Deliver, Server, Wire, fleet, frame};

/// The time between two posts.
const EVERY: Duration = Duration::from_millis(25);

/// A post that has not arrived by then counts as lost, and a request without an answer as refused.
const PATIENCE: Duration = Duration::from_secs(30);

/// When each post arrived, by its number.
type Arrived = Rc<RefCell<HashMap<u64, Instant>>>;

/// An author and the one device that is told of the author's posts.
pub struct Neighbour {
    author: String,
    arrived: Arrived,
    /// The number of the next post.
    next: u64,
    reading: AbortHandle,
}

/// What became of the posts.
pub struct Seen {
    /// The time from when each post was due until it was there; half a minute for one that failed.
    pub took: Vec<Duration>,
    /// Refused, or not there in time.
    pub failed: u64,
}

impl Neighbour {
    /// Connects the device of a reader who follows `author`, and subscribes it. Needs a `LocalSet`.
    pub async fn connect(server: &Server, token: &str, author: &str) -> anyhow::Result<Self> {
        let hello = Wire::Json.hello(Deliver::Items, token).context("a neighbour says hello")?;
        let mut stream = TcpStream::connect(server.address()).await?;
        stream.set_nodelay(true)?;
        let early = fleet::upgrade(&mut stream, server.address(), Wire::Json, hello).await?;
        let arrived = Arrived::default();
        let subscribed = Rc::new(tokio::sync::Notify::new());
        let reading = tokio::task::spawn_local(read(stream, early, arrived.clone(), subscribed.clone())).abort_handle();
        timeout(PATIENCE, subscribed.notified()).await.context("the neighbour could not subscribe")?;
        Ok(Self { author: author.to_owned(), arrived, next: 0, reading })
    }

    /// Posts on schedule for so long, and waits for what has been accepted.
    pub async fn posts(&mut self, backend: &Backend, during: Duration) -> anyhow::Result<Seen> {
        let count = during.as_millis() as u64 / EVERY.as_millis() as u64;
        let (first, began) = (self.next, Instant::now());
        self.next += count;
        let due = |n: u64| began + EVERY * (n - first) as u32;
        let author = &self.author;
        let accepted = join_all((first..self.next).map(|n| async move {
            sleep_until(due(n).into()).await;
            let text = n.to_string();
            matches!(timeout(PATIENCE, backend.publish_text(author, &text)).await, Ok(Ok(())))
        }))
        .await;
        let accepted: Vec<u64> = (first..self.next).zip(accepted).filter_map(|(n, yes)| yes.then_some(n)).collect();
        let last = Instant::now() + PATIENCE;
        while Instant::now() < last && !accepted.iter().all(|n| self.arrived.borrow().contains_key(n)) {
            ensure!(!self.reading.is_finished(), "the neighbour's device was cut off");
            sleep(Duration::from_millis(5)).await;
        }
        let arrived = self.arrived.borrow();
        let took = |n| arrived.get(&n).map_or(PATIENCE, |at| at.duration_since(due(n)));
        let failed = count - (first..self.next).filter(|n| arrived.contains_key(n)).count() as u64;
        Ok(Seen { took: (first..self.next).map(took).collect(), failed })
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Takes in frames until the connection ends.
async fn read(mut stream: TcpStream, early: Vec<u8>, arrived: Arrived, subscribed: Rc<tokio::sync::Notify>) {
    let mut bytes = early;
    bytes.reserve(64 * 1024);
    while matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
        let (now, mut used) = (Instant::now(), 0);
        let mut pongs = 0;
        while let Some(frame) = frame::first(&bytes[used..]) {
            used += frame.len;
            for line in frame.payload.split(|byte| *byte == b'\n') {
                match (line, number(line)) {
                    (b"{}", _) => pongs += 1,
                    (_, Some(n)) => drop(arrived.borrow_mut().insert(n, now)),
                    (reply, None) if reply.starts_with(br#"{"id":2,"#) => subscribed.notify_one(),
                    _ => {}
                }
            }
        }
        bytes.drain(..used);
        for _ in 0..pongs {
            let _ = stream.write_all(&frame::text(b"{}")).await;
        }
    }
}

/// The number that a pushed post says.
fn number(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    let (_, said) = text.split_once(r#""text":""#)?;
    said.split('"').next()?.parse().ok()
}
