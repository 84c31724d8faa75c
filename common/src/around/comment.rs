//! Comments: what users say to an item, in the order in which it was accepted. A comment is state of its item, and
//! stands in no outbox.
//!
//! ```text
//!   write ──▶ rows of the item, locked ──▶ CommentRows::apply ──┬ a comment at a new place, or changed      stored together
//!                                                               └ the talk of the item: count, last place
//!
//!   a comment   lives ──delete──▶ has replies: a placeholder in its place, for as long as the item lives
//!                                 none:        in no list; its row keeps its id and its key
//! ```
//!
//! Invariants:
//! - The count of an item is the number of its comments that live (S1).
//! - Each new comment stands strictly behind all that were accepted before it, by (time, id). So a client that reads
//!   towards the newest misses none and sees none twice, whatever is written meanwhile (S3). Only an import puts
//!   comments between others.
//! - The row of a comment stays until its item is deleted, so a retry never makes a second comment.

use std::collections::{BTreeSet, HashMap};

use compact_str::CompactString;

use crate::{Body, ItemId, Millis, UserId, UserNo};

/// The most bytes of JSON that a comment has.
pub const COMMENT_MAX_BYTES: usize = 8 * 1024;

/// The most rows that are looked at for one page of comments. A page that meets more comments which the viewer does not
/// see ends there, and the next one goes on.
pub const COMMENTS_LOOKED_AT: usize = 500;

/// The place of a comment among those of its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommentPlace {
    /// When it was written, in Unix ms: the time of the server, or one millisecond after the last comment if that is
    /// later.
    pub at: Millis,
    /// The id of the comment.
    pub id: ItemId,
}

/// Towards which end comments are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommentOrder {
    /// The newest comment comes first.
    Newest,
    /// The oldest comment comes first.
    Oldest,
}

/// A comment as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Comment {
    /// Its place, with its id.
    pub place: CommentPlace,
    /// The user who wrote the comment.
    pub author: UserId,
    /// The number of its author.
    pub author_no: UserNo,
    /// The comment of the same item that it answers.
    pub reply_to: Option<ItemId>,
    /// The version: 1 at first, one more with each edit.
    pub version: u32,
    /// What it says; `None` if it was deleted and stands as a placeholder before its replies.
    pub body: Option<Body>,
    /// The users whom it [mentions](crate::mentions).
    pub mentions: Vec<UserId>,
}

/// A part of the comments of an item, in the order asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommentPage {
    /// The comments of this part.
    pub comments: Vec<Comment>,
    /// The place strictly behind which the list goes on; `None` at its end.
    pub next: Option<CommentPlace>,
}

/// A comment that is to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewComment {
    /// The item to which it is written.
    pub item: ItemId,
    /// The user who writes the comment.
    pub author: UserNo,
    /// The comment of the same item that it answers.
    pub reply_to: Option<ItemId>,
    /// What the comment says.
    pub body: Body,
    /// The id that the caller has chosen; without one, the store gives one.
    pub id: Option<ItemId>,
    /// The caller's name of this request: with one that the author has used for this item, nothing is written.
    pub key: Option<CompactString>,
    /// Where it stood in another store; `None` for one that is written now.
    pub past: Option<PastComment>,
    /// The users whom it [mentions](crate::mentions), each once.
    pub mentions: Vec<UserId>,
}

/// What an import says of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastComment {
    /// When it was written.
    pub at: Millis,
    /// The version of the comment.
    pub version: u32,
    /// Whether it was deleted. Its body is not kept then.
    pub deleted: bool,
}

impl NewComment {
    /// A hash of the item, the author, the comment that is answered, the body and the mentions. It tells a retry from a
    /// conflict.
    pub fn fingerprint(&self) -> [u8; 16] {
        use sha2::{Digest, Sha256};
        let mut text = format!("{}\0{}\0{:?}\0{}", self.item, self.author.0, self.reply_to, self.body.get());
        // The body is JSON, which holds no zero byte, so the mentions cannot be taken for a part of it.
        self.mentions.iter().for_each(|user| text.push_str(&format!("\0{user}")));
        let mut out = [0; 16];
        out.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
        out
    }
}

