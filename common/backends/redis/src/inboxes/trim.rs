//! Cutting logs that have become too long.
//!
//! ```text
//!   step says "long" ─▶ read what is to go ─▶ floor of the cut: pure ─▶ cut, if the header is still that one
//! ```
//!
//! In a product that has run for a while, every log has its greatest length, so a log is cut after every
//! [`SLACK`](super::SLACK) changes. To keep cuts cheap, a cut reads only the entries that go and a few that stay.
//!
//! Invariants: a log that cannot be cut now stays long, and a later step says so again. Entries that are appended
//! between reading and cutting stay. If such an entry removes an item that is cut, the floor is higher than it need be,
//! and pages ask the Archive for more. The floor is also too high if the removing entry stays and was not among the
//! entries that were read. Then too, an add that stays is above the floor.

use feedgate_common::error::{Result, StoreError};
use feedgate_common::inboxes::floor_of_cut;
use feedgate_common::{DisplayKey, Entry, InboxKey, Op};
use futures_util::{StreamExt, stream};

use super::layout::{Header, entry_of};
use super::{LONG, RedisInboxes, packed};

/// The most logs that one step cuts: if many are long at once, later steps cut the rest.
const AT_ONCE: usize = 64;

/// How many logs are read and cut at the same time.
const ABREAST: usize = 8;

/// How many of the entries that stay are read.
const SOME: usize = 64;

/// What is known of the cut of a log from its oldest entries.
struct Oldest {
    /// How many entries are to go.
    cut: usize,
    /// The header, as it stands there.
    header: Vec<u8>,
    /// The floor to which the cut raises the floor of the log; `None` if no cut add lives.
    floor: Option<DisplayKey>,
    /// Whether these entries are enough to know the floor: an add that stays is above it. A lower floor would then be
    /// of little use.
    is_enough: bool,
}

impl Oldest {
    /// `entries` are the entries that are to go, and some that stay.
    fn of(cut: usize, header: Vec<u8>, entries: &[Entry]) -> Self {
        let floor = floor_of_cut(entries.iter().copied(), cut);
        let stay = entries.get(cut..).unwrap_or_default();
        let is_enough = floor.is_none_or(|floor| stay.iter().any(|entry| entry.op == Op::Add && entry.key > floor));
        Self { cut, header, floor, is_enough }
    }
}

impl RedisInboxes {
    /// Cuts at most [`AT_ONCE`] of these logs. A log that could not be cut stays long until a later step. The step that
    /// made the log long gets no error, since it has succeeded.
    pub(super) async fn trim_all(&self, long: Vec<InboxKey>) {
        let trims = long.into_iter().take(AT_ONCE).map(async |key| {
            if let Err(error) = self.trim(key).await {
                tracing::debug!(?key, %error, "a log stays long until a later step");
            }
        });
        stream::iter(trims).buffer_unordered(ABREAST).for_each(async |()| {}).await;
    }

    /// Cuts a log if a step has made it too long. `length` is the number of its entries.
    pub(super) async fn trim_long(&self, key: InboxKey, length: u64) {
        if length as usize > LONG {
            self.trim_all(vec![key]).await;
        }
    }

    async fn trim(&self, key: InboxKey) -> Result<()> {
        let Some(mut oldest) = self.oldest(key, SOME).await? else { return Ok(()) };
        if !oldest.is_enough {
            let Some(whole) = self.oldest(key, usize::from(u16::MAX)).await? else { return Ok(()) };
            oldest = whole;
        }
        let mut header = Header::of(&oldest.header)?;
        header.base += oldest.cut as u64;
        header.floor = header.floor.max(oldest.floor);
        let cut = oldest.cut.to_string().into_bytes();
        let arguments = vec![b"epoch".to_vec(), oldest.header, header.bytes()?, cut];
        let reply = self.on_inbox(&self.scripts.trim, key, arguments).await?;
        match &*reply.word {
            "cut" => Ok(()),
            "refused" => Err(StoreError::unavailable("it changed meanwhile")),
            _ => Err(reply.unexpected()),
        }
    }

    /// Reads the entries of a log that are to go, and `stay` entries that stay; `None` if the log is not too long.
    async fn oldest(&self, key: InboxKey, stay: usize) -> Result<Option<Oldest>> {
        let arguments = vec![b"epoch".to_vec(), stay.to_string().into_bytes()];
        let mut reply = self.on_inbox(&self.scripts.oldest, key, arguments).await?;
        match &*reply.word {
            "oldest" => {
                let (cut, packed) = (reply.number()? as usize, reply.bytes()?);
                let elements = packed::strings(&packed)?;
                let (header, entries) = elements.split_first().ok_or_else(|| reply.unexpected())?;
                let entries: Vec<_> = entries.iter().map(|bytes| entry_of(bytes)).collect::<Result<_>>()?;
                Ok(Some(Oldest::of(cut, header.to_vec(), &entries)))
            }
            "short" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }
}
