//! The authors whom every reader follows who has no edge of their own to them.

use feedgate_common::{OutboxSeq, UserNo};

use super::table;

table! {
    /// Each such author, with the outbox head when that began. There are few, and they are never removed.
    Everyones: b'y', Archive, UserNo => OutboxSeq
}
