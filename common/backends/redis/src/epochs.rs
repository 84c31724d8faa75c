//! Where epochs come from when Redis has lost what it held.

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::error::Result;
use feedgate_common::{Archive, Epoch};

/// Gives epochs, each greater than any it gave before, to anybody. The Archive is one.
#[async_trait]
pub trait Epochs: Send + Sync + 'static {
    /// The next one.
    ///
    /// # Errors
    /// `Unavailable` if its home is; then nothing new can begin in Redis either.
    async fn next_epoch(&self) -> Result<Epoch>;
}

#[async_trait]
impl Epochs for Arc<dyn Archive> {
    async fn next_epoch(&self) -> Result<Epoch> {
        self.as_ref().next_epoch().await
    }
}
