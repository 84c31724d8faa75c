//! What every home of a trait of `feedgate-common` must pass: a function per trait that takes `open`.
//!
//! Each panics with a sentence at the first promise that is broken. Memory is not excused.

pub mod archive;
pub mod doorbell;
pub mod inboxes;
pub mod jobs;
pub mod sessions;
