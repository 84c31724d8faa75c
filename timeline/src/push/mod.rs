//! Push notifications: what readers who are not connected are told through a webhook.
//!
//! ```text
//!   push step, direct item ─▶ note: who listens and has no session ─▶ a notice in the Archive, due after a while
//!                                                       │
//!   sender ◀── notices that are due, leased ────────────┘
//!     ├─▶ standing: has the reader come? what is unread? which item is the newest?
//!     └─▶ message ─▶ courier: one call for many ─┬─ taken ───▶ sent; devices that are gone are taken away
//!                                                └─ in vain ─▶ later, or dead
//! ```
//!
//! Invariants:
//! - A note is durable before the event is finished. The note of a push step comes before the step, and that of what is
//!   addressed to a reader comes after the step.
//! - A notice is told at least once, unless its reader comes first. A repeated call has the number of the one before.
//! - A reader without a device costs nothing: the step knows it from the recipients that it reads anyway.

mod message;
mod note;
mod sender;
mod standing;

use std::time::Duration;

use async_trait::async_trait;
use feedgate_common::{DeviceId, UserId};

pub use note::Noter;
pub(crate) use note::{added, may_replace, note_of};
pub use sender::Sender;

/// How notices are sent. [`PushSettings::default`] is what runs if nothing else is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushSettings {
    /// How long a notice waits for more posts after the first.
    pub debounce: Duration,
    /// The least time between two notices of one reader and feed.
    pub min_interval: Duration,
    /// Calls that a sender begins per second, at least 1.
    pub calls_per_sec: u32,
    /// Calls that a sender has under way at a time, at least 1.
    pub calls_at_once: usize,
    /// Notices in one call, at least 1.
    pub batch: usize,
    /// How long the receiver may take until its answer begins.
    pub timeout: Duration,
    /// The wait after a first try without success; it doubles with each further one.
    pub retry_first: Duration,
    /// The longest wait after a try without success.
    pub retry_max: Duration,
    /// The number of tries without success after which a notice is dead.
    pub tries: u32,
}

impl Default for PushSettings {
    fn default() -> Self {
        Self {
            debounce: Duration::from_secs(3),
            min_interval: Duration::from_secs(30),
            calls_per_sec: 50,
            calls_at_once: 4,
            batch: 100,
            timeout: Duration::from_secs(10),
            retry_first: Duration::from_secs(5),
            retry_max: Duration::from_secs(3600),
            tries: 12,
        }
    }
}

/// A call of the webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The id of the call; a repeated call has the id of the one before.
    pub id: String,
    /// The JSON body of the call.
    pub body: String,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The receiver has taken the call, and names devices that its push services do not know any more.
    Took {
        /// The users and the devices.
        gone: Vec<(UserId, DeviceId)>,
    },
    /// The receiver says that what was addressed is gone.
    Gone,
    /// The receiver refuses the call: to repeat it does not help.
    Refused(String),
    /// It is not known whether the receiver has taken the call, or the receiver cannot take it now.
    Failed {
        /// The reason, for the log and for the list of dead notices.
        why: String,
        /// How long the receiver asks to be left alone.
        after: Option<Duration>,
    },
}

/// Carries calls to the receiver.
#[async_trait]
pub trait Courier: Send + Sync + 'static {
    /// Makes one call. The answer begins within the timeout of the settings, and ends within as much again. If the
    /// future is dropped, the call may have happened.
    async fn call(&self, call: &Call) -> Answer;
}