/// A change of the comments of an item. `by` is the user who asks for it, and `None` for a backend, which may do all.
#[derive(Debug, Clone, PartialEq)]
pub enum CommentWrite {
    /// Writes a comment to an item.
    Make(NewComment),
    /// Gives a comment another body, and may change whom it mentions. Only its author may. A body that it has already
    /// changes nothing.
    Edit {
        /// The item with the comment.
        item: ItemId,
        /// The id of the comment.
        id: ItemId,
        /// The user who asks for it.
        by: Option<UserNo>,
        /// What the comment is to say.
        body: Body,
        /// The users whom it mentions from now on, each once; `None` keeps those whom it mentions.
        mentions: Option<Vec<UserId>>,
        /// The version that it must have, if any is named.
        if_version: Option<u32>,
    },
    /// Deletes a comment. Its author may, and the author of the item. To delete it again changes nothing and succeeds.
    Delete {
        /// The item with the comment.
        item: ItemId,
        /// The id of the comment.
        id: ItemId,
        /// The user who asks for it.
        by: Option<UserNo>,
        /// The version that it must have, if any is named and it is still there.
        if_version: Option<u32>,
    },
}

impl CommentWrite {
    /// The item whose comments it changes.
    pub fn item(&self) -> ItemId {
        match self {
            Self::Make(new) => new.item,
            Self::Edit { item, .. } | Self::Delete { item, .. } => *item,
        }
    }

    /// The ids of comments whose rows a decision needs, where such comments exist. It also needs the row of the comment
    /// that each of these answers, and further up as long as such a row does not [stand](CommentRow::stands).
    pub fn comments(&self) -> impl Iterator<Item = ItemId> {
        let named = match self {
            Self::Make(new) => [Some(new.item), new.id, new.reply_to],
            Self::Edit { id, .. } | Self::Delete { id, .. } => [Some(*id), None, None],
        };
        named.into_iter().flatten()
    }

    /// The key whose comment a decision needs, if there is one: of which item, of which author, and the key.
    pub fn key(&self) -> Option<(ItemId, UserNo, CompactString)> {
        match self {
            Self::Make(new) => new.key.clone().map(|key| (new.item, new.author, key)),
            Self::Edit { .. } | Self::Delete { .. } => None,
        }
    }

    /// The users whom the comment mentions after this write; none if the write leaves the mentions as they are.
    pub fn mentions(&self) -> &[UserId] {
        match self {
            Self::Make(new) => &new.mentions,
            Self::Edit { mentions, .. } => mentions.as_deref().unwrap_or_default(),
            Self::Delete { .. } => &[],
        }
    }

    /// The author of the comment that it makes, if it makes one.
    pub fn author(&self) -> Option<UserNo> {
        match self {
            Self::Make(new) => Some(new.author),
            Self::Edit { .. } | Self::Delete { .. } => None,
        }
    }

    /// Whether the store has to give it an id.
    pub fn needs_id(&self) -> bool {
        matches!(self, Self::Make(NewComment { id: None, .. }))
    }
}

/// What a change has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commented {
    /// The place of the comment.
    pub place: CommentPlace,
    /// The version of the comment.
    pub version: u32,
    /// Whether anything has changed; if not, the comment was like this before.
    pub changed: bool,
}

