//! Lists of users that authors keep, and the readers to whom items are narrowed.

use async_trait::async_trait;

use super::{Follow, ListCursor};
use crate::audience::{ListChange, ListRefused, Listed};
use crate::error::Result;
use crate::ids::ListName;
use crate::{ItemId, UserNo};

/// Keeps the lists of users, and the audience of each item that is for some of the followers. A list without members
/// does not exist. A change of a list changes no audience.
#[async_trait]
pub trait Audiences: Send + Sync + 'static {
    /// Carries out these changes in order, in one durable transaction. Answers for each whether it changed anything, or
    /// why it is refused; a refused change stops no other. A member who is on the list already keeps the time of
    /// joining.
    async fn change_lists(&self, changes: Vec<ListChange>) -> Result<Vec<std::result::Result<bool, ListRefused>>>;

    /// The lists of `owner` by name, each with the number of its members.
    async fn lists(&self, owner: UserNo) -> Result<Vec<(ListName, u64)>>;

    /// The members of a list, after `cursor`, at most `limit`. The cursor ascends along the list.
    async fn members(
        &self,
        owner: UserNo,
        list: &ListName,
        cursor: Option<ListCursor>,
        limit: usize,
    ) -> Result<Vec<Follow>>;

    /// Of these lists of `owner`: the numbers of all members of each. One read.
    async fn member_nos(&self, owner: UserNo, lists: &[ListName]) -> Result<Vec<Vec<UserNo>>>;

    /// The members of all lists by owner, list and member, after this place, at most `limit`.
    async fn listed(&self, after: Option<(UserNo, ListName, UserNo)>, limit: usize) -> Result<Vec<Listed>>;

    /// The lists of others on which `member` is, by owner and list, after this place, at most `limit`.
    async fn listing(&self, member: UserNo, after: Option<(UserNo, ListName)>, limit: usize) -> Result<Vec<Listed>>;

    /// The readers in the audience of an item, ascending by number; none for an item that is not narrowed.
    async fn audience(&self, item: ItemId) -> Result<Vec<UserNo>>;
}
