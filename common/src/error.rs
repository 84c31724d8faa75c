//! The errors of a store, sorted by what the caller does next.
//!
//! Invariant: what is decided about an error is decided by its variant and its [source](Error::source), never by the
//! words of its text.

use std::error::Error;
use std::fmt::{Display, Formatter};
use std::sync::Arc;

/// A failure of a store behind a trait. A request that is refused because of what the client sent is a result, not an
/// error (see [`crate::archive::Refused`]).
#[derive(Debug, Clone)]
pub enum StoreError {
    /// The store did not answer. The caller may try again later. A write may or may not have happened. Sessions stay
    /// open.
    Unavailable(Cause),
    /// The store refuses to work for us as it is set up: a password, a version, a URL. To callers it is as
    /// `Unavailable`, but waiting alone does not help: a person has to change something.
    Misconfigured(Cause),
    /// The store cannot work and knows why, for example because its disk is full. As with `Unavailable`, a write may or
    /// may not have happened. The text names no path and no address, so it may be shown to everyone.
    Down(Arc<str>),
    /// The store's queue is full, and nothing was written. The caller may try again after the time given.
    Overloaded {
        /// After how many ms a retry is likely to find room.
        retry_after_ms: u32,
    },
    /// What was read is not what this program writes. A human has to look.
    Corrupt(Cause),
}

impl StoreError {
    /// A [`StoreError::Unavailable`] with this text.
    pub fn unavailable(text: impl Display) -> Self {
        Self::Unavailable(Cause::new(text))
    }

    /// A [`StoreError::Misconfigured`] with this text.
    pub fn misconfigured(text: impl Display) -> Self {
        Self::Misconfigured(Cause::new(text))
    }

    /// A [`StoreError::Down`] with this reason.
    pub fn down(why: impl Display) -> Self {
        Self::Down(why.to_string().into())
    }

    /// A [`StoreError::Corrupt`] that says what was found.
    pub fn corrupt(what: impl Display) -> Self {
        Self::Corrupt(Cause::new(what))
    }

    /// This error, with the one that it comes from as its [source](Error::source). The text stays as it is, and should
    /// say what the source says. `Down` and `Overloaded` have no source.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        if let Self::Unavailable(cause) | Self::Misconfigured(cause) | Self::Corrupt(cause) = &mut self {
            cause.source = Some(Arc::new(source));
        }
        self
    }
}

impl Display for StoreError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unavailable(cause) | Self::Misconfigured(cause) => write!(f, "the store is not available: {cause}"),
            Self::Down(why) => f.write_str(why),
            Self::Overloaded { retry_after_ms } => {
                write!(f, "the store is overloaded; retry in {retry_after_ms} ms")
            }
            Self::Corrupt(cause) => write!(f, "the store is damaged: {cause}"),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(cause) | Self::Misconfigured(cause) | Self::Corrupt(cause) => {
                cause.source.as_deref().map(|source| source as _)
            }
            Self::Down(_) | Self::Overloaded { .. } => None,
        }
    }
}

/// Why a store failed: a text for the log, and the error that it comes from, if there is one. Reads as its text.
#[derive(Debug, Clone)]
pub struct Cause {
    text: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Cause {
    fn new(text: impl Display) -> Self {
        Self { text: text.to_string().into(), source: None }
    }

    /// This cause with another text. Its source stays.
    #[must_use]
    pub fn reworded(&self, text: impl Display) -> Self {
        Self { source: self.source.clone(), ..Self::new(text) }
    }
}

impl std::ops::Deref for Cause {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Display for Cause {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A store's answer, or its error.
pub type Result<T> = std::result::Result<T, StoreError>;

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_error_keeps_its_source_also_in_a_copy() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let text = format!("cannot write a file: {full}");
        let error = StoreError::unavailable(&text).with_source(full).clone();
        assert_eq!(error.to_string(), format!("the store is not available: {text}"));
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
        assert!(StoreError::down("the disk is full").with_source(io::Error::other("at /srv")).source().is_none());
    }
}