/// Why a change was refused. A refused change leaves everything as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Uncommented {
    /// There is no such item, or it was deleted.
    #[error("there is no item {0}")]
    NoSuchItem(ItemId),
    /// The id that was given for the item is that of a comment.
    #[error("{0} is a comment, and comments are written to items: name its item, and {0} as \"reply_to\"")]
    IsComment(ItemId),
    /// The comment that is to be answered does not live, or is not on this item.
    #[error("there is no comment {0} on this item; \"reply_to\" names a comment of the same item")]
    NoSuchSibling(ItemId),
    /// The item has no such comment, or it was deleted.
    #[error("there is no comment {0} on this item")]
    NoSuchComment(ItemId),
    /// Another user has written it.
    #[error("comment {0} is of another user")]
    NotOwn(ItemId),
    /// The id stands for another comment.
    #[error("id {0} stands for another comment")]
    IdTaken(ItemId),
    /// The key stands for another comment of the same author to this item.
    #[error("idempotency key {0:?} stands for another comment")]
    KeyReused(CompactString),
    /// The comment has another version than was asked for.
    #[error("comment {id} has version {now}, not {wanted}")]
    VersionMismatch {
        /// The id of the comment.
        id: ItemId,
        /// The version asked for.
        wanted: u32,
        /// The version it has.
        now: u32,
    },
}

/// What is stored of all comments of an item together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Talk {
    /// The author of the item.
    pub owner: UserNo,
    /// How many comments live.
    pub count: u64,
    /// The last place that was given; `None` before the first comment.
    pub last: Option<CommentPlace>,
}

/// What is stored of a comment.
#[derive(Debug, Clone, PartialEq)]
pub struct CommentRow {
    /// The item of the comment.
    pub item: ItemId,
    /// When it was written.
    pub at: Millis,
    /// The user who wrote the comment.
    pub author: UserNo,
    /// Which comment it answers.
    pub reply_to: Option<ItemId>,
    /// How many comments that stand in the list answer it.
    pub replies: u64,
    /// The version of the comment.
    pub version: u32,
    /// What it says; `None` if it was deleted.
    pub body: Option<Body>,
    /// The caller's name of the request that has made it.
    pub key: Option<CompactString>,
    /// The [fingerprint](NewComment::fingerprint) of that request.
    pub fingerprint: [u8; 16],
    /// The users whom it mentions; none once it is deleted.
    pub mentions: Vec<UserId>,
}

impl CommentRow {
    /// Whether it stands in the list: it lives, or it is the placeholder before its replies.
    pub fn stands(&self) -> bool {
        stands(self.body.is_some(), self.replies)
    }
}

/// Whether a comment stands in the list of its item: if it lives, or if comments that stand there answer it.
pub fn stands(lives: bool, replies: u64) -> bool {
    lives || replies > 0
}

/// An id for a comment that is written at `now`, by a number that counts comments: 42 bits of Unix milliseconds, a bit
/// that is set, then 21 bits of the number. The ids of items begin with that bit unset, so that in the same millisecond
/// no comment gets the id of an item.
pub fn comment_id(now: Millis, number: u64) -> ItemId {
    let by_clock = now.max(0).cast_unsigned().min((1 << 42) - 1) << 22;
    ItemId(by_clock | (1 << 21) | (number % (1 << 21)))
}

/// The place of a comment that is written at `now`: strictly behind the `last` one.
pub fn place_behind(last: Option<CommentPlace>, now: Millis, id: ItemId) -> CommentPlace {
    match last {
        Some(last) if (CommentPlace { at: now, id }) <= last => CommentPlace { at: last.at.saturating_add(1), id },
        _ => CommentPlace { at: now, id },
    }
}

/// The rows that some changes need, and what these changes have made of them. Nobody else may change them meanwhile.
#[derive(Debug, Default)]
pub struct CommentRows {
    /// The talks of the items that live, among those that are changed.
    pub talks: HashMap<ItemId, Talk>,
    /// The comments by id, whatever their item.
    pub comments: HashMap<ItemId, CommentRow>,
    /// Which comment a key has made.
    pub keys: HashMap<(ItemId, UserNo, CompactString), ItemId>,
    /// The comments whose rows are to be stored.
    pub changed: BTreeSet<ItemId>,
    /// The items whose talks are to be stored.
    pub talked: BTreeSet<ItemId>,
    /// Whom each comment mentioned before its last change.
    pub mentioned: HashMap<ItemId, Vec<UserId>>,
}

