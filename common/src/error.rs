//! The errors of a store, sorted by what the caller does next.

use std::sync::Arc;

/// A failure of a store behind a trait. A request that is refused because of what the client sent is a result, not an
/// error (see [`crate::archive::Refused`]).
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The store did not answer. The caller may try again later. A write may or may not have happened. Sessions stay
    /// open.
    #[error("the store is not available: {0}")]
    Unavailable(Arc<str>),
    /// The store cannot work and knows why, for example because its disk is full. As with `Unavailable`, a write may or
    /// may not have happened. The text names no path and no address, so it may be shown to everyone.
    #[error("{0}")]
    Down(Arc<str>),
    /// The store's queue is full, and nothing was written. The caller may try again after the time given.
    #[error("the store is overloaded; retry in {retry_after_ms} ms")]
    Overloaded {
        /// After how many ms a retry is likely to find room.
        retry_after_ms: u32,
    },
    /// What was read is not what this program writes. A human has to look.
    #[error("the store is damaged: {0}")]
    Corrupt(Arc<str>),
}

impl StoreError {
    /// A [`StoreError::Unavailable`] with the text of the cause.
    pub fn unavailable(cause: impl std::fmt::Display) -> Self {
        Self::Unavailable(cause.to_string().into())
    }

    /// A [`StoreError::Down`] with this reason.
    pub fn down(why: impl std::fmt::Display) -> Self {
        Self::Down(why.to_string().into())
    }

    /// A [`StoreError::Corrupt`] that says what was found.
    pub fn corrupt(what: impl std::fmt::Display) -> Self {
        Self::Corrupt(what.to_string().into())
    }
}

/// A store's answer, or its error.
pub type Result<T> = std::result::Result<T, StoreError>;
