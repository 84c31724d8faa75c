//! Where epochs come from.

use async_trait::async_trait;

use crate::Epoch;
use crate::error::Result;

/// Gives epochs, one for each new life of a log. Stores of inboxes and sessions ask it too, when they have lost
/// what they held.
#[async_trait]
pub trait Epochs: Send + Sync + 'static {
    /// A number greater than any that was given before, to anybody. Durable before it answers.
    async fn next_epoch(&self) -> Result<Epoch>;
}
