//! What a store can answer instead of a result, sorted by what the caller does next.

use std::sync::Arc;

/// A failure of the world behind a trait. Refusals that a client caused are results, not errors
/// (see [`crate::archive::Refused`]).
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Retry later; nothing is known to have happened. Sessions stay open.
    #[error("the store is not available: {0}")]
    Unavailable(Arc<str>),
    /// The store cannot work, knows why, and says so itself: its disk is full, say. As with `Unavailable`, a write may or
    /// may not have happened. The words name no path and no address: whoever asks may be told.
    #[error("{0}")]
    Down(Arc<str>),
    /// The store's queue is full and nothing was written. Retry after the hint.
    #[error("the store is overloaded; retry in {retry_after_ms} ms")]
    Overloaded {
        /// When a retry is likely to find room, in milliseconds.
        retry_after_ms: u32,
    },
    /// What was read cannot be what was written. A human has to look.
    #[error("the store is damaged: {0}")]
    Corrupt(Arc<str>),
}

impl StoreError {
    /// An [`StoreError::Unavailable`] that keeps the cause's words.
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

/// A store's answer.
pub type Result<T> = std::result::Result<T, StoreError>;
