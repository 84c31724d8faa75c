//! The item that an idempotency key stands for, and until when.

use compact_str::CompactString;
use feedgate_common::accept::RetryRow;
use feedgate_common::{Millis, UserNo};

use super::{fields, table};

table! {
    /// The answer to each author's idempotency key. A row counts as absent when its time is over, even before it is
    /// removed.
    Retries: b'k', Archive, (UserNo, CompactString) => RetryRow
}

table! {
    /// The idempotency keys by the end of their time, for the sweep.
    Expiries: b'x', Archive, (Millis, UserNo, CompactString) => ()
}

fields!(RetryRow { item, fingerprint, expires });
