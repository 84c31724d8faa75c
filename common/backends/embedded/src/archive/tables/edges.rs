//! What is stored of a reader and an author. A row is never removed: its generation must only grow, and without a row a
//! reader follows an author whom everyone follows.

use feedgate_common::accept::EdgeRow as Held;
use feedgate_common::{Millis, OutboxSeq, UserNo};

use super::{fields, table};
use crate::codec::Code;

table! {
    /// The edges by reader, then author.
    Edges: b'e', Archive, (UserNo, UserNo) => EdgeRow
}

/// The reader's follow, the shields against it, and the edge that results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EdgeRow {
    /// What decisions need of the edge.
    pub(crate) held: Held,
    /// When the oldest change that is not yet in the inboxes was accepted. Mirrors [`super::Due`].
    pub(crate) due: Option<Millis>,
    /// The place of the follow in the lists, or of the request in the list of requests; 0 if there is neither.
    pub(crate) listed: u64,
    /// Whether all changes that are not yet in the inboxes were imported: then nobody is told of them.
    pub(crate) quiet: bool,
}

impl EdgeRow {
    /// The edge that a missing row means for an author whom everyone follows since the outbox head `since`.
    pub(crate) fn of_everyone(since: OutboxSeq) -> Self {
        Self { held: Held { follows: true, from: since, ..Held::default() }, ..Self::default() }
    }
}

fields!(EdgeRow { held, due, listed, quiet });

/// The first byte: bit 0 if the reader follows, bit 1 if the reader asks to follow. Versions without requests know only
/// bit 0.
impl Code for Held {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.follows) | u8::from(self.asked) << 1);
        self.shields.put(out);
        self.generation.put(out);
        self.from.put(out);
        self.past.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let stands = u8::take(from)?;
        if stands > 2 {
            return None;
        }
        let (follows, asked) = (stands == 1, stands == 2);
        let (shields, generation) = (Code::take(from)?, Code::take(from)?);
        Some(Self { follows, asked, shields, generation, from: Code::take(from)?, past: Code::take(from)? })
    }
}
