//! Lines: the notifications of one group that were not seen are one item, with a count and the last actors.
//!
//! ```text
//!   deeds join ──▶ Forming: members, newest first ──▶ settle: at most one change of the line
//!   deeds leave ─┘                                     joined: delete and add    left: edit, replace or delete
//! ```
//!
//! A *member* is a deed of which a line tells. However many deeds join and leave a line in one transaction, the line
//! changes once. Everything here is pure; [`crate::accept::gather`] says which line a deed belongs to.
//!
//! Invariants:
//! - The count of a line is the number of its members, and its item tells of the newest of them. When the item changes,
//!   it names those of the last [`ACTORS`] who are behind no shield by then; if all of them are, it names the last one.
//! - A line whose last member has left has no item and no row.

use compact_str::CompactString;
use serde::Deserialize;

use crate::archive::{Audience, Publish};
use crate::error::StoreError;
use crate::{Body, FeedId, ItemId, Millis, UserId, UserNo};

/// How many members name their actors in the body of a line: the newest.
pub const ACTORS: usize = 3;

/// A deed of which a line tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The place of the member in the line: greater for each deed that joins.
    pub seq: u64,
    /// The [key](super::Deed::key) of the deed. It is in one line at most.
    pub key: CompactString,
    /// The user who did it.
    pub actor: UserNo,
    /// The body of a notification of this deed alone.
    pub told: Body,
}

/// A line as it is stored. Its id is that of its first item. If its item is deleted by itself, the line is over: no
/// deed joins it, and later writes remove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The user who is told.
    pub reader: UserNo,
    /// What its deeds have in common, by [`group`].
    pub group: CompactString,
    /// The kind of its items.
    pub kind: CompactString,
    /// The item that tells of it now.
    pub item: ItemId,
    /// How many members it has.
    pub count: u64,
    /// The place of the next member.
    pub next: u64,
}

/// A line with its newest members.
#[derive(Debug, Clone, PartialEq)]
pub struct LineRow {
    /// The line as it is stored.
    pub line: Line,
    /// The newest members of the line, newest first; all of them, or as many as were asked for.
    pub newest: Vec<Member>,
}

impl LineRow {
    /// To be called by a store that has read the newest members, `asked` at most. If there are fewer, these are all: a
    /// line whose item was deleted may count members that are removed by now.
    pub fn correct_count(&mut self, asked: usize) {
        if self.newest.len() < asked {
            self.line.count = self.newest.len() as u64;
        }
    }
}

/// What becomes of the item of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Then {
    /// The item is deleted, because no member is left.
    Gone,
    /// The item gets another body. Its place stays, and whether it was seen.
    Edited(Body),
    /// The item, if there is one, is deleted, and another one is made.
    Replaced(UserNo, Box<Publish>),
    /// The item was deleted before; only rows change.
    Nothing,
}

/// A change of one line: all that a transaction does to it.
#[derive(Debug, Clone, PartialEq)]
pub struct LineWrite {
    /// The line; `None` if it begins with this change.
    pub id: Option<ItemId>,
    /// The line as it is then. If its item is [replaced](Then::Replaced), the new one is not known here.
    pub line: Line,
    /// The deeds that join.
    pub joined: Vec<Member>,
    /// The keys of the members that leave.
    pub left: Vec<CompactString>,
    /// What becomes of the item of the line.
    pub then: Then,
}

/// The group of the deeds that tell of this item by items of this kind.
pub fn group(kind: &str, item: Option<ItemId>) -> CompactString {
    let item = item.map(|item| item.to_string()).unwrap_or_default();
    super::hash(&format!("line\0{kind}\0{item}"))
}

/// The user who did what a body tells; `None` if it is not the body of a notification.
pub fn actor(told: &Body) -> Option<UserId> {
    #[derive(Deserialize)]
    struct Actor {
        actor: CompactString,
    }
    serde_json::from_str::<Actor>(told.get()).ok()?.actor.parse().ok()
}

/// The item of a line that lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stands {
    pub(crate) author: UserNo,
    pub(crate) feed: FeedId,
    pub(crate) published_at: Millis,
    pub(crate) rank: i64,
}

