//! Exports and imports whole stores, as NDJSON with a line for each thing that happened.
//!
//! ```text
//!   export   outboxes, author by author, in their order ─▶ direct items ─▶ edges, reader by reader ─▶ all that surrounds
//!            items and users: the parts of `export::Cursor`
//!   import   the same lines, in any file: each is taken in, was there already, or is refused by its number
//! ```
//!
//! Invariants: an import never changes what is there, so a file may be imported again from any line. An export may be
//! resumed from any cursor that it has given. An export is no snapshot: what is written meanwhile may or may not be in
//! it, and a second run brings the rest.

mod comments;
pub(super) mod export;
mod import;
pub(super) mod line;
mod lists;
mod of_user;
mod patience;
mod people;
mod pins;
mod rankings;
mod reactions;

pub(super) use export::export;
pub(super) use import::import;
pub(super) use of_user::of_user;

/// The media type of an export and of an import's report.
const NDJSON: &str = "application/x-ndjson";
