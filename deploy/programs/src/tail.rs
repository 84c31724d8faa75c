//! The command `tail`: prints a line of JSON for each change of a feed, live, across any number of connections.
//!
//! ```text
//!   {"epoch":"3","offset":17,"op":"add","item":{…}}     a change, as `…/changes` shows it
//!   {"epoch":"4","offset":2,"op":"reset"}               changes are missing before this; read the feed page
//! ```
//!
//! Invariant: the position moves with what was printed, so a new connection neither repeats a line nor misses one. If
//! that is impossible, a `reset` line says so.

use std::convert::Infallible;
use std::io::{ErrorKind, Write};
use std::time::Duration;

use anyhow::{anyhow, bail};
use feedgate_common::{Position, UserId};
use hyper::Method;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli;
use crate::client::{ApiError, Client, query, strange};
use crate::device::{Device, End, Event};

/// How long to wait after the first loss of the connection; the time doubles up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How long each token is valid; when it has expired, the next connection gets a new one.
const TOKEN_TTL: Duration = Duration::from_secs(3600);

/// How often `tail` checks whether stdout still has a reader.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs until Ctrl-C, until stdout has no reader any more, or until the server refuses for good. Blocks.
pub(crate) fn run(args: cli::Tail) -> anyhow::Result<()> {
    let runtime = crate::runtime()?;
    let ended = runtime.block_on(print_until_told(args));
    // A line may be waiting for a reader of stdout that reads nothing: the end does not wait for it.
    runtime.shutdown_background();
    ended
}

async fn print_until_told(args: cli::Tail) -> anyhow::Result<()> {
    let cli::Tail { user, name, device, since, lines, server } = args;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let tail = Tail {
        client: Client::find(server)?,
        user,
        name,
        device,
        lines,
        position: since,
        pause: PAUSE_FIRST,
        met: false,
    };
    let following = tokio::spawn(tail.follow());
    tokio::select! {
        ended = following => ended?,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        () = nobody_reads() => Ok(()),
    }
}

struct Tail {
    client: Client,
    user: UserId,
    /// The name of the feed, which is also the name of the channel.
    name: String,
    device: Option<feedgate_common::DeviceId>,
    lines: u64,
    /// The position after the last line printed; `None` before the first connection.
    position: Option<Position>,
    pause: Duration,
    /// Whether the server was reached once: then a later failure is treated as one that passes.
    met: bool,
}

/// Why a connection or the whole command ends.
enum Stop {
    Lost(String),
    Final(anyhow::Error),
    Unread,
}

impl From<End> for Stop {
    fn from(end: End) -> Self {
        match end {
            End::Lost(why) => Self::Lost(why),
            End::Final(why) => Self::Final(anyhow!(why)),
        }
    }
}

/// The fields of an answer of `…/changes` that give the position and the head of the log.
#[derive(Deserialize)]
struct Changes {
    position: Position,
    head: u64,
}

impl Tail {
    async fn follow(mut self) -> anyhow::Result<()> {
        loop {
            let Err(stop) = self.connection().await;
            match stop {
                Stop::Unread => return Ok(()),
                Stop::Final(error) => return Err(error),
                Stop::Lost(why) => {
                    eprintln!("feedgate: {why}; connecting again");
                    tokio::time::sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    async fn connection(&mut self) -> Result<Infallible, Stop> {
        let begun = self.begin().await;
        let (since, token) = begun.map_err(|error| match error {
            error if self.met && error.may_pass() => Stop::Lost(error.to_string()),
            error => Stop::Final(error.into()),
        })?;
        self.met = true;
        let mut at = since;
        self.position = Some(at);
        let mut device = Device::connect(self.client.reach(), &token, &self.name, since).await?;
        loop {
            match device.next().await? {
                Event::Subscribed { recovered: true, .. } => self.pause = PAUSE_FIRST,
                Event::Subscribed { position, recovered: false } => {
                    print(position, r#"{"op":"reset"}"#)?;
                    at = position;
                }
                Event::Changed { offset, change } => {
                    at.offset = offset;
                    print(at, &change)?;
                }
            }
            self.position = Some(at);
        }
    }

    /// The position from which to go on, and a new token.
    async fn begin(&self) -> Result<(Position, String), ApiError> {
        let since = match self.position {
            Some(position) => position,
            None => {
                let path = format!("/v1/users/{}/changes?name={}&limit=1", self.user, query(&self.name));
                let answer = self.client.call(Method::GET, &path, None).await?;
                let Changes { position, head } = serde_json::from_str(&answer).map_err(|error| strange(&error))?;
                Position { offset: head.saturating_sub(self.lines), ..position }
            }
        };
        Ok((since, self.client.token(&self.user, self.device.as_ref(), TOKEN_TTL).await?))
    }
}

/// Prints a change with its position before it, and flushes, so that a pipe gets it at once.
fn print(at: Position, change: &str) -> Result<(), Stop> {
    let line = line(at, change).map_err(Stop::Final)?;
    let write = || {
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{line}").and_then(|()| stdout.flush())
    };
    // While a reader of stdout that reads nothing makes the write wait, another thread hears Ctrl-C.
    match tokio::task::block_in_place(write) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Stop::Unread),
        Err(error) => Err(Stop::Final(anyhow!(error).context("stdout cannot be written"))),
    }
}

/// Makes the line of a change. The text of the change is kept as it is: parsing would lose the order of a body's keys.
fn line(at: Position, change: &str) -> anyhow::Result<String> {
    let Some(rest) = change.trim_start().strip_prefix('{') else {
        bail!("the server sent a change that is no object: {change}");
    };
    Ok(format!(r#"{{"epoch":"{}","offset":{},{}"#, at.epoch, at.offset, rest.trim_start()))
}

/// Ends when stdout is a pipe whose other end is closed.
async fn nobody_reads() {
    let mut look = tokio::time::interval(LOOK_EVERY);
    let stdout = std::io::stdout();
    loop {
        look.tick().await;
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::NVAL) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_common::Epoch;

    #[test]
    fn a_line_is_the_change_with_its_position() {
        let at = Position { epoch: Epoch(3), offset: 7 };
        let change = r#" { "op":"add","item":{"body":{"b":1,"a":2}}}"#;
        assert_eq!(line(at, change).unwrap(), r#"{"epoch":"3","offset":7,"op":"add","item":{"body":{"b":1,"a":2}}}"#);
        assert!(line(at, "[1]").is_err());
    }
}