impl CommentRows {
    /// Decides what becomes of a change and makes it. `fresh` is an id that no comment has, for a change that
    /// [needs](CommentWrite::needs_id) one. A refused change leaves the rows as they were.
    pub fn apply(&mut self, write: &CommentWrite, now: Millis, fresh: ItemId) -> Result<Commented, Uncommented> {
        match write {
            CommentWrite::Make(new) => self.make(new, now, fresh),
            CommentWrite::Edit { item, id, by, body, mentions, if_version } => {
                self.edit((*item, *id), *by, (body, mentions.as_deref()), *if_version)
            }
            CommentWrite::Delete { item, id, by, if_version } => self.delete((*item, *id), *by, *if_version),
        }
    }

    fn talk(&self, item: ItemId) -> Result<Talk, Uncommented> {
        let is_comment = || self.comments.contains_key(&item);
        self.talks
            .get(&item)
            .copied()
            .ok_or_else(|| if is_comment() { Uncommented::IsComment(item) } else { Uncommented::NoSuchItem(item) })
    }

    fn make(&mut self, new: &NewComment, now: Millis, fresh: ItemId) -> Result<Commented, Uncommented> {
        let talk = self.talk(new.item)?;
        let fingerprint = new.fingerprint();
        if let Some(earlier) = self.earlier(new, fingerprint)? {
            return Ok(earlier);
        }
        if let Some(sibling) = new.reply_to {
            let row = self.comments.get(&sibling).filter(|row| row.item == new.item);
            // In an imported file, a reply comes after the comment that it answers, which may be deleted.
            let answered = row.is_some_and(|row| row.body.is_some() || new.past.is_some());
            if !answered {
                return Err(Uncommented::NoSuchSibling(sibling));
            }
        }
        let id = new.id.unwrap_or(fresh);
        let (place, version, lives) = match new.past {
            None => (place_behind(talk.last, now, id), 1, true),
            Some(past) => (CommentPlace { at: past.at, id }, past.version, !past.deleted),
        };
        let row = CommentRow {
            item: new.item,
            at: place.at,
            author: new.author,
            reply_to: new.reply_to,
            replies: 0,
            version,
            body: lives.then(|| new.body.clone()),
            key: new.key.clone(),
            fingerprint,
            mentions: if lives { new.mentions.clone() } else { vec![] },
        };
        if row.stands() {
            self.answered(new.reply_to, 1);
        }
        self.comments.insert(id, row);
        self.changed.insert(id);
        if let Some(key) = &new.key {
            self.keys.insert((new.item, new.author, key.clone()), id);
        }
        let count = talk.count + u64::from(lives);
        self.put_talk(new.item, Talk { count, last: talk.last.max(Some(place)), ..talk });
        Ok(Commented { place, version, changed: true })
    }

    /// The comment that an earlier try of the same request has made. A comment that an import names by its id counts as
    /// made, even if it was edited or deleted since.
    fn earlier(&self, new: &NewComment, fingerprint: [u8; 16]) -> Result<Option<Commented>, Uncommented> {
        let by_key = new.key.as_ref().and_then(|key| self.keys.get(&(new.item, new.author, key.clone())));
        if let (Some(id), Some(key)) = (by_key, &new.key) {
            let row = self.comments.get(id).filter(|row| row.fingerprint == fingerprint);
            let row = row.filter(|_| new.id.is_none_or(|wanted| wanted == *id));
            return row.map(|row| Some(unchanged(*id, row))).ok_or_else(|| Uncommented::KeyReused(key.clone()));
        }
        let Some((id, row)) = new.id.and_then(|id| Some((id, self.comments.get(&id)?))) else { return Ok(None) };
        let same = row.item == new.item && (new.past.is_some() || row.fingerprint == fingerprint);
        if same { Ok(Some(unchanged(id, row))) } else { Err(Uncommented::IdTaken(id)) }
    }

