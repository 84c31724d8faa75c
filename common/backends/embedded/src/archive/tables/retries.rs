//! Which item an idempotency key stands for, and until when.

use compact_str::CompactString;
use feedgate_common::accept::RetryRow;
use feedgate_common::{Millis, UserNo};

use super::{fields, table};

table! {
    /// Past its time a row counts as absent, whether or not it was swept.
    Retries: b'k', Archive, (UserNo, CompactString) => RetryRow
}

table! {
    /// The same rows by the end of their time, for the sweep.
    Expiries: b'x', Archive, (Millis, UserNo, CompactString) => ()
}

fields!(RetryRow { item, fingerprint, expires });
