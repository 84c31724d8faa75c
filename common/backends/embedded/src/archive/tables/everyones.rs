//! The authors whom every reader follows who has no edge of their own to them.

use feedgate_common::{OutboxSeq, UserNo};

use super::table;

table! {
    /// Each author whom everyone follows, with the head of the outbox when that began. There are few, and they are
    /// never removed.
    Everyones: b'y', Archive, UserNo => OutboxSeq
}
