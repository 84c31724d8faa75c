//! Authors whom everyone follows who has no edge of their own.

use feedgate_common::{OutboxSeq, UserNo};

use super::table;

table! {
    /// With the outbox head when that began. Few, and never removed.
    Everyones: b'y', Archive, UserNo => OutboxSeq
}
