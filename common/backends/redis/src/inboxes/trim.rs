//! Cutting logs that have become too long.
//!
//! ```text
//!   step says "long" ─▶ read the log ─▶ floor of the cut: pure ─▶ cut, if the header is still that one
//! ```
//!
//! Invariants: a log that cannot be cut now stays long, and the next step says so again. What is appended between
//! reading and cutting stays; if it removes what is cut, the floor is higher than it need be, and pages ask the Archive
//! for more.

use feedgate_common::InboxKey;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::inboxes::{KEEP, floor_of_cut};
use futures_util::{StreamExt, stream};
use redis::cmd;

use super::layout::{Header, entry_of, inbox_key};
use super::scripts::{array, bytes};
use super::{LONG, RedisInboxes, SLACK};

/// The most logs that one step cuts: where many are long at once, the following steps cut the rest.
const AT_ONCE: usize = 64;

/// How many are read and cut at the same time.
const ABREAST: usize = 8;

impl RedisInboxes {
    /// Cuts at most [`AT_ONCE`] of these logs. A log that could not be cut stays long until the next step; the step
    /// that made it long is not told, for it has succeeded.
    pub(super) async fn trim_all(&self, long: Vec<InboxKey>) {
        let trims = long.into_iter().take(AT_ONCE).map(async |key| {
            if let Err(error) = self.trim(key).await {
                tracing::debug!(?key, %error, "a log stays long until the next step");
            }
        });
        stream::iter(trims).buffer_unordered(ABREAST).for_each(async |()| {}).await;
    }

    /// Cuts one if a step has made it so long.
    pub(super) async fn trim_long(&self, key: InboxKey, length: u64) {
        if length as usize > LONG {
            self.trim_all(vec![key]).await;
        }
    }

    async fn trim(&self, key: InboxKey) -> Result<()> {
        let mut range = cmd("LRANGE");
        range.arg(inbox_key(self.bucket_of(key), key)).arg(0).arg(-1);
        let elements: Vec<_> = array(self.link.call(&range).await?)?.into_iter().map(bytes).collect::<Result<_>>()?;
        let Some((held, entries)) = elements.split_first().filter(|(_, entries)| entries.len() > KEEP + SLACK) else {
            return Ok(());
        };
        let (mut header, cut) = (Header::of(held)?, entries.len() - KEEP);
        let entries: Vec<_> = entries.iter().map(|bytes| entry_of(bytes)).collect::<Result<_>>()?;
        header.base += cut as u64;
        header.floor = header.floor.max(floor_of_cut(entries.into_iter(), cut));
        let arguments = vec![b"epoch".to_vec(), held.clone(), header.bytes()?, cut.to_string().into_bytes()];
        let reply = self.on_inbox(&self.scripts.trim, key, arguments).await?;
        match &*reply.word {
            "cut" => Ok(()),
            "refused" => Err(StoreError::unavailable("it changed meanwhile")),
            _ => Err(reply.unexpected()),
        }
    }
}
