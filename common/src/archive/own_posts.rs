//! Whether authors have an edge to themselves, so that their own items stand in their own feeds.

use async_trait::async_trait;

use crate::error::Result;
use crate::{UserId, UserNo};

/// Keeps whether the items of every author stand in the author's own feed, and how far that is carried out for authors
/// who have published before. For an author who publishes for the first time, the write itself carries it out. In both
/// cases the author gets an edge to itself, which no list, count or mutual shows.
#[async_trait]
pub trait OwnPosts: Send + Sync + 'static {
    /// Says whether the items of authors stand in their own feeds. Every write that begins later uses this setting. If
    /// the setting has changed, the authors who have published before are still to be [walked
    /// through](Self::own_posts_due). Durable when it answers; to say the same again changes nothing. A store that was
    /// never told has no such edge.
    async fn set_own_posts(&self, on: bool) -> Result<()>;

    /// The next authors who have published and to whom `on` is still to be carried out, by number, at most `limit`.
    /// `None` if [all is done](Self::own_posts_done), or if the store was told otherwise since.
    async fn own_posts_due(&self, on: bool, limit: usize) -> Result<Option<Vec<(UserNo, UserId)>>>;

    /// Notes that `on` is carried out for all authors up to `upto`; `None` stands for all authors. Nothing happens if
    /// the store was told otherwise since, or has come further. Durable when it answers.
    async fn own_posts_done(&self, on: bool, upto: Option<UserNo>) -> Result<()>;
}
