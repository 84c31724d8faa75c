//! Which item an idempotency key stands for, and until when.

use compact_str::CompactString;
use feedgate_common::{ItemId, Millis, UserNo};

use super::{Fingerprint, fields, table};

table! {
    /// Past its time a row counts as absent, whether or not it was swept.
    Retries: b'k', Archive, (UserNo, CompactString) => RetryRow
}

table! {
    /// The same rows by the end of their time, for the sweep.
    Expiries: b'x', Archive, (Millis, UserNo, CompactString) => ()
}

/// What the first request with the key became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryRow {
    pub(crate) item: ItemId,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) expires: Millis,
}

fields!(RetryRow { item, fingerprint, expires });
