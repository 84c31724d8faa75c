//! Work that accepted writes left behind, until it is done.

use async_trait::async_trait;

use crate::error::Result;
use crate::{DirectSeq, Generation, Millis, OutboxSeq, UserNo};

/// Work that an accepted write left behind. It is outstanding until it is finished, not only until it is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// The author's outbox has grown to at least `seq`.
    Outbox {
        /// The author of the outbox.
        author: UserNo,
        /// The head of the outbox.
        seq: OutboxSeq,
        /// When the event is [finished](Events::finish) after a reopening: the number under which it was gone through
        /// again; else 0.
        redo: u64,
    },
    /// An edge has changed.
    Edge {
        /// The reader of the edge.
        reader: UserNo,
        /// The author of the edge.
        author: UserNo,
        /// The generation that the change gave to the edge.
        generation: Generation,
    },
    /// Something was addressed to the reader.
    Direct {
        /// The reader to whom it was addressed.
        reader: UserNo,
        /// The number of the newest record addressed to the reader.
        seq: DirectSeq,
    },
}

/// A line of the list of outstanding events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// Since when the event counts as outstanding, in Unix ms; 0 or less if it was reopened.
    pub since: Millis,
    /// The work that is to be done.
    pub event: Event,
}

/// The list of outstanding events.
#[async_trait]
pub trait Events: Send + Sync + 'static {
    /// The events accepted at or before `not_after` and not finished, at most `limit`, oldest first. The list goes on
    /// after the line `after`, whether that one still exists or not.
    async fn outstanding(
        &self,
        after: Option<Outstanding>,
        not_after: Millis,
        limit: usize,
    ) -> Result<Vec<Outstanding>>;

    /// The authors of `reader`'s outstanding edges, by number, at most `limit`.
    async fn edges_due(&self, reader: UserNo, limit: usize) -> Result<Vec<UserNo>>;

    /// Marks events as finished: their fan-out is done. An outbox event finishes all events of its author up to its
    /// `seq`.
    ///
    /// Answers those that stay outstanding because they were reopened, maybe after their fan-out had passed what was
    /// lost. The fan-out of each must be done once more, from its beginning, after this answer. Then the caller
    /// finishes the event up to the head, under the `redo` of the answer, which is valid until the next reopening.
    /// Until then the event stays outstanding, even if the caller or its job is lost.
    async fn finish(&self, events: &[Event]) -> Result<Vec<Event>>;

    /// Makes the push of these authors outstanding and due at once, also if it is outstanding already: a store of
    /// inboxes was rolled back. Durable when it answers. A call of [`Self::finish`] that would have finished such an
    /// event answers it.
    async fn reopen(&self, authors: &[UserNo]) -> Result<()>;
}
