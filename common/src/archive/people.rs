//! What backends say of users.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::UserNo;
use crate::error::Result;
use crate::people::{Card, Person};

/// What becomes of a person who is stored already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The new person takes the place of the whole old person.
    Replaced,
    /// The old person stays, as an import wants it: what is stored is newer than what is imported.
    Kept,
}

/// Keeps one [`Person`] for a user, or none. A user without a person is still a user.
#[async_trait]
pub trait People: Send + Sync + 'static {
    /// Stores the people who [count](which_count), all in one transaction. Answers for each person whether the stored
    /// person has changed, and `false` for people who do not count. Durable when it answers, and then every read shows
    /// the change. Unless something changes, nothing is written. A dropped future leaves all of it done or nothing.
    async fn put_people(&self, people: Vec<(UserNo, Person)>, known: Known) -> Result<Vec<bool>>;

    /// Removes the person of `user`. Answers whether there was one; durable when it answers, as
    /// [`Self::put_people`].
    async fn remove_person(&self, user: UserNo) -> Result<bool>;

    /// All that is stored of `user`; `None` if nothing is.
    async fn person(&self, user: UserNo) -> Result<Option<Person>>;

    /// What is to be shown of each of these users, in their order; `None` for a user without a person. One read,
    /// however many users are named.
    async fn cards(&self, users: &[UserNo]) -> Result<Vec<Option<Card>>>;

    /// The people after `after` by the user's number, at most `limit`.
    async fn people(&self, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, Person)>>;
}

/// Which of these people count, by the place of each in the list, for a list that may name a user twice: the last
/// person of the user if stored people are replaced, and the first person if they are kept.
pub fn which_count(people: &[(UserNo, Person)], known: Known) -> BTreeMap<UserNo, usize> {
    let mut count = BTreeMap::new();
    for (nth, (user, _)) in people.iter().enumerate() {
        match known {
            Known::Replaced => _ = count.insert(*user, nth),
            Known::Kept => _ = count.entry(*user).or_insert(nth),
        }
    }
    count
}