/// A line while deeds join and leave it.
#[derive(Debug, Clone)]
pub(crate) struct Forming {
    id: Option<ItemId>,
    line: Line,
    newest: Vec<Member>,
    /// The actors of stored members who are behind a shield by now.
    hidden: Vec<UserNo>,
    stands: Option<Stands>,
    /// The key of the member that the item tells of.
    head: Option<CompactString>,
    feed: FeedId,
    joined: Vec<Member>,
    left: Vec<CompactString>,
}

impl Forming {
    /// A line that is to begin.
    pub(crate) fn new(reader: UserNo, group: CompactString, kind: CompactString, feed: FeedId) -> Self {
        let line = Line { reader, group, kind, item: ItemId(0), count: 0, next: 1 };
        let (newest, hidden, joined, left) = (vec![], vec![], vec![], vec![]);
        Self { id: None, line, newest, hidden, stands: None, head: None, feed, joined, left }
    }

    /// A stored line, and its item if that lives. `hidden` are the actors of its members who are behind a shield.
    pub(crate) fn stored(id: ItemId, row: &LineRow, stands: Option<Stands>, hidden: Vec<UserNo>) -> Self {
        let LineRow { line, newest } = row.clone();
        let is_head = |member: &&Member| stands.is_none_or(|item| item.author == member.actor);
        let head = newest.iter().find(is_head).map(|member| member.key.clone());
        let feed = stands.map_or(FeedId::MAIN, |item| item.feed);
        Self { id: Some(id), line, newest, hidden, stands, head, feed, joined: vec![], left: vec![] }
    }

    /// The members whose actors the item names, newest first.
    fn named(&self) -> Vec<&Member> {
        let newest = self.newest.iter().take(ACTORS);
        let open: Vec<&Member> = newest.filter(|member| !self.hidden.contains(&member.actor)).collect();
        if open.is_empty() { self.newest.first().into_iter().collect() } else { open }
    }

    /// The reader who sees how the line changes; nobody if the item of the line was deleted before.
    pub(crate) fn seen_by(&self) -> Option<UserNo> {
        (self.id.is_none() || self.stands.is_some()).then_some(self.line.reader)
    }

    /// Takes in a deed. It must not be a member already.
    pub(crate) fn join(&mut self, key: CompactString, actor: UserNo, told: Body) {
        let member = Member { seq: self.line.next, key, actor, told };
        self.line.next += 1;
        self.line.count += 1;
        self.newest.insert(0, member.clone());
        self.joined.push(member);
    }

    /// Lets a member go.
    pub(crate) fn leave(&mut self, key: &CompactString) {
        self.line.count = self.line.count.saturating_sub(1);
        self.newest.retain(|member| member.key != *key);
        let joined = self.joined.len();
        self.joined.retain(|member| member.key != *key);
        if self.joined.len() == joined {
            self.left.push(key.clone());
        }
    }

    /// The change that comes of it all; `None` if nothing has changed. `Corrupt` if a member tells nothing.
    pub(crate) fn settle(self) -> Result<Option<LineWrite>, StoreError> {
        let is_empty = self.line.count == 0;
        if (self.joined.is_empty() && self.left.is_empty()) || (is_empty && self.id.is_none()) {
            return Ok(None);
        }
        let then = match (self.stands, self.named().first().copied()) {
            (None, _) if self.id.is_some() => Then::Nothing,
            (_, _) if is_empty => Then::Gone,
            (_, None) => return Err(StoreError::corrupt("a line has members of which none was loaded")),
            (Some(_), Some(head)) if self.head.as_ref() == Some(&head.key) => Then::Edited(self.body(head)?),
            (stands, Some(head)) => {
                // A deed that joins brings the line to the top. If a deed leaves, the line keeps its place.
                let place = stands.filter(|_| self.joined.is_empty());
                let publish = Publish {
                    kind: Some(self.line.kind.clone()),
                    foreign_id: Some(head.key.clone()),
                    audience: Audience::Users(vec![]),
                    feed: self.feed,
                    published_at: place.map(|place| place.published_at),
                    rank: place.map(|place| place.rank),
                    ..Publish::new(named(head)?, self.body(head)?)
                };
                Then::Replaced(head.actor, Box::new(publish))
            }
        };
        let Self { id, line, joined, left, .. } = self;
        Ok(Some(LineWrite { id, line, joined, left, then }))
    }

