//! Mentions: the users whom an item or a comment names. The backend names these users; Feedgate reads no text.
//!
//! ```text
//!   publish, comment, edit ──▶ the list is stored with the item or the comment, and shown with it
//!                                 └──▶ who is named and may see it is told, by `crate::notify`
//! ```
//!
//! Invariants:
//! - A list names each user once, in the order in which they were given.
//! - Stores keep a list as one text of names. A list stays as it was written, whatever becomes of the users.

use compact_str::CompactString;

use crate::UserId;

/// The most users whom one item or comment mentions.
pub const MENTIONS_MAX: usize = 50;

/// The character between two names in the text of a list. No name has this character.
const BETWEEN: char = ' ';

/// Gives these users, each once.
pub fn each_once(users: Vec<UserId>) -> Vec<UserId> {
    let mut once: Vec<UserId> = Vec::with_capacity(users.len());
    for user in users {
        if !once.contains(&user) {
            once.push(user);
        }
    }
    once
}

/// A list as stores keep it; `None` if it is empty.
pub fn text_of(users: &[UserId]) -> Option<CompactString> {
    let mut text = CompactString::default();
    for user in users {
        if !text.is_empty() {
            text.push(BETWEEN);
        }
        text.push_str(user.as_str());
    }
    (!text.is_empty()).then_some(text)
}

/// The list that a store has kept; `None` if that is no list.
pub fn read(text: Option<&str>) -> Option<Vec<UserId>> {
    let Some(text) = text else { return Some(vec![]) };
    text.split(BETWEEN).map(|name| name.parse().ok()).collect()
}

/// How a list has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remention {
    /// The users who are named now, and were not.
    pub added: Vec<UserId>,
    /// The users who were named, and are not now.
    pub removed: Vec<UserId>,
}

impl Remention {
    /// How the list `before` becomes the list `now`.
    pub fn between(before: &[UserId], now: &[UserId]) -> Self {
        let without = |these: &[UserId], those: &[UserId]| {
            these.iter().filter(|user| !those.contains(user)).cloned().collect::<Vec<_>>()
        };
        Self { added: without(now, before), removed: without(before, now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(names: &[&str]) -> Vec<UserId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn s5_a_list_of_mentions_comes_back_as_it_was_written() {
        for names in [&["bob"][..], &["zoe", "a:b@c", "bob"], &[]] {
            let text = text_of(&users(names));
            assert_eq!(read(text.as_deref()), Some(users(names)));
        }
        assert_eq!(text_of(&[]), None, "no mention takes no room");
        assert_eq!(read(Some("bob  cid")), None, "what is no list is not taken for one");
        assert_eq!(each_once(users(&["bob", "ann", "bob"])), users(&["bob", "ann"]));
    }

    #[test]
    fn s5_an_edit_says_who_is_named_now_and_who_is_not_any_more() {
        let change = Remention::between(&users(&["ann", "bob"]), &users(&["bob", "cid"]));
        assert_eq!((change.added, change.removed), (users(&["cid"]), users(&["ann"])));
        assert_eq!(Remention::between(&users(&["ann", "bob"]), &users(&["bob", "ann"])), Remention::default());
    }
}
