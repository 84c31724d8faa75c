//! Notifications: direct items by which Feedgate itself tells a user what another user did.
//!
//! ```text
//!   a reaction, comment, reply, repost, follow or mention is ──┐ same transaction
//!   accepted                                                   │
//!     Rules::of_…: whom it concerns, of which kind             ├──▶ Write::Notify ──▶ a direct item of the actor
//!   it is taken back ──────────────────────────────────────────┴──▶ Write::Withdraw ─▶ its delete, unless it was seen
//! ```
//!
//! Everything here is a pure function of the change and the settings. [`crate::accept`] decides about the two writes.
//!
//! Invariants:
//! - Nobody is told of what he or she did, and of one deed a user is told once.
//! - A notification is found by its [key](Deed::key), which says what it tells. While its item lives, nothing is told a
//!   second time. The key is the foreign id of the item, so no other row could differ from it.
//! - A deed of a group is a member of a [line](lines). The item of the line has the key of its newest member.

pub mod lines;

use compact_str::{CompactString, format_compact};
use serde::Serialize;

use crate::archive::{Answer, Audience, Publish, Write, Written};
use crate::around::{CommentRows, CommentWrite, Commented, Reaction, Visible};
use crate::graph::Shields;
use crate::mentions::Remention;
use crate::named::KIND_MAX;
use crate::{Body, FeedId, ItemId, UserId, UserNo};

/// How the foreign id of each notification begins.
pub const KEY_PREFIX: &str = "feedgate:";

/// Whether a direct item with this foreign id is a notification: Feedgate has made it, and its author has sent nothing.
pub fn is_notification(foreign_id: Option<&str>) -> bool {
    foreign_id.is_some_and(|key| key.starts_with(KEY_PREFIX))
}

/// The sorts of deeds of which users are told, by the names of their settings.
pub const SORTS: [&str; 8] = ["reaction", "comment", "reply", "repost", "follow", "request", "accept", "mention"];

/// The kind of the items that tell of one sort of deed, and the feed that has this kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The kind of the items.
    pub kind: CompactString,
    /// The feed of the user to which they go.
    pub feed: FeedId,
    /// Whether those of one item that were not seen are one [line](lines).
    pub grouped: bool,
}

impl Way {
    /// The group of the line that a deed joins; `None` if it has an item of its own.
    pub fn group(&self, item: Option<ItemId>) -> Option<CompactString> {
        self.grouped.then(|| lines::group(&self.kind, item))
    }
}

/// For which sorts of deeds users get notifications, and how. For a sort without a way nobody gets any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// A reaction to an item of the user.
    pub reaction: Option<Way>,
    /// A comment on an item of the user.
    pub comment: Option<Way>,
    /// An answer to a comment of the user.
    pub reply: Option<Way>,
    /// A repost of an item of the user.
    pub repost: Option<Way>,
    /// A follow of the user.
    pub follow: Option<Way>,
    /// A request to follow the user.
    pub request: Option<Way>,
    /// The acceptance of a request of the user to follow.
    pub accept: Option<Way>,
    /// A mention of the user in an item or a comment.
    pub mention: Option<Way>,
    /// Whose comments users see. Of a comment that a user does not see, the user is not told.
    pub visible: Visible,
}

/// What a user did, as it concerns another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed<'a> {
    /// A user has reacted to an item.
    Reaction {
        /// The item that got the reaction.
        item: ItemId,
        /// The kind of the reaction.
        kind: &'a str,
        /// The user who has reacted.
        actor: &'a UserId,
    },
    /// A user has written a comment on an item.
    Comment {
        /// The item of the comment.
        item: ItemId,
        /// The id of the comment.
        comment: ItemId,
    },
    /// A user has answered a comment.
    Reply {
        /// The item of both comments.
        item: ItemId,
        /// The id of the answer.
        comment: ItemId,
        /// The id of the comment that it answers.
        reply_to: ItemId,
    },
    /// A user has reposted an item.
    Repost {
        /// The item that is reposted.
        item: ItemId,
        /// The id of the repost.
        repost: ItemId,
    },
    /// A user follows another one, or has asked to. Both are one deed, of which the other user is told once.
    Follow {
        /// The user who is followed, or asked.
        author: &'a UserId,
        /// The user who follows, or asks.
        actor: &'a UserId,
        /// Whether the actor has only asked so far.
        asks: bool,
    },
    /// A user has accepted the request of another one to follow.
    Accept {
        /// The user who had asked.
        reader: &'a UserId,
        /// The user who has accepted.
        actor: &'a UserId,
    },
    /// A user has mentioned another one.
    Mention {
        /// The item that mentions the user, or on which the comment is that does.
        item: ItemId,
        /// The comment; `None` if the item itself mentions the user.
        comment: Option<ItemId>,
        /// The user who is mentioned.
        user: &'a UserId,
    },
}

