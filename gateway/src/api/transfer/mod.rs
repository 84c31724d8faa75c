//! Whole stores, in and out: NDJSON, a line for each thing that happened.
//!
//! ```text
//!   export   outboxes, author by author, in their order ─▶ direct items ─▶ edges, reader by reader
//!   import   the same lines, in any file: each is taken in, was there already, or is refused by its number
//! ```
//!
//! Invariants: an import never changes what is there, so a file may be run again from any line; an export may be
//! resumed from any cursor it has given. Neither is a snapshot: what is written meanwhile may be in it or not, and a
//! second run brings it.

mod export;
mod import;
mod line;

pub(super) use export::export;
pub(super) use import::import;

/// The media type of both.
const NDJSON: &str = "application/x-ndjson";
