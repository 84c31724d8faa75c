//! Which of the calls that wait may begin: calls that concern one user are carried out one after the other, in the order
//! in which they came; others at the same time.
//!
//! An edit or a delete names an item, not its author. So it waits for all calls before it, and all calls after it wait
//! for it.
//!
//! Invariant: a call begins only when no earlier call that is not [done](Order::done) concerns one of its users.

use std::collections::{HashSet, VecDeque};

use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::{Call, Verb};

/// Whom a call concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concerns {
    /// These users, by their names.
    Users(Vec<String>),
    /// Nobody knows which users, so maybe any of them.
    Everybody,
}

/// The names in a body that say whom it concerns. Other fields are for the HTTP API.
#[derive(Deserialize)]
struct Named {
    author: Option<String>,
    user: Option<String>,
    other: Option<String>,
}

#[derive(Deserialize)]
struct Many {
    ops: Vec<Named>,
}

impl Named {
    fn names(self) -> impl Iterator<Item = String> {
        [self.author, self.user, self.other].into_iter().flatten()
    }
}

impl Concerns {
    /// Whom this call concerns. A call whose users cannot be read concerns everybody.
    pub fn of(call: &Call) -> Self {
        let users = match call.verb {
            Verb::Publish => serde_json::from_slice(&call.body).map(|named: Named| named.names().collect()),
            Verb::Batch | Verb::Follows => serde_json::from_slice(&call.body)
                .map(|many: Many| many.ops.into_iter().flat_map(Named::names).collect()),
            Verb::Follow | Verb::Unfollow => Ok(segments(&call.path)),
            Verb::Edit | Verb::Delete => return Self::Everybody,
        };
        users.map_or(Self::Everybody, Self::Users)
    }
}

/// The names of the user and the author in `/v1/users/{user}/following/{author}`, as [`Named`] has them.
fn segments(path: &str) -> Vec<String> {
    let names = path.strip_prefix("/v1/users/").and_then(|rest| rest.split_once("/following/"));
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    names.map(|(user, author)| vec![decoded(user), decoded(author)]).unwrap_or_default()
}

struct Entry {
    id: u64,
    concerns: Concerns,
    begun: bool,
}

/// The calls that are not done, in the order in which they came. The caller bounds their number.
#[derive(Default)]
pub struct Order(VecDeque<Entry>);

impl Order {
    /// Adds a call behind all others. Its id must not be that of another.
    pub fn push(&mut self, id: u64, concerns: Concerns) {
        self.0.push_back(Entry { id, concerns, begun: false });
    }

    /// The next call that may begin, if there is one. It counts as begun from now on.
    pub fn begin(&mut self) -> Option<u64> {
        let mut before: HashSet<&str> = HashSet::new();
        let mut free = None;
        for (at, entry) in self.0.iter().enumerate() {
            match &entry.concerns {
                Concerns::Everybody => {
                    if at == 0 && !entry.begun {
                        free = Some(at);
                    }
                    break;
                }
                Concerns::Users(users) => {
                    if !entry.begun && !users.iter().any(|user| before.contains(&**user)) {
                        free = Some(at);
                        break;
                    }
                    before.extend(users.iter().map(|user| &**user));
                }
            }
        }
        let entry = &mut self.0[free?];
        entry.begun = true;
        Some(entry.id)
    }

    /// The call with this id is done: what waited for it may begin.
    pub fn done(&mut self, id: u64) {
        self.0.retain(|entry| entry.id != id);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(verb: Verb, path: &str, body: &str) -> Call {
        Call { verb, path: path.to_owned(), key: None, if_match: None, body: body.into() }
    }

    fn users(names: &[&str]) -> Concerns {
        Concerns::Users(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_call_concerns_the_users_that_it_names() {
        let of = |verb, path: &str, body: &str| Concerns::of(&call(verb, path, body));
        assert_eq!(of(Verb::Publish, "", r#"{"author":"ann","body":{"author":"x"}}"#), users(&["ann"]));
        assert_eq!(of(Verb::Batch, "", r#"{"ops":[{"author":"ann"},{"author":"bob"}]}"#), users(&["ann", "bob"]));
        assert_eq!(of(Verb::Follows, "", r#"{"ops":[{"op":"mute","user":"a","other":"b"}]}"#), users(&["a", "b"]));
        assert_eq!(of(Verb::Follow, "/v1/users/b%2Eob/following/ann", ""), users(&["b.ob", "ann"]));
        assert_eq!(of(Verb::Edit, "/v1/items/7", "{}"), Concerns::Everybody);
        assert_eq!(of(Verb::Publish, "", "no JSON"), Concerns::Everybody);
    }

    #[test]
    fn an_author_waits_for_the_earlier_call_and_others_do_not() {
        let mut order = Order::default();
        for (id, name) in [(1, "ann"), (2, "ann"), (3, "bob")] {
            order.push(id, users(&[name]));
        }
        assert_eq!([order.begin(), order.begin(), order.begin()], [Some(1), Some(3), None]);
        order.done(1);
        assert_eq!([order.begin(), order.begin()], [Some(2), None]);
    }

    #[test]
    fn an_edit_waits_for_all_before_it_and_holds_up_all_after_it() {
        let mut order = Order::default();
        order.push(1, users(&["ann"]));
        order.push(2, Concerns::Everybody);
        order.push(3, users(&["bob"]));
        assert_eq!([order.begin(), order.begin()], [Some(1), None]);
        order.done(1);
        assert_eq!([order.begin(), order.begin()], [Some(2), None]);
        order.done(2);
        assert_eq!(order.begin(), Some(3));
    }

    proptest! {
        /// Whatever is done in whatever order: each call begins once, after all earlier calls that share a user with it.
        #[test]
        fn no_call_begins_before_an_earlier_one_of_its_users_is_done(
            calls in prop::collection::vec(prop::option::of(prop::collection::vec(0..4u8, 0..3)), 1..24),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 24),
        ) {
            let mut order = Order::default();
            for (id, named) in calls.iter().enumerate() {
                let concerns = named.as_ref().map_or(Concerns::Everybody, |some| {
                    Concerns::Users(some.iter().map(u8::to_string).collect())
                });
                order.push(id as u64, concerns);
            }
            let (mut begun, mut done) = (vec![], HashSet::new());
            let clash = |a: usize, b: usize| match (&calls[a], &calls[b]) {
                (Some(a), Some(b)) => a.iter().any(|user| b.contains(user)),
                _ => true,
            };
            for pick in picks {
                while let Some(id) = order.begin() {
                    let id = id as usize;
                    prop_assert!((0..id).all(|earlier| done.contains(&earlier) || !clash(earlier, id)));
                    begun.push(id);
                }
                let running: Vec<usize> = begun.iter().copied().filter(|id| !done.contains(id)).collect();
                if running.is_empty() {
                    break;
                }
                let id = running[pick.index(running.len())];
                order.done(id as u64);
                done.insert(id);
            }
            begun.sort_unstable();
            prop_assert_eq!(begun, (0..calls.len()).collect::<Vec<_>>());
        }
    }
}