/// The body of a notification.
#[derive(Serialize)]
struct Told<'a> {
    actor: &'a UserId,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reaction: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repost: Option<ItemId>,
}

/// The item or the comment that mentions users.
#[derive(Clone, Copy)]
struct Mentioning {
    /// The item that mentions them, or on which the comment is that does.
    item: ItemId,
    /// The author of that item.
    author: UserNo,
    /// The comment, if it is one.
    comment: Option<ItemId>,
    /// Whether all who see the item see what mentions them, whosever comments users see.
    near: bool,
}

impl<'a> Deed<'a> {
    /// An item has mentioned a user.
    fn of_item(item: ItemId, user: &'a UserId) -> Self {
        Self::Mention { item, comment: None, user }
    }
}

impl Deed<'_> {
    /// The foreign id of the item that tells of it. Equal deeds have equal keys, in every store, and two deeds never
    /// do.
    pub fn key(&self) -> CompactString {
        // Names of users hold no zero byte, so no two deeds have one text.
        let text = match self {
            Self::Reaction { item, kind, actor } => format!("reaction\0{item}\0{actor}\0{kind}"),
            Self::Comment { comment, .. } => format!("comment\0{comment}"),
            Self::Reply { comment, .. } => format!("reply\0{comment}"),
            Self::Repost { repost, .. } => format!("repost\0{repost}"),
            Self::Follow { author, actor, .. } => format!("follow\0{author}\0{actor}"),
            Self::Accept { reader, actor } => format!("accept\0{reader}\0{actor}"),
            Self::Mention { item, comment: None, user } => format!("mention\0{item}\0{user}"),
            Self::Mention { item, comment: Some(comment), user } => format!("mention\0{item}\0{comment}\0{user}"),
        };
        format_compact!("{KEY_PREFIX}{}", hash(&text))
    }

    /// The item that it was done to; `None` if it was done to a user.
    fn item(&self) -> Option<ItemId> {
        match *self {
            Self::Reaction { item, .. }
            | Self::Comment { item, .. }
            | Self::Reply { item, .. }
            | Self::Repost { item, .. }
            | Self::Mention { item, .. } => Some(item),
            Self::Follow { .. } | Self::Accept { .. } => None,
        }
    }

    /// What the item says of it, in JSON.
    fn body(&self, actor: &UserId) -> Body {
        let nothing = Told { actor, item: None, reaction: None, comment: None, reply_to: None, repost: None };
        let told = match *self {
            Self::Reaction { item, kind, .. } => Told { item: Some(item), reaction: Some(kind), ..nothing },
            Self::Comment { item, comment } => Told { item: Some(item), comment: Some(comment), ..nothing },
            Self::Reply { item, comment, reply_to } => {
                Told { item: Some(item), comment: Some(comment), reply_to: Some(reply_to), ..nothing }
            }
            Self::Repost { item, repost } => Told { item: Some(item), repost: Some(repost), ..nothing },
            Self::Mention { item, comment, .. } => Told { item: Some(item), comment, ..nothing },
            Self::Follow { .. } | Self::Accept { .. } => nothing,
        };
        let json = serde_json::to_string(&told).expect("names and numbers are JSON");
        Body::stored(json).expect("what was made as JSON is JSON")
    }

    /// The way of its sort.
    fn way<'r>(&self, rules: &'r Rules) -> Option<&'r Way> {
        match self {
            Self::Reaction { .. } => rules.reaction.as_ref(),
            Self::Comment { .. } => rules.comment.as_ref(),
            Self::Reply { .. } => rules.reply.as_ref(),
            Self::Repost { .. } => rules.repost.as_ref(),
            Self::Follow { asks: false, .. } => rules.follow.as_ref(),
            Self::Follow { asks: true, .. } => rules.request.as_ref(),
            Self::Accept { .. } => rules.accept.as_ref(),
            Self::Mention { .. } => rules.mention.as_ref(),
        }
    }
}

/// A hash of a text, as a text of 32 characters.
fn hash(text: &str) -> CompactString {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(text.as_bytes());
    let hash = u128::from_be_bytes(hash[..16].try_into().expect("a slice of 16 bytes"));
    format_compact!("{hash:032x}")
}

/// An item that tells one user what another one did.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The user who is told.
    pub reader: UserNo,
    /// The user who did it: the author of the item.
    pub actor: UserNo,
    /// The item. Its foreign id is the [key](Deed::key); its audience is empty, since `reader` says whom it is for.
    pub publish: Publish,
    /// The group of the line that the deed joins; `None` if it has an item of its own.
    pub group: Option<CompactString>,
    /// Whether the user is told only if each of the two follows the other.
    pub mutual: bool,
    /// The item that the user must be able to see to be told, and its author.
    pub sees: Option<(ItemId, UserNo)>,
}

