//! The authors whom everyone follows: every reader who has no edge of its own to such an author follows the author.

use feedgate_common::{OutboxSeq, UserNo};

use super::table;

table! {
    /// Each author whom everyone follows, with the head of the outbox when that began. There are few rows, and no row
    /// is ever removed.
    Everyones: b'y', Archive, UserNo => OutboxSeq
}
