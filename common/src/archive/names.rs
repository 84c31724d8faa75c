//! The numbers of users and of named feeds.

use async_trait::async_trait;
use compact_str::CompactString;

use crate::error::Result;
use crate::{FeedId, UserId, UserNo};

/// Gives users and feeds numbers, which they keep for ever.
#[async_trait]
pub trait Names: Send + Sync + 'static {
    /// The number of each user. A name that was never seen gets a new number. Durable when it answers.
    async fn intern(&self, names: &[UserId]) -> Result<Vec<UserNo>>;

    /// The number of each user; `None` for a name that has none.
    async fn user_nos(&self, names: &[UserId]) -> Result<Vec<Option<UserNo>>>;

    /// The name of each number. A number that was never given is an error.
    async fn user_ids(&self, users: &[UserNo]) -> Result<Vec<UserId>>;

    /// The number of each named feed. A name that was never seen gets a new number, never that of [`FeedId::MAIN`].
    /// Durable when it answers; a name keeps its number for ever.
    async fn intern_feeds(&self, names: &[CompactString]) -> Result<Vec<FeedId>>;

    /// Every feed of which a reader may have an inbox: [`FeedId::MAIN`] first, then each that was ever
    /// [named](Self::intern_feeds), by number.
    async fn feeds(&self) -> Result<Vec<FeedId>>;
}
