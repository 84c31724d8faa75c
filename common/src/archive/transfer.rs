//! What an export and a backup read besides what is shown.

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::{Graph, Items, Names, Outboxes};
use crate::error::Result;
use crate::graph::Shields;
use crate::{Generation, ItemId, Millis, OutboxSeq, Record, UserId, UserNo};

/// What is stored of one edge, for an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The author of the edge.
    pub author: UserNo,
    /// Whether the reader follows, whatever shields are up.
    pub follows: bool,
    /// Whether the reader has asked to follow, and has no answer yet.
    pub asked: bool,
    /// The shields that are up.
    pub shields: Shields,
    /// The generation, as in [`Edge::generation`](super::Edge::generation); 0 if the reader follows only because
    /// everyone does.
    pub generation: Generation,
    /// The end of the records from before the follow, of which only the newest are shown.
    pub past: OutboxSeq,
    /// When the follow began or was asked for, in Unix ms; 0 if the reader neither follows nor asks.
    pub since: Millis,
}

/// Walks through everything that is stored, or copies it. An export reads the rest through the four parts that this one
/// includes.
#[async_trait]
pub trait Transfer: Names + Items + Outboxes + Graph {
    /// The users after `after` by number, at most `limit`.
    async fn users(&self, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, UserId)>>;

    /// What is stored of `reader`'s edges, to authors after `after` by number, at most `limit`. An edge without a
    /// follow, a request or a shield is left out, unless everyone else follows the author.
    async fn held(&self, reader: UserNo, after: Option<UserNo>, limit: usize) -> Result<Vec<Held>>;

    /// The living direct items after `after` by id, at most `limit`, each with the readers whom it has reached; some
    /// have reached nobody.
    async fn direct_items(&self, after: Option<ItemId>, limit: usize) -> Result<Vec<(ItemId, Vec<UserNo>)>>;

    /// For each of these records of `author`, in the same order: the record with which its item has moved to another
    /// rank. For an add that was ended by a move, this is the delete that ended the add; for that delete, it is the
    /// delete itself. `None` for the newest add of an item, for the delete that ended the item, and for updates.
    async fn moves(&self, author: UserNo, records: &[Record]) -> Result<Vec<Option<OutboxSeq>>>;

    /// All that is stored at the moment of this call, as pieces of bytes from which the same home makes a store again.
    /// Writes go on meanwhile and are not in it. A piece is read when it is asked for and takes less than a MiB, unless
    /// one row takes more. After an error nothing follows, and the pieces are of no use. A stream that is dropped has
    /// changed nothing. `None` if the store is backed up by tools of its own.
    fn copy(&self) -> Option<BoxStream<'static, Result<Vec<u8>>>>;
}
