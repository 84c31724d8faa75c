//! Audiences: lists of users that an author keeps, and the followers to whom an item is narrowed by them.
//!
//! ```text
//!   lists, mutual, except_lists ──▶ resolved once, when the item is accepted ──▶ a set of readers that never changes
//!                                                                                     │
//!   a reader sees the item  =  the reader follows the author, as for any item   and   is in the set
//! ```
//!
//! An audience only narrows: a member of a list who does not follow the author gets nothing. So an unfollow or a shield
//! hides a narrowed item like any other, and a later follow brings it back to those in its set.

use std::collections::HashSet;

use crate::archive::Refused;
use crate::ids::ListName;
use crate::{Millis, UserId, UserNo};

/// The most readers in the audience of an item.
pub const AUDIENCE_MAX: usize = 5000;

/// The most members of a list.
pub const MEMBERS_MAX: usize = 5000;

/// The most lists of a user.
pub const LISTS_MAX: usize = 100;

/// The conditions by which an author narrows an item to some of the followers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// Only members of one of these lists of the author; if there is none, all followers.
    pub lists: Vec<ListName>,
    /// No member of any of these lists of the author.
    pub except_lists: Vec<ListName>,
    /// Only followers whom the author follows too, muted by the author or not.
    pub mutual: bool,
}

/// The audience of an item that is for some of the followers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowed {
    /// The conditions by which the item was narrowed. An imported item has only the readers.
    pub by: Narrowing,
    /// The readers, as [`resolved`](crate::feed::resolve_audience) when the write came, or why the item is refused.
    /// Even so, a repeated request gets its first answer.
    pub readers: Result<Vec<UserId>, Box<Refused>>,
}

impl Narrowed {
    /// An audience that is not resolved yet, so it has no readers.
    pub fn by(by: Narrowing) -> Self {
        Self { by, readers: Ok(vec![]) }
    }

    /// An audience of these readers.
    pub fn to(readers: Vec<UserId>) -> Self {
        Self { by: Narrowing::default(), readers: Ok(readers) }
    }

    /// The readers; none if the item is refused.
    pub fn readers(&self) -> &[UserId] {
        self.readers.as_deref().unwrap_or_default()
    }
}

/// Gives the candidates who belong to an audience. Such a candidate follows the author and is on no list that is left
/// out. If `followees` is given, it has the users whom the author follows, and the candidate is among them.
pub fn narrowed(
    candidates: impl IntoIterator<Item = UserNo>,
    followers: &HashSet<UserNo>,
    left_out: &HashSet<UserNo>,
    followees: Option<&HashSet<UserNo>>,
) -> Vec<UserNo> {
    let belongs = |reader: &UserNo| {
        followers.contains(reader)
            && !left_out.contains(reader)
            && followees.is_none_or(|followees| followees.contains(reader))
    };
    candidates.into_iter().filter(belongs).collect()
}

/// A change of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListChange {
    /// The user whose list it is.
    pub owner: UserNo,
    /// The list that changes.
    pub list: ListName,
    /// The user who is put on the list or taken from it.
    pub member: UserNo,
    /// Whether the member is on the list after the change.
    pub on: bool,
    /// Since when the member is on the list, in Unix ms.
    pub at: Millis,
}

/// Why a list was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ListRefused {
    /// The list is full.
    #[error("the list has {MEMBERS_MAX} members already; take one away first, or use another list")]
    TooManyMembers,
    /// The user has too many lists.
    #[error("the user has {LISTS_MAX} lists already; take away all members of one first")]
    TooManyLists,
}

/// Whether one more member may be put on a list of `members`, of a user who has `lists` lists.
pub fn has_room(members: u64, lists: usize) -> Result<(), ListRefused> {
    match members {
        0 if lists >= LISTS_MAX => Err(ListRefused::TooManyLists),
        many if many >= MEMBERS_MAX as u64 => Err(ListRefused::TooManyMembers),
        _ => Ok(()),
    }
}

/// A member of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The user whose list it is.
    pub owner: UserNo,
    /// The list that has the user.
    pub list: ListName,
    /// The user who is on the list.
    pub member: UserNo,
    /// Since when the user is on the list, in Unix ms.
    pub since: Millis,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(numbers: &[u32]) -> HashSet<UserNo> {
        numbers.iter().copied().map(UserNo).collect()
    }

    #[test]
    fn s9_an_audience_narrows_the_followers_and_never_widens_them() {
        let of = |left_out: &[u32], followees: Option<&[u32]>| {
            let followees = followees.map(users);
            let found = narrowed([1, 2, 3, 4].map(UserNo), &users(&[1, 2, 3]), &users(left_out), followees.as_ref());
            found.into_iter().map(|reader| reader.0).collect::<Vec<_>>()
        };
        assert_eq!(of(&[], None), [1, 2, 3], "4 is on a list and does not follow");
        assert_eq!(of(&[2], None), [1, 3]);
        assert_eq!(of(&[2], Some(&[1, 2, 4])), [1]);
    }

    #[test]
    fn s9_a_list_has_room_up_to_its_bounds() {
        assert_eq!(has_room(0, LISTS_MAX - 1), Ok(()));
        assert_eq!(has_room(0, LISTS_MAX), Err(ListRefused::TooManyLists));
        assert_eq!(has_room(1, LISTS_MAX), Ok(()), "it is one of the lists that are there");
        assert_eq!(has_room(MEMBERS_MAX as u64 - 1, 1), Ok(()));
        assert_eq!(has_room(MEMBERS_MAX as u64, 1), Err(ListRefused::TooManyMembers));
    }
}