    fn edit(
        &mut self,
        (item, id): (ItemId, ItemId),
        by: Option<UserNo>,
        (body, mentions): (&Body, Option<&[UserId]>),
        if_version: Option<u32>,
    ) -> Result<Commented, Uncommented> {
        self.talk(item)?;
        let row = self.comments.get_mut(&id).filter(|row| row.item == item && row.body.is_some());
        let row = row.ok_or(Uncommented::NoSuchComment(id))?;
        if by.is_some_and(|by| by != row.author) {
            return Err(Uncommented::NotOwn(id));
        }
        if let Some(wanted) = if_version.filter(|wanted| *wanted != row.version) {
            return Err(Uncommented::VersionMismatch { id, wanted, now: row.version });
        }
        let mentions = mentions.filter(|now| *now != row.mentions);
        if row.body.as_ref() == Some(body) && mentions.is_none() {
            return Ok(unchanged(id, row));
        }
        self.mentioned.insert(id, row.mentions.clone());
        if let Some(mentions) = mentions {
            row.mentions = mentions.to_vec();
        }
        row.body = Some(body.clone());
        row.version = row.version.saturating_add(1);
        let done = Commented { changed: true, ..unchanged(id, row) };
        self.changed.insert(id);
        Ok(done)
    }

    fn delete(
        &mut self,
        (item, id): (ItemId, ItemId),
        by: Option<UserNo>,
        if_version: Option<u32>,
    ) -> Result<Commented, Uncommented> {
        let talk = self.talk(item)?;
        let row = self.comments.get_mut(&id).filter(|row| row.item == item);
        let row = row.ok_or(Uncommented::NoSuchComment(id))?;
        if by.is_some_and(|by| by != row.author && by != talk.owner) {
            return Err(if row.stands() { Uncommented::NotOwn(id) } else { Uncommented::NoSuchComment(id) });
        }
        if row.body.is_none() {
            return Ok(unchanged(id, row));
        }
        if let Some(wanted) = if_version.filter(|wanted| *wanted != row.version) {
            return Err(Uncommented::VersionMismatch { id, wanted, now: row.version });
        }
        row.body = None;
        self.mentioned.insert(id, std::mem::take(&mut row.mentions));
        let done = Commented { changed: true, ..unchanged(id, row) };
        let left = (!row.stands()).then_some(row.reply_to).flatten();
        self.changed.insert(id);
        self.answered(left, -1);
        self.put_talk(item, Talk { count: talk.count.saturating_sub(1), ..talk });
        Ok(done)
    }

    /// Counts one more, or one less, of the standing comments that answer the comment `answered`. A placeholder stays
    /// when its last reply goes: a comment never leaves the list because another one was deleted. An imported
    /// placeholder stands from its first reply on, and then counts for the comment that it answers.
    fn answered(&mut self, mut answered: Option<ItemId>, more: i64) {
        while let Some((id, row)) = answered.and_then(|id| Some((id, self.comments.get_mut(&id)?))) {
            let (stood, stays) = (row.stands(), row.body.is_none() && row.replies == 1 && more < 0);
            if stays {
                return;
            }
            row.replies = row.replies.saturating_add_signed(more);
            answered = row.reply_to.filter(|_| !stood && row.stands());
            self.changed.insert(id);
        }
    }

    fn put_talk(&mut self, item: ItemId, talk: Talk) {
        self.talks.insert(item, talk);
        self.talked.insert(item);
    }
}

