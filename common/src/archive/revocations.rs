//! Which tokens of a user are refused, because they were issued before they were revoked.

use async_trait::async_trait;

use crate::error::Result;
use crate::{Millis, UserNo};

/// A line of the list of revocations. Each user has one at most: the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revocation {
    /// The place of the revocation in the list. A later revocation has a greater number.
    pub number: u64,
    /// The user whose tokens are refused.
    pub user: UserNo,
    /// Tokens that were issued before this time, in Unix ms, are refused.
    pub before: Millis,
}

/// Keeps the time from which on the tokens of each user are valid. Nodes follow the list, so that each node learns of
/// every revocation.
#[async_trait]
pub trait Revocations: Send + Sync + 'static {
    /// Refuses the tokens of `user` that were issued before `before`, in Unix ms. The time of a user only moves
    /// forward. The user gets a new place at the end of the list in any case. Durable when it answers.
    async fn revoke(&self, user: UserNo, before: Millis) -> Result<()>;

    /// The time before which the tokens of `user` are refused, in Unix ms; `None` if they never were revoked.
    async fn revoked(&self, user: UserNo) -> Result<Option<Millis>>;

    /// The number of the newest revocation; 0 if there is none. A revocation that commits later has a greater number.
    async fn last_revocation(&self) -> Result<u64>;

    /// The revocations with numbers beyond `after`, by number, at most `limit`.
    async fn revocations(&self, after: u64, limit: usize) -> Result<Vec<Revocation>>;
}
