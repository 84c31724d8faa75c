//! Push notifications to devices that are not connected: which devices there are, and what they are still to be told.
//!
//! ```text
//!   a device is registered ──▶ its reader listens
//!   a post reaches a reader who listens ──▶ note ──▶ a notice, one for each (reader, feed), due after a while
//!   take_due ──▶ leased ──▶ settle ─┬─ sent      the notice rests, and a later post makes it due again
//!                                   ├─ dropped   the notice goes: there is nothing left to tell
//!                                   ├─ later     the notice is due again then
//!                                   └─ dead      the notice goes to the list of those that nobody took
//! ```

use async_trait::async_trait;
use compact_str::CompactString;

use crate::error::Result;
use crate::{DeviceId, DirectSeq, FeedId, InboxKey, ItemId, Millis, UserNo};

/// The most devices that a user may have registered.
pub const PUSH_DEVICES_MAX: usize = 32;

/// The most bytes of a push token. Those of FCM have about 160, a subscription to Web Push up to 1000.
pub const PUSH_TOKEN_MAX_BYTES: usize = 2048;

/// The most characters of the word for a platform.
pub const PLATFORM_MAX: usize = 32;

/// The most unread items that a notice counts: as many as a page does.
pub const UNREAD_MAX: u32 = crate::seen::UNREAD_MAX as u32;

/// A device that a push service can reach while it is not connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushDevice {
    /// The device, by the id under which it also connects.
    pub device: DeviceId,
    /// The word of the backend for the push service, such as `fcm`.
    pub platform: CompactString,
    /// The address of the device at the push service.
    pub token: CompactString,
    /// The feeds of which it is told: ascending, each once.
    pub feeds: Vec<FeedId>,
    /// When it was registered with this token, in Unix ms.
    pub since: Millis,
}

/// Keeps the devices that push services can reach.
#[async_trait]
pub trait PushDevices: Send + Sync + 'static {
    /// Registers a device of `user`, in place of an earlier registration of it; `since` stays if nothing else changes.
    /// False, and nothing is done, if the user has [`PUSH_DEVICES_MAX`] others. Durable when it answers; from then on
    /// [`Recipient::listens`](super::Recipient::listens) says so.
    async fn register(&self, user: UserNo, device: PushDevice) -> Result<bool>;

    /// Removes a device; if `token` is given, only while the device is registered with this token. Answers whether it
    /// was removed. Durable when it answers.
    async fn unregister(&self, user: UserNo, device: &DeviceId, token: Option<&str>) -> Result<bool>;

    /// The devices of each user, by device.
    async fn push_devices(&self, users: &[UserNo]) -> Result<Vec<Vec<PushDevice>>>;
}

/// What a reader is to be told: a post in one feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// The reader, and the feed.
    pub key: InboxKey,
    /// The newest item that has come.
    pub item: ItemId,
    /// How many items have come, this one included.
    pub count: u32,
}

/// What a reader is still to be told of one feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// The reader, and the feed.
    pub key: InboxKey,
    /// The newest item that was noted.
    pub item: ItemId,
    /// How many items were noted since the last time the reader was told, at most [`UNREAD_MAX`].
    pub count: u32,
    /// A number that no other notice has, and that changes with each note. So it names what is told.
    pub number: u64,
    /// How often the notice was tried without success.
    pub tries: u32,
}

/// What became of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The reader was told. No other notice of this feed is due before `quiet_until`.
    Sent {
        /// Until when the reader is left alone, in Unix ms.
        quiet_until: Millis,
    },
    /// There is nothing to tell any more.
    Dropped,
    /// The notice is to be tried again. This was a try without success.
    Later {
        /// When it is due again, in Unix ms.
        due: Millis,
    },
    /// The notice was tried often enough. From now on it is kept as a [`DeadNotice`].
    Dead {
        /// Why the last try failed.
        why: String,
        /// When the last try failed, in Unix ms.
        at: Millis,
    },
}

/// A notice that was taken, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The notice as it was taken.
    pub notice: Notice,
    /// What became of it.
    pub outcome: Outcome,
}

/// A notice that nobody took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadNotice {
    /// The notice as it was last taken.
    pub notice: Notice,
    /// Why the last try failed.
    pub why: String,
    /// When the last try failed, in Unix ms.
    pub at: Millis,
}

/// Keeps what readers are still to be told: one row for each reader and feed.
///
/// Every change is atomic and durable when it answers.
#[async_trait]
pub trait PushNotices: Send + Sync + 'static {
    /// Notes posts. A note whose reader has no device registered for its feed is left out. A notice that exists takes
    /// the newer item and counts on. It stays due when it was; if its reader was told already, it becomes due again,
    /// but not before `quiet_until`. A note of the item that the notice has changes nothing. A note that is repeated
    /// after the note of another item counts again. No two of the notes have one key.
    ///
    /// `noted` says up to which number a reader was told of what is addressed to it; that only moves forward.
    async fn note(&self, notes: &[Note], due: Millis, noted: Option<(UserNo, DirectSeq)>) -> Result<()>;

    /// Takes notices that are due at `now`, longest due first, at most `limit`. Nobody else gets them until
    /// `lease_until`, when they are due again.
    async fn take_due(&self, now: Millis, lease_until: Millis, limit: usize) -> Result<Vec<Notice>>;

    /// Says what became of notices. One that has taken a newer note meanwhile stays: it is due at `now`, or when it may
    /// be due again, or when it is to be tried again. One that somebody else has settled stays as it is.
    async fn settle(&self, settled: &[Settled], now: Millis) -> Result<()>;

    /// Notices that nobody took, by reader and feed, after `after`, at most `limit`.
    async fn dead(&self, after: Option<InboxKey>, limit: usize) -> Result<Vec<DeadNotice>>;

    /// Makes notices that nobody took due at `now`, of one reader or of all, at most `limit`. Answers how many. If the
    /// reader and feed have a notice that is still to be tried, the dead one is removed.
    async fn retry_dead(&self, reader: Option<UserNo>, now: Millis, limit: usize) -> Result<usize>;

    /// Forgets notices that nobody took, of one reader or of all, at most `limit`. Answers how many.
    async fn forget_dead(&self, reader: Option<UserNo>, limit: usize) -> Result<usize>;
}
