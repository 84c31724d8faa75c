//! Which of the calls that wait may begin: calls that concern one user or one item are carried out one after the other,
//! in the order in which they came; others at the same time.
//!
//! An edit or a delete names an item, not the author, and may name the item by another key than the publish did. So an
//! edit or a delete waits for all calls before it, and all calls after it wait for it.
//!
//! Invariant: a call begins only when no earlier call that is not [done](Order::done) concerns what it concerns.

use std::collections::{HashSet, VecDeque};

use serde::Deserialize;
use serde_json::Value;

use super::{Call, Within};

/// A user or an item that a call concerns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Concern {
    /// A user, by the user id.
    User(String),
    /// An item, as the call names it: an id, or `foreign:` and the foreign id.
    Item(String),
}

/// What a call concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concerns {
    /// These users and items.
    These(Vec<Concern>),
    /// Unknown users and items, so maybe all.
    Anything,
}

/// The users and items that a body, or an operation of it, names. Other fields are for the HTTP API.
#[derive(Deserialize)]
struct Named {
    author: Option<String>,
    user: Option<String>,
    reader: Option<String>,
    other: Option<String>,
    member: Option<String>,
    item: Option<String>,
    #[serde(default)]
    id: Value,
    #[serde(default, rename = "ref")]
    original: Value,
    foreign_id: Option<String>,
}

#[derive(Deserialize)]
struct Many {
    ops: Vec<Named>,
}

impl Named {
    fn concerns(self) -> impl Iterator<Item = Concern> {
        let users =
            [self.author, self.user, self.reader, self.other, self.member].into_iter().flatten().map(Concern::User);
        let foreign = self.foreign_id.map(|foreign| Concern::Item(format!("foreign:{foreign}")));
        let items = [self.id, self.original].iter().filter_map(item).collect::<Vec<_>>();
        users.chain(items).chain(self.item.map(Concern::Item)).chain(foreign)
    }
}

/// The item with this id, which is a string or a number.
fn item(id: &Value) -> Option<Concern> {
    match id {
        Value::String(id) => Some(Concern::Item(id.clone())),
        Value::Number(id) => Some(Concern::Item(id.to_string())),
        _ => None,
    }
}

impl Concerns {
    /// What this call concerns. A call whose body cannot be read concerns anything.
    pub fn of(call: &Call) -> Self {
        let body = &call.body;
        let within: serde_json::Result<Vec<Concern>> = match call.verb.within {
            Within::Nothing => Ok(vec![]),
            Within::Body => serde_json::from_slice(body).map(|named: Named| named.concerns().collect()),
            Within::Operations => {
                serde_json::from_slice(body).map(|many: Many| many.ops.into_iter().flat_map(Named::concerns).collect())
            }
            Within::Items => serde_json::from_slice(body)
                .map(|many: Vec<Named>| many.into_iter().flat_map(Named::concerns).collect()),
            Within::Anybody => return Self::Anything,
        };
        let tokens = call.verb.tokens().into_iter().zip(&call.tokens).filter_map(|(name, token)| match name {
            "user" | "author" | "reader" => Some(Concern::User(token.clone())),
            "item" => Some(Concern::Item(token.clone())),
            _ => None,
        });
        within.map_or(Self::Anything, |within| Self::These(tokens.chain(within).collect()))
    }
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
    /// Adds a call behind all others. No other call in the order may have the same id.
    pub fn push(&mut self, id: u64, concerns: Concerns) {
        self.0.push_back(Entry { id, concerns, begun: false });
    }