    /// The body of the item: what its newest member tells, with the last actors and the count.
    fn body(&self, head: &Member) -> Result<Body, StoreError> {
        let mut actors: Vec<UserId> = vec![];
        for member in self.named() {
            let actor = named(member)?;
            if !actors.contains(&actor) {
                actors.push(actor);
            }
        }
        let actors = serde_json::to_string(&actors).expect("names are JSON");
        let told = head.told.get();
        let told = told.strip_suffix('}').unwrap_or(told);
        let json = format!("{told},\"actors\":{actors},\"count\":{}}}", self.line.count);
        Body::stored(json).map_err(StoreError::corrupt)
    }
}

fn named(member: &Member) -> Result<UserId, StoreError> {
    let nobody = || StoreError::corrupt(format_args!("the member {:?} of a line names no actor", member.key));
    actor(&member.told).ok_or_else(nobody)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: UserNo = UserNo(1);
    const STANDS: Stands = Stands { author: UserNo(9), feed: FeedId(3), published_at: 70, rank: 71 };

    fn told(actor: &str) -> Body {
        Body::stored(format!("{{\"actor\":\"{actor}\",\"item\":\"7\"}}")).unwrap()
    }

    fn join(line: &mut Forming, names: &[&str]) {
        names.iter().for_each(|name| line.join(format!("key-{name}").into(), UserNo(9), told(name)));
    }

    fn new() -> Forming {
        Forming::new(ANN, "g".into(), "like".into(), FeedId(3))
    }

    /// A stored line of these members, of which the last is the newest.
    fn stored(names: &[&str], stands: Option<Stands>) -> Forming {
        let mut line = new();
        join(&mut line, names);
        let row = LineRow { line: Line { item: ItemId(50), ..line.line }, newest: line.newest };
        Forming::stored(ItemId(40), &row, stands, vec![])
    }

    /// What a replaced item says, and whether it keeps its place.
    fn replaced(write: &LineWrite) -> (&str, &str, bool) {
        let Then::Replaced(_, publish) = &write.then else { panic!("{write:?} replaces nothing") };
        assert_eq!(publish.published_at.is_some(), publish.rank.is_some());
        (publish.author.as_str(), publish.body.get(), publish.rank == Some(71))
    }

    #[test]
    fn s6_a_line_counts_all_and_names_the_last_three_newest_first() {
        let mut line = new();
        join(&mut line, &["bob", "cid", "dan", "eve"]);
        let write = line.settle().unwrap().unwrap();
        let body = r#"{"actor":"eve","item":"7","actors":["eve","dan","cid"],"count":4}"#;
        assert_eq!(replaced(&write), ("eve", body, false));
        assert_eq!((write.id, write.line.count, write.joined.len(), write.left.len()), (None, 4, 4, 0));
        let mut again = stored(&["bob", "cid"], Some(STANDS));
        again.join("another".into(), UserNo(9), told("cid"));
        let write = again.settle().unwrap().unwrap();
        let body = r#"{"actor":"cid","item":"7","actors":["cid","bob"],"count":3}"#;
        assert_eq!(replaced(&write), ("cid", body, false), "an actor is named once, and it goes to the top");
        assert_eq!(write.joined[0].seq, 3, "behind the others");
    }

    #[test]
    fn s6_who_leaves_is_told_of_no_more_and_the_line_keeps_its_place() {
        let mut line = stored(&["bob", "cid", "dan"], Some(STANDS));
        line.leave(&"key-bob".into());
        let write = line.settle().unwrap().unwrap();
        let Then::Edited(body) = &write.then else { panic!("{write:?}") };
        assert_eq!(body.get(), r#"{"actor":"dan","item":"7","actors":["dan","cid"],"count":2}"#);
        assert_eq!((write.left.len(), write.id), (1, Some(ItemId(40))));
        let mut line = stored(&["bob", "cid", "dan"], Some(STANDS));
        line.leave(&"key-dan".into());
        let write = line.settle().unwrap().unwrap();
        let body = r#"{"actor":"cid","item":"7","actors":["cid","bob"],"count":2}"#;
        assert_eq!(replaced(&write), ("cid", body, true), "the item is that of the newest who is left");
    }

    /// A stored line of users 1 to 4, of whom 4 is the newest and the author of the item.
    fn of_four(hidden: &[u32], author: u32) -> Forming {
        let of = |seq: u64, name: &str| {
            let (key, actor) = (format!("key-{name}").into(), UserNo(seq as u32));
            Member { seq, key, actor, told: told(name) }
        };
        let newest = vec![of(4, "eve"), of(3, "dan"), of(2, "cid"), of(1, "bob")];
        let line = Line { item: ItemId(50), count: 4, next: 5, ..new().line };
        let stands = Some(Stands { author: UserNo(author), ..STANDS });
        let hidden = hidden.iter().copied().map(UserNo).collect();
        Forming::stored(ItemId(40), &LineRow { line, newest }, stands, hidden)
    }

    #[test]
    fn s6_who_is_behind_a_shield_by_now_is_named_no_more_when_the_line_changes() {
        let body = |actor: &str, actors: &str, count: u64| {
            format!(r#"{{"actor":"{actor}","item":"7","actors":[{actors}],"count":{count}}}"#)
        };
        let mut line = of_four(&[2, 4], 4);
        line.join("key-fay".into(), UserNo(5), told("fay"));
        let write = line.settle().unwrap().unwrap();
        assert_eq!(replaced(&write), ("fay", &*body("fay", r#""fay","dan""#, 5), false));
        let mut line = of_four(&[4], 4);
        line.leave(&"key-bob".into());
        let write = line.settle().unwrap().unwrap();
        assert_eq!(replaced(&write), ("dan", &*body("dan", r#""dan","cid""#, 3), true), "the author too");
        let mut line = of_four(&[4], 3);
        line.leave(&"key-bob".into());
        let edited = Body::stored(body("dan", r#""dan","cid""#, 3)).unwrap();
        assert_eq!(line.settle().unwrap().unwrap().then, Then::Edited(edited), "once");
        let mut line = of_four(&[2, 3, 4], 4);
        line.leave(&"key-bob".into());
        let edited = Body::stored(body("eve", r#""eve""#, 3)).unwrap();
        assert_eq!(line.settle().unwrap().unwrap().then, Then::Edited(edited), "there is nobody else");
    }

    #[test]
    fn s6_the_last_who_leaves_takes_the_line_along() {
        let mut line = stored(&["bob"], Some(STANDS));
        line.leave(&"key-bob".into());
        assert_eq!(line.settle().unwrap().unwrap().then, Then::Gone);
        let mut line = stored(&["bob"], None);
        line.leave(&"key-bob".into());
        let write = line.settle().unwrap().unwrap();
        assert_eq!((write.then, write.line.count), (Then::Nothing, 0), "the item was deleted before");
    }

    #[test]
    fn s6_what_joins_and_leaves_at_once_changes_nothing() {
        let mut line = new();
        join(&mut line, &["bob"]);
        line.leave(&"key-bob".into());
        assert_eq!(line.settle().unwrap(), None);
        let mut line = stored(&["bob"], Some(STANDS));
        join(&mut line, &["cid"]);
        line.leave(&"key-cid".into());
        assert_eq!(line.clone().settle().unwrap(), None);
        line.leave(&"key-bob".into());
        join(&mut line, &["bob"]);
        let write = line.settle().unwrap().unwrap();
        assert_eq!((write.left.len(), write.joined.len(), write.line.count), (1, 1, 1));
    }

    #[test]
    fn s6_a_group_is_of_a_kind_and_an_item_and_never_changes() {
        let groups = [group("like", Some(ItemId(7))), group("like", Some(ItemId(8))), group("like", None)];
        let other = group("seen", Some(ItemId(7)));
        assert!(!groups.contains(&other) && groups[0] != groups[1] && groups[1] != groups[2]);
        assert_eq!(groups[0].len(), 32, "stores hold it");
    }
}