/// What a store knows of users and items while it carries out a write.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The author of an item that was loaded.
    pub author_of: &'a dyn Fn(ItemId) -> Option<UserNo>,
    /// The number of a user whom the write names.
    pub number: &'a dyn Fn(&UserId) -> Option<UserNo>,
    /// The name of a user who did something.
    pub name: &'a dyn Fn(UserNo) -> Option<UserId>,
}

/// The outcomes of some changes, and who was told of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notified<T> {
    /// The outcome of each change, in its place.
    pub answers: Vec<T>,
    /// The readers for whom there is something new that is addressed to them: a notification, or its delete.
    pub told: Vec<UserNo>,
}

/// Whether a notification may pass. `shields` are those on the edge from the user who is told to the one who did it: a
/// mute or a block by the former, a hide or a block by the latter. `mutual` says whether each follows the other, of one
/// that takes that, and is true of any other.
pub fn passes(shields: Shields, mutual: bool) -> bool {
    mutual && shields == Shields(0)
}

/// Whether `word` may be the kind of notifications; if not, what is wrong with it.
pub fn check_kind(sort: &str, word: &str) -> Result<(), String> {
    if (1..=KIND_MAX).contains(&word.chars().count()) && !word.contains(char::is_control) {
        return Ok(());
    }
    Err(format!(
        "notify.{sort} must be a kind of 1 to {KIND_MAX} characters, none of them a control character, it is {word:?}"
    ))
}