    /// The next call that may begin, if there is one. It counts as begun from now on.
    pub fn begin(&mut self) -> Option<u64> {
        let mut before: HashSet<&Concern> = HashSet::new();
        let mut free = None;
        for (at, entry) in self.0.iter().enumerate() {
            match &entry.concerns {
                Concerns::Anything => {
                    if at == 0 && !entry.begun {
                        free = Some(at);
                    }
                    break;
                }
                Concerns::These(these) => {
                    if !entry.begun && !these.iter().any(|one| before.contains(one)) {
                        free = Some(at);
                        break;
                    }
                    before.extend(these);
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

    use super::super::read;
    use super::*;

    fn call(subject: &str, body: &str) -> Call {
        read(subject, |_| None, body.into()).unwrap()
    }

    fn users(names: &[&str]) -> Concerns {
        Concerns::These(names.iter().map(|name| Concern::User((*name).to_owned())).collect())
    }

    #[test]
    fn a_call_concerns_the_users_and_items_that_it_names() {
        let of = |subject, body: &str| Concerns::of(&call(subject, body));
        let and = |names: &[&str], items: &[&str]| match users(names) {
            Concerns::These(users) => Concerns::These(
                users.into_iter().chain(items.iter().map(|item| Concern::Item((*item).to_owned()))).collect(),
            ),
            Concerns::Anything => Concerns::Anything,
        };
        assert_eq!(of("publish", r#"{"author":"ann","body":{"author":"x"}}"#), users(&["ann"]));
        let named = r#"{"author":"ann","id":"7","ref":6,"foreign_id":"post/1","body":1}"#;
        assert_eq!(of("publish", named), and(&["ann"], &["7", "6", "foreign:post/1"]));
        assert_eq!(of("batch", r#"{"ops":[{"author":"ann"},{"author":"bob"}]}"#), users(&["ann", "bob"]));
        assert_eq!(of("follows", r#"{"ops":[{"op":"mute","user":"a","other":"b"}]}"#), users(&["a", "b"]));
        assert_eq!(of("follows", r#"{"ops":[{"op":"accept","user":"a","reader":"b"}]}"#), users(&["a", "b"]));
        assert_eq!(of("lists", r#"{"ops":[{"op":"add","user":"a","list":"l","member":"b"}]}"#), users(&["a", "b"]));
        assert_eq!(of("follow.b%2Eob.ann", ""), users(&["b.ob", "ann"]));
        assert_eq!(of("accept.ann.bob", ""), users(&["ann", "bob"]));
        let reaction = of("react.foreign:post/1.like.bob", "");
        assert_eq!(
            reaction,
            Concerns::These(vec![Concern::Item("foreign:post/1".into()), Concern::User("bob".into())])
        );
        let likes = of("reactions", r#"{"ops":[{"op":"add","item":"7","kind":"like","user":"bob"}]}"#);
        assert_eq!(likes, and(&["bob"], &["7"]));
        let ranking = of("rank.ann.picks", r#"[{"id":"7","rank":2},{"id":"8","rank":1}]"#);
        assert_eq!(ranking, and(&["ann"], &["7", "8"]));
        for (subject, body) in [("edit.7", "{}"), ("comment_delete.7.8", ""), ("publish", "no JSON"), ("people", "{}")]
        {
            assert_eq!(of(subject, body), Concerns::Anything, "{subject}");
        }
    }

    #[test]
    fn a_reaction_waits_for_the_publish_of_its_item_and_for_no_other() {
        let mut order = Order::default();
        let calls = [
            call("publish", r#"{"author":"ann","foreign_id":"1","body":1}"#),
            call("react.foreign:1.like.bob", ""),
            call("react.foreign:2.like.cid", ""),
            call("unreact.foreign:2.like.cid", ""),
        ];
        calls.iter().zip(0..).for_each(|(call, id)| order.push(id, Concerns::of(call)));
        assert_eq!([order.begin(), order.begin(), order.begin()], [Some(0), Some(2), None]);
        order.done(0);
        assert_eq!([order.begin(), order.begin()], [Some(1), None]);
        order.done(2);
        assert_eq!(order.begin(), Some(3));
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
        order.push(2, Concerns::Anything);
        order.push(3, users(&["bob"]));
        assert_eq!([order.begin(), order.begin()], [Some(1), None]);
        order.done(1);
        assert_eq!([order.begin(), order.begin()], [Some(2), None]);
        order.done(2);
        assert_eq!(order.begin(), Some(3));
    }

    proptest! {
        /// Whatever is done in whatever order: each call begins once, after all earlier calls that share a user with
        /// it.
        #[test]
        fn no_call_begins_before_an_earlier_one_of_its_users_is_done(
            calls in prop::collection::vec(prop::option::of(prop::collection::vec(0..4u8, 0..3)), 1..24),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 24),
        ) {
            let mut order = Order::default();
            for (id, named) in calls.iter().enumerate() {
                let concerns = named.as_ref().map_or(Concerns::Anything, |some| {
                    Concerns::These(some.iter().map(|user| Concern::User(user.to_string())).collect())
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