fn unchanged(id: ItemId, row: &CommentRow) -> Commented {
    Commented { place: CommentPlace { at: row.at, id }, version: row.version, changed: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: ItemId = ItemId(7);
    const ANN: UserNo = UserNo(1);
    const BOB: UserNo = UserNo(2);
    const CID: UserNo = UserNo(3);

    fn body(text: &str) -> Body {
        Body::parse(format!("{text:?}")).unwrap()
    }

    fn new(author: UserNo, text: &str) -> NewComment {
        NewComment {
            item: ITEM,
            author,
            reply_to: None,
            body: body(text),
            id: None,
            key: None,
            past: None,
            mentions: vec![],
        }
    }

    fn rows() -> CommentRows {
        let talk = Talk { owner: ANN, count: 0, last: None };
        CommentRows { talks: [(ITEM, talk)].into(), ..CommentRows::default() }
    }

    fn make(rows: &mut CommentRows, new: NewComment, fresh: u64) -> Result<Commented, Uncommented> {
        rows.apply(&CommentWrite::Make(new), 100, ItemId(fresh))
    }

    fn delete(rows: &mut CommentRows, id: u64, by: Option<UserNo>) -> Result<Commented, Uncommented> {
        delete_if(rows, id, by, None)
    }

    fn delete_if(
        rows: &mut CommentRows,
        id: u64,
        by: Option<UserNo>,
        if_version: Option<u32>,
    ) -> Result<Commented, Uncommented> {
        rows.apply(&CommentWrite::Delete { item: ITEM, id: ItemId(id), by, if_version }, 100, ItemId(0))
    }

    fn reply(author: UserNo, text: &str, to: u64) -> NewComment {
        NewComment { reply_to: Some(ItemId(to)), ..new(author, text) }
    }

    #[test]
    fn s3_no_comment_gets_the_id_that_an_item_gets_first_in_the_same_millisecond() {
        let (now, first_of_items) = (1_764_000_000_000, 1_764_000_000_000_u64 << 22);
        let [first, second, around] = [0, 1, 1 << 21].map(|number| comment_id(now, number).0);
        assert_eq!([first - first_of_items, second - first, around], [1 << 21, 1, first]);
        assert!(comment_id(now - 1, u64::MAX).0 < first_of_items, "ids ascend with time");
    }

    #[test]
    fn s3_a_new_comment_stands_behind_all_others_whatever_the_clock_says() {
        let last = |at, id| Some(CommentPlace { at, id: ItemId(id) });
        assert_eq!(Some(place_behind(None, 100, ItemId(5))), last(100, 5));
        assert_eq!(Some(place_behind(last(100, 4), 100, ItemId(5))), last(100, 5), "at one time by id");
        assert_eq!(Some(place_behind(last(100, 9), 100, ItemId(5))), last(101, 5), "an id of the caller may be less");
        assert_eq!(Some(place_behind(last(200, 9), 100, ItemId(10))), last(201, 10), "a clock may be behind");
        let mut rows = rows();
        let places: Vec<_> = (0..4).map(|n| make(&mut rows, new(BOB, "x"), 90 - n).unwrap().place).collect();
        assert!(places.is_sorted() && rows.talks[&ITEM].last == places.last().copied());
        assert_eq!((rows.talks[&ITEM].count, rows.changed.len(), rows.talked.len()), (4, 4, 1));
    }

    #[test]
    fn s1_a_retry_gets_the_comment_that_is_there_also_after_it_was_deleted() {
        let mut rows = rows();
        let named = |id, key: &str| {
            let key = (!key.is_empty()).then(|| key.into());
            NewComment { id, key, ..new(BOB, "hi") }
        };
        let first = make(&mut rows, named(None, "k"), 11).unwrap();
        assert!(first.changed);
        for _before_and_after in 0..2 {
            let again = make(&mut rows, named(None, "k"), 12).unwrap();
            assert_eq!(again, Commented { changed: false, ..first });
            delete(&mut rows, 11, None).unwrap();
        }
        assert_eq!(rows.talks[&ITEM].count, 0);
        let other = NewComment { body: body("other"), ..named(None, "k") };
        assert_eq!(make(&mut rows, other, 13), Err(Uncommented::KeyReused("k".into())));
        assert!(
            make(&mut rows, NewComment { author: CID, ..named(None, "k") }, 14).unwrap().changed,
            "a key of its own"
        );
        assert!(make(&mut rows, named(Some(ItemId(20)), ""), 0).unwrap().changed);
        assert!(!make(&mut rows, named(Some(ItemId(20)), ""), 0).unwrap().changed);
        let taken = NewComment { id: Some(ItemId(20)), ..new(CID, "hi") };
        assert_eq!(make(&mut rows, taken, 0), Err(Uncommented::IdTaken(ItemId(20))));
        let both = named(Some(ItemId(21)), "k");
        assert_eq!(make(&mut rows, both, 0), Err(Uncommented::KeyReused("k".into())), "the key has made another id");
        assert_eq!((rows.talks[&ITEM].count, rows.comments.len()), (2, 3));
    }

    #[test]
    fn s3_a_comment_is_written_to_an_item_and_answers_a_sibling() {
        let mut rows = rows();
        make(&mut rows, new(BOB, "a"), 11).unwrap();
        assert!(make(&mut rows, reply(CID, "b", 11), 12).unwrap().changed);
        let to = |item| NewComment { item: ItemId(item), ..new(BOB, "x") };
        assert_eq!(make(&mut rows, to(11), 13), Err(Uncommented::IsComment(ItemId(11))));
        assert_eq!(make(&mut rows, to(8), 13), Err(Uncommented::NoSuchItem(ItemId(8))));
        assert_eq!(make(&mut rows, reply(BOB, "x", 99), 13), Err(Uncommented::NoSuchSibling(ItemId(99))));
        assert_eq!(make(&mut rows, reply(BOB, "x", 7), 13), Err(Uncommented::NoSuchSibling(ITEM)), "the item is none");
        rows.talks.insert(ItemId(8), Talk { owner: ANN, count: 0, last: None });
        let elsewhere = NewComment { item: ItemId(8), ..reply(BOB, "x", 11) };
        assert_eq!(make(&mut rows, elsewhere, 13), Err(Uncommented::NoSuchSibling(ItemId(11))));
        delete(&mut rows, 11, None).unwrap();
        assert_eq!(make(&mut rows, reply(BOB, "x", 11), 13), Err(Uncommented::NoSuchSibling(ItemId(11))));
    }

    #[test]
    fn s3_a_deleted_comment_with_replies_leaves_a_placeholder_and_any_other_nothing() {
        let mut rows = rows();
        for (id, to) in [(11, None), (12, Some(11)), (13, Some(12)), (14, None)] {
            let new = NewComment { reply_to: to.map(ItemId), ..new(BOB, "x") };
            make(&mut rows, new, id).unwrap();
        }
        let stands = |rows: &CommentRows| {
            let mut all: Vec<_> = rows.comments.iter().filter(|(_, row)| row.stands()).collect();
            all.sort_unstable_by_key(|(id, _)| **id);
            all.into_iter().map(|(id, row)| (id.0, row.body.is_some())).collect::<Vec<_>>()
        };
        delete(&mut rows, 14, None).unwrap();
        assert_eq!(stands(&rows), [(11, true), (12, true), (13, true)]);
        delete(&mut rows, 12, None).unwrap();
        assert_eq!(stands(&rows), [(11, true), (12, false), (13, true)]);
        delete(&mut rows, 11, None).unwrap();
        assert_eq!(stands(&rows), [(11, false), (12, false), (13, true)], "a placeholder is a reply that stands");
        assert_eq!(rows.talks[&ITEM].count, 1, "placeholders are not counted");
        delete(&mut rows, 13, None).unwrap();
        assert_eq!(stands(&rows), [(11, false), (12, false)], "they stay as long as the item");
        assert!(!delete(&mut rows, 13, None).unwrap().changed && rows.talks[&ITEM].count == 0);
    }

    #[test]
    fn s3_the_author_edits_and_the_author_of_the_item_deletes_too() {
        let mut rows = rows();
        make(&mut rows, new(BOB, "a"), 11).unwrap();
        let edit = |rows: &mut CommentRows, by, text: &str, if_version| {
            let write =
                CommentWrite::Edit { item: ITEM, id: ItemId(11), by, body: body(text), mentions: None, if_version };
            rows.apply(&write, 100, ItemId(0))
        };
        assert_eq!(edit(&mut rows, Some(ANN), "b", None), Err(Uncommented::NotOwn(ItemId(11))));
        let wrong = Uncommented::VersionMismatch { id: ItemId(11), wanted: 2, now: 1 };
        assert_eq!(edit(&mut rows, Some(BOB), "b", Some(2)), Err(wrong));
        assert_eq!(edit(&mut rows, Some(BOB), "b", Some(1)).unwrap().version, 2);
        let again = edit(&mut rows, None, "b", None).unwrap();
        assert_eq!((again.version, again.changed), (2, false), "what it says already is no new version");
        assert_eq!(delete(&mut rows, 11, Some(CID)), Err(Uncommented::NotOwn(ItemId(11))));
        assert!(delete(&mut rows, 11, Some(ANN)).unwrap().changed);
        assert_eq!(delete(&mut rows, 11, Some(CID)), Err(Uncommented::NoSuchComment(ItemId(11))), "out of sight");
        assert_eq!(edit(&mut rows, Some(BOB), "c", None), Err(Uncommented::NoSuchComment(ItemId(11))));
        assert_eq!(delete(&mut rows, 12, None), Err(Uncommented::NoSuchComment(ItemId(12))));
    }

    #[test]
    fn s3_a_comment_is_deleted_only_in_the_version_that_is_named() {
        let mut rows = rows();
        make(&mut rows, new(BOB, "a"), 11).unwrap();
        let wrong = Uncommented::VersionMismatch { id: ItemId(11), wanted: 2, now: 1 };
        assert_eq!(delete_if(&mut rows, 11, None, Some(2)), Err(wrong));
        assert!(rows.comments[&ItemId(11)].body == Some(body("a")) && rows.talks[&ITEM].count == 1);
        let not_own = Err(Uncommented::NotOwn(ItemId(11)));
        assert_eq!(delete_if(&mut rows, 11, Some(CID), Some(2)), not_own, "the version is for who may delete");
        assert!(delete_if(&mut rows, 11, Some(BOB), Some(1)).unwrap().changed);
        assert!(!delete_if(&mut rows, 11, Some(BOB), Some(2)).unwrap().changed, "what is deleted stays so");
    }

    #[test]
    fn s3_an_imported_comment_keeps_its_place_and_changes_nothing_that_is_there() {
        let mut rows = rows();
        make(&mut rows, new(BOB, "now"), 50).unwrap();
        let past = |at, id, deleted| {
            let past = PastComment { at, version: 3, deleted };
            NewComment { id: Some(ItemId(id)), past: Some(past), ..new(BOB, "then") }
        };
        assert_eq!(make(&mut rows, past(5, 11, true), 0).unwrap().place, CommentPlace { at: 5, id: ItemId(11) });
        assert!(!rows.comments[&ItemId(11)].stands() && rows.talks[&ITEM].count == 1);
        let answer = NewComment { reply_to: Some(ItemId(11)), ..past(6, 12, false) };
        assert_eq!(make(&mut rows, answer, 0).unwrap().version, 3);
        assert!(rows.comments[&ItemId(11)].stands(), "its reply came behind it");
        let below = |at, id, to, deleted| NewComment { reply_to: Some(ItemId(to)), ..past(at, id, deleted) };
        for (id, to, deleted) in [(13, 12, true), (14, 13, true), (15, 14, false), (16, 14, false)] {
            make(&mut rows, below(7, id, to, deleted), 0).unwrap();
        }
        let replies = [12, 13, 14].map(|id| rows.comments[&ItemId(id)].replies);
        assert_eq!(replies, [1, 1, 2], "a placeholder is an answer once it stands");
        assert_eq!(rows.talks[&ITEM].last, Some(CommentPlace { at: 100, id: ItemId(50) }));
        let changed = NewComment { body: body("edited since"), ..past(5, 12, false) };
        assert!(!make(&mut rows, changed, 0).unwrap().changed);
    }
}
