//! What one process passes to the next at a hand-over: the listeners, and when the first process stopped accepting.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::str::FromStr;

use anyhow::Context;

/// The variable that tells the next process when the previous one stopped accepting, and when the next was executed.
pub(crate) const BEGAN: &str = "LISTEN_HANDED_OVER";

/// The number of the first descriptor that is given to a process.
pub(crate) const FIRST: i32 = 3;

/// A listener that stays open over a hand-over.
#[derive(Debug)]
pub(crate) struct Held {
    /// The name of the setting that the listener is for.
    pub(crate) setting: &'static str,
    /// A descriptor of the listener.
    pub(crate) listener: OwnedFd,
}

impl Held {
    /// Holds the listener of this setting open, as long as the result is kept.
    pub(crate) fn of(setting: &'static str, listener: impl AsFd) -> std::io::Result<Self> {
        Ok(Self { setting, listener: listener.as_fd().try_clone_to_owned()? })
    }
}

/// When the gap of a hand-over began, in milliseconds of the monotonic clock of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Began {
    stopped_ms: u64,
    executed_ms: u64,
}

impl Began {
    /// Notes that from now on no connection is accepted.
    pub(crate) fn now() -> Self {
        let now = now_ms();
        Self { stopped_ms: now, executed_ms: now }
    }

    /// Notes that the next program is executed now.
    pub(crate) fn executed(self) -> Self {
        Self { executed_ms: now_ms(), ..self }
    }

    /// Logs how long no connection was accepted. This gap ends now.
    pub(crate) fn tell(self) {
        let now = now_ms();
        let [gap_ms, leaving_ms, starting_ms] =
            [(now, self.stopped_ms), (self.executed_ms, self.stopped_ms), (now, self.executed_ms)]
                .map(|(later, earlier)| later.saturating_sub(earlier));
        tracing::info!(target: "feedgate::handover", gap_ms, leaving_ms, starting_ms, "took over from the process before");
    }
}

impl fmt::Display for Began {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.stopped_ms, self.executed_ms)
    }
}

impl FromStr for Began {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (stopped, executed) = text.split_once(':').context("two times")?;
        Ok(Self { stopped_ms: stopped.parse()?, executed_ms: executed.parse()? })
    }
}

fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_was_told_is_read_again() {
        let began = Began { stopped_ms: 7, executed_ms: 70 };
        assert_eq!(began.to_string().parse::<Began>().unwrap(), began);
        assert!("7".parse::<Began>().is_err());
    }
}
