//! Lists for users and backends: who follows whom, who has asked to, and who has shields up against whom.

use async_trait::async_trait;

use crate::error::Result;
use crate::graph::Shield;
use crate::{Millis, UserId, UserNo};

/// One line of a list of followers, followees or shields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    /// The user on the other side.
    pub user: UserId,
    /// When the follow began or was asked for, or the shield went up, in Unix ms.
    pub since: Millis,
    /// Where the list goes on behind this line.
    pub cursor: ListCursor,
}

/// The place of a line in a list, from which the list goes on behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListCursor {
    /// The number by which the list is sorted.
    pub listed: u64,
    /// Sorts lines that share a number, in a home in which lines may share a number; 0 in other homes.
    pub tie: u32,
}

impl ListCursor {
    /// The place of the only line with this number.
    pub fn at(listed: u64) -> Self {
        Self { listed, tie: 0 }
    }
}

/// Lists follows and shields.
#[async_trait]
pub trait Graph: Send + Sync + 'static {
    /// The users whom `reader` follows, newest follow first, after `cursor`, at most `limit`.
    async fn following(&self, reader: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>>;

    /// The users who follow `author`, newest follow first, after `cursor`, at most `limit`.
    async fn followers(&self, author: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>>;

    /// The users that `user` follows and that follow `user`, newest follow of `user` first, after `cursor`, at most
    /// `limit`.
    async fn mutual(&self, user: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>>;

    /// The users who have asked to follow `author` and have no answer yet, newest request first, after `cursor`, at
    /// most `limit`. They are in no other list.
    async fn requests(&self, author: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>>;

    /// The users against whom `user` has this shield up, newest first, after `cursor`, at most `limit`.
    async fn shielded(
        &self,
        user: UserNo,
        shield: Shield,
        cursor: Option<ListCursor>,
        limit: usize,
    ) -> Result<Vec<Follow>>;

    /// For each of `users`, in its place, the users with whom it is in a block, by either side: at most `limit`, in no
    /// order. One read, however many they are.
    async fn blocked_with(&self, users: &[UserNo], limit: usize) -> Result<Vec<Vec<UserNo>>>;

    /// For each of `users`, in its place, the users that it follows and that follow it, whatever shields are up: at
    /// most `limit`, in no order. One read, however many they are.
    async fn mutual_with(&self, users: &[UserNo], limit: usize) -> Result<Vec<Vec<UserNo>>>;

    /// Gives those of `others` whom `user` follows, whatever shields are up, in no order.
    async fn followed_among(&self, user: UserNo, others: &[UserNo]) -> Result<Vec<UserNo>>;

    /// Gives the `authors` to whom the edge of `reader` is on, in no order.
    async fn followees_among(&self, reader: UserNo, authors: &[UserNo]) -> Result<Vec<UserNo>>;
}