impl Rules {
    /// The rules by which each sort of [`SORTS`] has the kind that `kind` gives, goes to the feed that `feed` gives for
    /// this kind, and becomes lines if `grouped` says so.
    pub fn new<'a>(
        kind: impl Fn(&str) -> Option<&'a CompactString>,
        feed: impl Fn(&str) -> FeedId,
        grouped: impl Fn(&str) -> bool,
    ) -> Self {
        let way =
            |sort: &str| kind(sort).map(|kind| Way { kind: kind.clone(), feed: feed(kind), grouped: grouped(sort) });
        let [reaction, comment, reply, repost, follow, request, accept, mention] = SORTS.map(way);
        let visible = Visible::default();
        Self { reaction, comment, reply, repost, follow, request, accept, mention, visible }
    }

    /// These rules where users see the comments of these.
    pub fn with_visible(self, visible: Visible) -> Self {
        Self { visible, ..self }
    }

    /// Whether users are told of anything.
    pub fn is_empty(&self) -> bool {
        let Self { reaction, comment, reply, repost, follow, request, accept, mention, visible: _ } = self;
        [reaction, comment, reply, repost, follow, request, accept, mention].into_iter().all(Option::is_none)
    }

    /// The write that tells `reader` of a deed of `actor`, if there is to be one.
    fn tell(&self, deed: &Deed<'_>, reader: UserNo, (actor, name): (UserNo, &UserId)) -> Option<Write> {
        let way = deed.way(self).filter(|_| reader != actor)?;
        let publish = Publish {
            kind: Some(way.kind.clone()),
            foreign_id: Some(deed.key()),
            audience: Audience::Users(vec![]),
            feed: way.feed,
            ..Publish::new(name.clone(), deed.body(name))
        };
        let group = way.group(deed.item());
        Some(Write::Notify(Box::new(Notification { reader, actor, publish, group, mutual: false, sees: None })))
    }

    /// The notification of an answer that its reader sees if `near`, or if all comments are seen, or else only if the
    /// two follow each other.
    fn if_seen(&self, mut write: Write, near: bool) -> Write {
        if let Write::Notify(told) = &mut write {
            told.mutual = self.visible == Visible::Mutual && !near;
        }
        write
    }

    /// The write that takes back what was told of a deed, if users are told of its sort.
    fn withdraw(&self, deed: &Deed<'_>) -> Option<Write> {
        deed.way(self).map(|_| Write::Withdraw { key: deed.key(), even_seen: false })
    }

    /// What follows from a write that was accepted: nothing if it has changed nothing. Imported writes are history, and
    /// nobody is told of a repost for named readers.
    pub fn of_write(&self, write: &Write, written: &Written, known: Known<'_>) -> Vec<Write> {
        let one: Option<Write> = match (write, written) {
            (
                Write::Follow { reader: name, author: followed },
                &Written::Edge { reader, author, fresh: true, pending: asks, .. },
            ) => self.tell(&Deed::Follow { author: followed, actor: name, asks }, author, (reader, name)),
            (
                Write::Unfollow { reader: name, author: followed }
                | Write::Answer { reader: name, author: followed, answer: Answer::Refuse },
                Written::Edge { fresh: true, .. },
            ) => {
                let withdraw = |asks| self.withdraw(&Deed::Follow { author: followed, actor: name, asks });
                withdraw(false).or_else(|| withdraw(true))
            }
            (Write::Answer { reader: asker, author: name, .. }, &Written::Edge { reader, author, fresh: true, .. }) => {
                self.tell(&Deed::Accept { reader: asker, actor: name }, reader, (author, name))
            }
            (Write::Publish(publish), &Written::Published { id, author, fresh: true, .. }) => {
                return self.of_item(publish, id, author, known);
            }
            (Write::Edit { item, .. }, Written::Edited { author, mentions: Remention { added, removed }, .. }) => {
                let off = removed.iter().filter_map(|user| self.withdraw(&Deed::of_item(*item, user)));
                let Some(name) = (known.name)(*author).filter(|_| !added.is_empty()) else { return off.collect() };
                let to = Mentioning { item: *item, author: *author, comment: None, near: true };
                return off.chain(self.mention(to, added, (*author, &name), &[], known)).collect();
            }
            (Write::Delete { item, .. }, Written::Deleted { fresh: true, mentions, .. }) => {
                let repost = self.withdraw(&Deed::Repost { item: *item, repost: *item });
                let named = mentions.iter().filter_map(|user| self.withdraw(&Deed::of_item(*item, user)));
                return repost.into_iter().chain(named).collect();
            }
            _ => None,
        };
        one.into_iter().collect()
    }

    /// What follows from an item that was published. Who is told of it as a repost is not told of a mention too.
    fn of_item(&self, publish: &Publish, id: ItemId, author: UserNo, known: Known<'_>) -> Vec<Write> {
        let actor = (author, &publish.author);
        let reposted = publish.repost_of.filter(|_| publish.audience == Audience::Followers);
        let original = reposted.and_then(|item| Some((item, (known.author_of)(item)?)));
        let repost = original.and_then(|(item, reader)| self.tell(&Deed::Repost { item, repost: id }, reader, actor));
        let told = original.filter(|_| repost.is_some()).map(|(_, reader)| reader);
        let to = Mentioning { item: id, author, comment: None, near: true };
        let named = self.mention(to, &publish.mentions, actor, told.as_slice(), known);
        repost.into_iter().chain(named).collect()
    }

    /// The writes that tell those of `users` who are mentioned, but not those who are `told` of the same already.
    fn mention(
        &self,
        Mentioning { item, author, comment, near }: Mentioning,
        users: &[UserId],
        actor: (UserNo, &UserId),
        told: &[UserNo],
        known: Known<'_>,
    ) -> Vec<Write> {
        let tell = |user: &UserId| {
            let reader = (known.number)(user).filter(|reader| !told.contains(reader))?;
            let mut write = self.tell(&Deed::Mention { item, comment, user }, reader, actor)?;
            if let Write::Notify(told) = &mut write {
                told.sees = Some((item, author));
            }
            Some(self.if_seen(write, near || reader == author))
        };
        users.iter().filter_map(tell).collect()
    }

    /// What follows from a reaction that was given (`on`) or taken back by the user `name`, to an item of `author`.
    pub fn of_reaction(&self, reaction: &Reaction, name: &UserId, author: UserNo, on: bool) -> Option<Write> {
        let deed = Deed::Reaction { item: reaction.item, kind: reaction.kind.as_str(), actor: name };
        if on { self.tell(&deed, author, (reaction.user, name)) } else { self.withdraw(&deed) }
    }

    /// What follows from a change of comments that is `done`. `rows` are those that it was decided from, as they are
    /// now. A user who is told of an answer is not told of it as a comment too, and who is told of either is not told
    /// of a mention. Imported comments are history.
    pub fn of_comment(
        &self,
        write: &CommentWrite,
        done: &Commented,
        rows: &CommentRows,
        known: Known<'_>,
    ) -> Vec<Write> {
        let (item, comment) = (write.item(), done.place.id);
        let Some(row) = rows.comments.get(&comment).filter(|_| done.changed) else { return vec![] };
        let said = Deed::Comment { item, comment };
        let answer = row.reply_to.map(|reply_to| Deed::Reply { item, comment, reply_to });
        let unmention = |user| self.withdraw(&Deed::Mention { item, comment: Some(comment), user });
        let before = rows.mentioned.get(&comment).map_or(&[][..], Vec::as_slice);
        let is_new = match write {
            CommentWrite::Make(new) if new.past.is_some() => return vec![],
            CommentWrite::Delete { .. } => {
                let answer = answer.and_then(|deed| self.withdraw(&deed));
                let named = before.iter().filter_map(unmention);
                return answer.into_iter().chain(self.withdraw(&said)).chain(named).collect();
            }
            CommentWrite::Make(_) => true,
            CommentWrite::Edit { .. } => false,
        };
        let Remention { added, removed } = Remention::between(before, &row.mentions);
        let mut writes: Vec<Write> = removed.iter().filter_map(unmention).collect();
        if !is_new && added.is_empty() {
            return writes;
        }
        let (Some(name), Some(talk)) = ((known.name)(row.author), rows.talks.get(&item)) else { return writes };
        let answered = row.reply_to.and_then(|id| rows.comments.get(&id)).map(|row| row.author);
        let actor = (row.author, &name);
        let of_answer = answer.zip(answered).and_then(|(deed, reader)| self.tell(&deed, reader, actor));
        // The author of the item sees each comment on it, and each user sees what that author says.
        let near = [Some(row.author), answered].contains(&Some(talk.owner));
        let of_answer = of_answer.map(|told| self.if_seen(told, near));
        let is_told = of_answer.is_some() && answered == Some(talk.owner);
        let of_comment = self.tell(&said, talk.owner, actor).filter(|_| !is_told);
        let told = [answered.filter(|_| of_answer.is_some()), of_comment.as_ref().map(|_| talk.owner)];
        let told = Vec::from_iter(told.into_iter().flatten());
        let (author, near) = (talk.owner, row.author == talk.owner);
        let to = Mentioning { item, author, comment: Some(comment), near };
        let named = self.mention(to, &added, actor, &told, known);
        writes.extend(of_answer.into_iter().chain(of_comment).filter(|_| is_new));
        writes.extend(named);
        writes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::around::{CommentPlace, CommentRow, NewComment, PastComment, Talk};

    const ITEM: ItemId = ItemId(7);
    const ANN: UserNo = UserNo(1);
    const BOB: UserNo = UserNo(2);

    /// A store that knows nobody and nothing.
    const NOTHING: Known<'static> = Known { author_of: &|_| None, number: &|_| None, name: &|_| None };

    fn user(name: &str) -> UserId {
        name.parse().unwrap()
    }

    /// Rules by which each sort has a kind of its own name.
    fn rules() -> Rules {
        let kinds = SORTS.map(CompactString::from);
        let kind = |sort: &str| kinds.iter().find(|kind| *kind == sort);
        Rules::new(kind, |kind| FeedId(u16::from(kind == "follow")), |sort| sort == "reaction")
    }

    fn like(user: UserNo) -> Reaction {
        Reaction { item: ITEM, kind: "heart".parse().unwrap(), user, at: 5 }
    }

    /// The kind, the reader and the body of what is told.
    fn told(write: &Write) -> (&str, UserNo, &str) {
        let Write::Notify(told) = write else { panic!("{write:?} tells nothing") };
        (told.publish.kind.as_deref().unwrap(), told.reader, told.publish.body.get())
    }

    #[test]
    fn s5_a_deed_is_told_to_whom_it_concerns_and_to_nobody_else() {
        let write = rules().of_reaction(&like(BOB), &user("bob"), ANN, true).unwrap();
        assert_eq!(told(&write), ("reaction", ANN, r#"{"actor":"bob","item":"7","reaction":"heart"}"#));
        assert_eq!(rules().of_reaction(&like(ANN), &user("ann"), ANN, true), None, "not to oneself");
        assert_eq!(Rules::default().of_reaction(&like(BOB), &user("bob"), ANN, true), None, "not without a kind");
        assert_eq!(Rules::default().of_reaction(&like(BOB), &user("bob"), ANN, false), None);
        let written = {
            let edge = crate::archive::Edge::default();
            Written::Edge { reader: BOB, author: ANN, edge, pending: false, fresh: true, told: vec![] }
        };
        let follow = Write::Follow { reader: user("bob"), author: user("ann") };
        let follows = rules().of_write(&follow, &written, NOTHING);
        let [Write::Notify(follow)] = &follows[..] else { panic!("a follow is told") };
        assert_eq!((follow.reader, follow.actor, follow.publish.feed), (ANN, BOB, FeedId(1)));
        assert_eq!(follow.group, None, "a sort that is not grouped");
        let Write::Notify(like) = &write else { panic!("a reaction is told") };
        assert_eq!(like.group, Some(lines::group("reaction", Some(ITEM))));
        assert_eq!(follow.publish.body.get(), r#"{"actor":"bob"}"#);
    }

    #[test]
    fn s9_a_request_is_told_to_whom_it_asks_and_its_acceptance_to_who_has_asked() {
        let edge = crate::archive::Edge::default();
        let written = |pending| Written::Edge { reader: BOB, author: ANN, edge, pending, fresh: true, told: vec![] };
        let (reader, author) = (user("bob"), user("ann"));
        let follow = Write::Follow { reader: reader.clone(), author: author.clone() };
        let of = |rules: &Rules, write: &Write, pending| rules.of_write(write, &written(pending), NOTHING).pop();
        let asked = of(&rules(), &follow, true).unwrap();
        assert_eq!(told(&asked), ("request", ANN, r#"{"actor":"bob"}"#));
        let answer = |answer| Write::Answer { reader: reader.clone(), author: author.clone(), answer };
        for accepted in [Answer::Accept, Answer::LetIn] {
            assert_eq!(told(&of(&rules(), &answer(accepted), false).unwrap()), ("accept", BOB, r#"{"actor":"ann"}"#));
        }
        let Write::Notify(asked) = asked else { panic!("a request is told") };
        let key = asked.publish.foreign_id.clone().unwrap();
        let taken_back = Some(Write::Withdraw { key, even_seen: false });
        let unfollow = Write::Unfollow { reader: reader.clone(), author: author.clone() };
        for alone in [Rules { request: None, ..rules() }, Rules { follow: None, ..rules() }] {
            assert_eq!(of(&alone, &unfollow, false), taken_back, "one deed, whatever it was told as");
            assert_eq!(of(&alone, &answer(Answer::Refuse), false), taken_back);
        }
        let none = Rules { request: None, accept: None, ..rules() };
        assert_eq!((of(&none, &follow, true), of(&none, &answer(Answer::Accept), false)), (None, None));
    }

    #[test]
    fn s5_what_has_changed_nothing_is_not_told() {
        let edge = crate::archive::Edge::default();
        let stale = Written::Edge { reader: BOB, author: ANN, edge, pending: false, fresh: false, told: vec![] };
        for write in [
            Write::Follow { reader: user("bob"), author: user("ann") },
            Write::Unfollow { reader: user("bob"), author: user("ann") },
        ] {
            assert_eq!(rules().of_write(&write, &stale, NOTHING), []);
        }
        let repost = Publish { repost_of: Some(ITEM), ..Publish::new(user("bob"), Body::stored("1".into()).unwrap()) };
        let published = |fresh| Written::Published {
            id: ItemId(8),
            author: BOB,
            outbox_seq: 1,
            published_at: 5,
            readers: vec![],
            fresh,
            own_edge: false,
            told: vec![],
        };
        let author_of = |id| (id == ITEM).then_some(ANN);
        let known = Known { author_of: &author_of, ..NOTHING };
        let told_of = |fresh| rules().of_write(&Write::Publish(repost.clone()), &published(fresh), known).pop();
        assert_eq!(told(&told_of(true).unwrap()), ("repost", ANN, r#"{"actor":"bob","item":"7","repost":"8"}"#));
        assert_eq!(told_of(false), None, "a retry is answered as the first request, and told of no more");
        let some = Publish { audience: Audience::Users(vec![user("cid")]), ..repost.clone() };
        assert_eq!(rules().of_write(&Write::Publish(some), &published(true), known), []);
    }

    #[test]
    fn s5_each_deed_has_a_key_of_its_own_and_the_same_one_each_time() {
        let [ann, bob] = ["ann", "bob"].map(user);
        let (item, comment, repost) = (ITEM, ItemId(8), ItemId(8));
        let deeds = [
            Deed::Reaction { item, kind: "heart", actor: &bob },
            Deed::Reaction { item, kind: "sad", actor: &bob },
            Deed::Reaction { item, kind: "heart", actor: &ann },
            Deed::Reaction { item: comment, kind: "heart", actor: &bob },
            Deed::Comment { item, comment },
            Deed::Reply { item, comment, reply_to: ItemId(9) },
            Deed::Repost { item, repost },
            Deed::Follow { author: &ann, actor: &bob, asks: false },
            Deed::Follow { author: &bob, actor: &ann, asks: false },
            Deed::Accept { reader: &ann, actor: &bob },
            Deed::Accept { reader: &bob, actor: &ann },
            Deed::Mention { item, comment: None, user: &bob },
            Deed::Mention { item, comment: None, user: &ann },
            Deed::Mention { item, comment: Some(comment), user: &bob },
            Deed::Mention { item: comment, comment: None, user: &bob },
        ];
        let keys: std::collections::BTreeSet<_> = deeds.iter().map(Deed::key).collect();
        assert_eq!(keys.len(), deeds.len());
        assert!(keys.iter().all(|key| crate::archive::may_be_foreign_id(key) && key.starts_with(KEY_PREFIX)));
        // Stores hold keys, so they never change.
        assert_eq!(deeds[7].key(), "feedgate:17ab0a1f2bbca1a42417834a9af5eece");
    }

    /// A comment on [`ITEM`] that mentions these users.
    fn row(author: UserNo, reply_to: Option<ItemId>, mentions: &[UserId]) -> CommentRow {
        CommentRow {
            item: ITEM,
            at: 5,
            author,
            reply_to,
            replies: 0,
            version: 1,
            body: Some(Body::stored("1".into()).unwrap()),
            key: None,
            fingerprint: [0; 16],
            mentions: mentions.to_vec(),
        }
    }

    #[test]
    fn s5_an_answer_tells_whom_it_answers_and_else_the_author_of_the_item() {
        let cid = UserNo(3);
        let (first, second) = (ItemId(11), ItemId(12));
        let rows = |owner, answered| CommentRows {
            talks: [(ITEM, Talk { owner, count: 2, last: None })].into(),
            comments: [(first, row(answered, None, &[])), (second, row(cid, Some(first), &[]))].into(),
            ..CommentRows::default()
        };
        let body = Body::stored("1".into()).unwrap();
        let new = NewComment {
            item: ITEM,
            author: cid,
            reply_to: Some(first),
            body,
            id: None,
            key: None,
            past: None,
            mentions: vec![],
        };
        let done = Commented { place: CommentPlace { at: 5, id: second }, version: 1, changed: true };
        let known = Known { name: &|_| Some(user("cid")), ..NOTHING };
        let of = |rules: &Rules, new: &NewComment, done: &Commented, rows: &CommentRows| {
            let writes = rules.of_comment(&CommentWrite::Make(new.clone()), done, rows, known);
            writes.iter().map(|write| (told(write).0.to_owned(), told(write).1)).collect::<Vec<_>>()
        };
        let both = [("reply".to_owned(), BOB), ("comment".to_owned(), ANN)];
        assert_eq!(of(&rules(), &new, &done, &rows(ANN, BOB)), both);
        assert_eq!(of(&rules(), &new, &done, &rows(ANN, ANN)), [("reply".to_owned(), ANN)], "once");
        assert_eq!(of(&rules(), &new, &done, &rows(ANN, cid)), [("comment".to_owned(), ANN)], "not to oneself");
        let without = Rules { reply: None, ..rules() };
        assert_eq!(of(&without, &new, &done, &rows(ANN, ANN)), [("comment".to_owned(), ANN)]);
        assert_eq!(of(&rules(), &new, &Commented { changed: false, ..done }, &rows(ANN, BOB)), [], "a retry");
        let friends = |owner, answered| {
            let (rules, rows) = (rules().with_visible(Visible::Mutual), rows(owner, answered));
            let writes = rules.of_comment(&CommentWrite::Make(new.clone()), &done, &rows, known);
            let flag = |write: &Write| matches!(write, Write::Notify(told) if told.mutual);
            writes.iter().map(flag).collect::<Vec<_>>()
        };
        assert_eq!(friends(ANN, BOB), [true, false], "an answer is told to a friend, the author of the item sees all");
        assert_eq!(friends(cid, BOB), [false], "everybody sees what the author of the item says");
        assert_eq!(friends(ANN, ANN), [false]);
        let past = Some(PastComment { at: 5, version: 1, deleted: false });
        assert_eq!(of(&rules(), &NewComment { past, ..new.clone() }, &done, &rows(ANN, BOB)), [], "history");
        let gone = CommentWrite::Delete { item: ITEM, id: second, by: None, if_version: None };
        assert_eq!(rules().of_comment(&gone, &done, &rows(ANN, BOB), NOTHING).len(), 2, "both are told no more");
    }

    #[test]
    fn s5_whom_an_item_mentions_is_told_until_it_mentions_or_lives_no_more() {
        let number = |name: &UserId| match name.as_str() {
            "ann" => Some(ANN),
            "bob" => Some(BOB),
            "cid" => Some(UserNo(3)),
            _ => None,
        };
        let known =
            Known { author_of: &|id| (id == ITEM).then_some(ANN), number: &number, name: &|_| Some(user("bob")) };
        let users = |names: &[&str]| names.iter().map(|name| user(name)).collect::<Vec<_>>();
        let body = Body::stored("1".into()).unwrap();
        let id = ItemId(8);
        let (published_at, readers, fresh, own_edge) = (5, vec![], true, false);
        let published =
            Written::Published { id, author: BOB, outbox_seq: 1, published_at, readers, fresh, own_edge, told: vec![] };
        let publish =
            Publish { mentions: users(&["ann", "bob", "cid", "new"]), ..Publish::new(user("bob"), body.clone()) };
        let of = |publish: &Publish| {
            let writes = rules().of_write(&Write::Publish(publish.clone()), &published, known);
            writes.iter().map(|write| (told(write).0.to_owned(), told(write).1)).collect::<Vec<_>>()
        };
        let mention = |reader| ("mention".to_owned(), reader);
        assert_eq!(of(&publish), [mention(ANN), mention(UserNo(3))], "not the author, nor who has no number");
        let writes = rules().of_write(&Write::Publish(publish.clone()), &published, known);
        assert_eq!(told(&writes[0]).2, r#"{"actor":"bob","item":"8"}"#);
        let must_see =
            |write: &Write| matches!(write, Write::Notify(told) if told.sees == Some((id, BOB)) && !told.mutual);
        assert!(writes.iter().all(must_see), "{writes:?}");
        let repost = Publish { repost_of: Some(ITEM), ..publish };
        assert_eq!(of(&repost), [("repost".to_owned(), ANN), mention(UserNo(3))], "of one deed a user is told once");

        let key = |name: &str| Deed::of_item(id, &user(name)).key();
        let withdraws = |writes: &[Write]| {
            let key = |write: &Write| if let Write::Withdraw { key, .. } = write { Some(key.clone()) } else { None };
            writes.iter().filter_map(key).collect::<Vec<_>>()
        };
        let mentions = Remention { added: users(&["cid"]), removed: users(&["ann"]) };
        let edited = Written::Edited { author: BOB, version: 2, readers: vec![], mentions, told: vec![] };
        let edit = Write::Edit { item: id, body: Some(body), rank: None, mentions: None, if_version: None };
        let writes = rules().of_write(&edit, &edited, known);
        assert_eq!((withdraws(&writes), told(&writes[1]).1, writes.len()), (vec![key("ann")], UserNo(3), 2));
        let (readers, mentions) = (vec![], users(&["cid", "ann"]));
        let deleted = Written::Deleted { author: BOB, readers, fresh: true, repost_of: None, mentions, told: vec![] };
        let delete = Write::Delete { item: id, if_version: None };
        assert_eq!(withdraws(&rules().of_write(&delete, &deleted, known))[1..], [key("cid"), key("ann")]);
        let without = Rules { mention: None, repost: None, ..rules() };
        assert_eq!(without.of_write(&delete, &deleted, known), []);
        assert_eq!(without.of_write(&edit, &edited, known), []);
    }

    #[test]
    fn s5_whom_a_comment_mentions_is_told_once_and_only_if_the_comment_is_seen() {
        let cid = UserNo(3);
        let number = |name: &UserId| match name.as_str() {
            "ann" => Some(ANN),
            "bob" => Some(BOB),
            _ => Some(UserNo(4)),
        };
        let known = Known { author_of: &|_| None, number: &number, name: &|_| Some(user("cid")) };
        let body = || Body::stored("1".into()).unwrap();
        let mentions: Vec<_> = ["ann", "bob", "dan"].map(user).into();
        let (first, second) = (ItemId(11), ItemId(12));
        let rows = |owner, now: &[UserId], before: Option<&[UserId]>| CommentRows {
            talks: [(ITEM, Talk { owner, count: 2, last: None })].into(),
            comments: [(first, row(BOB, None, &[])), (second, row(cid, Some(first), now))].into(),
            mentioned: before.map(|before| (second, before.to_vec())).into_iter().collect(),
            ..CommentRows::default()
        };
        let done = Commented { place: CommentPlace { at: 5, id: second }, version: 1, changed: true };
        let (reply_to, id, key, past) = (Some(first), None, None, None);
        let new =
            NewComment { item: ITEM, author: cid, reply_to, body: body(), id, key, past, mentions: mentions.clone() };
        let make = CommentWrite::Make(new);
        let found = |rules: &Rules, write: &CommentWrite, rows: &CommentRows| {
            let writes = rules.of_comment(write, &done, rows, known);
            let of = |write: &Write| match write {
                Write::Notify(told) => (told.publish.kind.clone().unwrap().to_string(), told.reader.0, told.mutual),
                _ => ("off".to_owned(), 0, false),
            };
            writes.iter().map(of).collect::<Vec<_>>()
        };
        let one = |kind: &str, reader, mutual| (kind.to_owned(), reader, mutual);
        let all = rows(ANN, &mentions, None);
        let wanted = [one("reply", 2, false), one("comment", 1, false), one("mention", 4, false)];
        assert_eq!(found(&rules(), &make, &all), wanted, "who is told of an answer or a comment is told of no mention");
        let none = Rules { reply: None, comment: None, ..rules() };
        let wanted = [1, 2, 4].map(|reader| one("mention", reader, false));
        assert_eq!(found(&none, &make, &all), wanted, "who is not told of those is told of the mention");
        let friends = none.clone().with_visible(Visible::Mutual);
        let wanted = [one("mention", 1, false), one("mention", 2, true), one("mention", 4, true)];
        assert_eq!(
            found(&friends, &make, &all),
            wanted,
            "the author of the item sees all, the others what friends say"
        );
        let item = ITEM;
        let edit = CommentWrite::Edit { item, id: second, by: None, body: body(), mentions: None, if_version: None };
        let edited = rows(ANN, &mentions, Some(&["eve", "dan"].map(user)));
        assert_eq!(found(&rules(), &edit, &edited), [one("off", 0, false)], "eve; ann and bob were told already");
        assert_eq!(found(&none, &edit, &edited).len(), 3, "eve, and ann and bob, who were not");
        let delete = CommentWrite::Delete { item, id: second, by: None, if_version: None };
        let gone = rows(ANN, &[], Some(&mentions));
        assert_eq!(found(&rules(), &delete, &gone).len(), 5, "the answer, the comment, and three mentions");
    }

    #[test]
    fn s5_nothing_passes_a_shield_between_the_two() {
        assert!(passes(Shields(0), true) && !passes(Shields(0), false));
        for shield in [Shields::MUTED, Shields::HIDDEN, Shields::BLOCKED_BY_READER, Shields::BLOCKED_BY_AUTHOR] {
            assert!(!passes(shield, true), "{shield:?}");
        }
    }
}
