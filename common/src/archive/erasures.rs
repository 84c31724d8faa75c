//! Erasures of users, what is stored of one user, and the removal of what has no write of its own.

use async_trait::async_trait;
use compact_str::CompactString;

use crate::erase::{Erasure, Mark, Removed, Stage, State, Traces};
use crate::error::Result;
use crate::{ItemId, Millis, UserNo};

/// Rows of deleted items and comments of a user that say more than that the items and comments existed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remains {
    /// Items of which only id, author, place and times are to stay.
    pub items: Vec<ItemId>,
    /// Keys of the backend that lead to deleted items.
    pub foreign_ids: Vec<CompactString>,
    /// Comments of which only id, author, place and times are to stay.
    pub comments: Vec<ItemId>,
    /// Items of others whose audience is to lose the user.
    pub audiences: Vec<ItemId>,
    /// Deleted items that are to lose their audience.
    pub own_audiences: Vec<ItemId>,
}

/// Keeps the erasures of users. [`crate::erase`] has the rules of their course.
#[async_trait]
pub trait Erasures: Send + Sync + 'static {
    /// Accepts the erasure of `user` at `now` (Unix ms), and refuses the tokens of the user that were issued until
    /// then, in one durable transaction. If an erasure of the user is under way, the answer is that erasure, and the
    /// tokens are refused again.
    async fn begin_erasure(&self, user: UserNo, now: Millis) -> Result<Erasure>;

    /// The erasure with this number; `None` if there is none.
    async fn erasure(&self, id: u64) -> Result<Option<Erasure>>;

    /// Erasures with a greater number than `after` that are not finished, oldest first, at most `limit`. The first
    /// number is 1.
    async fn open_erasures(&self, after: u64, limit: usize) -> Result<Vec<Erasure>>;

    /// Stores a later state of an erasure, if the stored state is still `before`. Otherwise answers false and does
    /// nothing, so that of several workers one goes on. Durable when it answers.
    async fn move_erasure(&self, id: u64, before: &State, now: &State) -> Result<bool>;

    /// What is stored of the user that no other read finds, strictly behind `after`: of the stages
    /// [`Lines`](Stage::Lines), [`Direct`](Stage::Direct), [`Notifications`](Stage::Notifications),
    /// [`ForeignIds`](Stage::ForeignIds), [`Comments`](Stage::Comments), [`Reactions`](Stage::Reactions),
    /// [`Shielded`](Stage::Shielded) and [`Audiences`](Stage::Audiences). Empty for the others. A walk through rows of
    /// all users: it looks at no more than [`TRACES_LOOKED_AT`](crate::erase::TRACES_LOOKED_AT) of them in one call.
    async fn traces(&self, user: UserNo, of: Stage, after: Option<&Mark>) -> Result<Traces>;

    /// Removes what stays of deleted items and comments of the user, and the user from audiences. Items and comments of
    /// others and those that live are left as they are otherwise. Durable when it answers.
    async fn scrub(&self, user: UserNo, remains: &Remains) -> Result<()>;

    /// Counts a page of what has no write of its own, and answers the number of its last record. A page looks at
    /// `limit` records that are addressed to the user, behind number `after`, and counts items that others have
    /// addressed to the user; one that was moved has several records, and counts once. The page with the last of the
    /// records has no number, and counts the rows that [`Self::forget_rest`] removes of the other kinds too, but not
    /// pins and lines of notifications. All other counts are 0.
    async fn rest(&self, user: UserNo, after: u64, limit: usize) -> Result<(Removed, Option<u64>)>;

    /// Removes the records up to this number that are addressed to the user. One durable transaction.
    async fn forget_addressed(&self, user: UserNo, upto: u64) -> Result<()>;

    /// Removes what has no write of its own. All at once: what is said of the user, devices and notices of push
    /// notifications, what was seen, and the user's pins. At most `limit` rows of each: what was addressed to the user,
    /// the user's lines of notifications, members of lists that are the user's or have the user, and idempotency keys.
    /// Answers whether there may be more. One durable transaction.
    async fn forget_rest(&self, user: UserNo, limit: usize) -> Result<bool>;
}
