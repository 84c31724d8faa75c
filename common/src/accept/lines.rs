//! Lines of notifications: which deeds join or leave which line, and what becomes of a line. [`crate::notify::lines`]
//! says what a line tells.
//!
//! ```text
//!   Notify with a group   a shield is up, or it is told already ──▶ nothing
//!                         the line lives and was not seen       ──▶ joins it       else: begins another
//!   Withdraw              of no line                            ──▶ as a notification that has an item of its own
//!                         its line was seen                     ──▶ stays          else: leaves it
//! ```
//!
//! A line counts as seen if its item was published no later than the newest item that its reader has seen of the feed.

use std::borrow::Cow;
use std::collections::HashMap;

use compact_str::CompactString;

use super::notify::{edges_of, is_open, make};
use super::plan::{Change, Draft};
use super::rows::{EdgeRow, ItemRow, Rows};
use super::{Decision, Stop, all, edit};
use crate::archive::{Refused, Write, Written};
use crate::error::StoreError;
use crate::graph::Shields;
use crate::import::PastMember;
use crate::notify::lines::{ACTORS, Forming, Line, LineWrite, Member, Stands, Then};
use crate::notify::{Notification, passes};
use crate::{InboxKey, ItemId, UserNo};

/// What [`gather`] gives: the lines that change, and the writes that it leaves to others.
#[derive(Debug, Default)]
pub struct Gathered {
    /// One change for each line that changes.
    pub lines: Vec<LineWrite>,
    /// The places of the writes that concern no line. They are to be decided one by one.
    pub others: Vec<usize>,
    /// The readers who are told, each with the place of the write.
    pub told: Vec<(usize, UserNo)>,
}

/// What a write has to do with lines.
enum Deed {
    /// Its deed is in no line.
    Alone,
    /// Its deed is in a line, or was. If the write changes what the reader sees of the line, this is the reader.
    OfLine(Option<UserNo>),
}

/// Gathers deeds that join or leave lines in one transaction, so that each line changes once. `asked` are writes of the
/// sorts [`Write::Notify`] and [`Write::Withdraw`].
pub fn gather(rows: &Rows, asked: &[Write]) -> Result<Gathered, Stop> {
    let leaving = asked.iter().filter(|write| matches!(write, Write::Withdraw { .. })).count();
    let mut lines = Lines::of(rows, ACTORS + leaving);
    needed(rows, asked)?;
    let mut gathered = Gathered::default();
    for (nth, write) in asked.iter().enumerate() {
        let deed = match write {
            Write::Notify(told) if told.group.is_some() => Deed::OfLine(lines.join(told)?),
            Write::Withdraw { key, even_seen } => lines.leave(key, *even_seen)?,
            _ => Deed::Alone,
        };
        match deed {
            Deed::Alone => gathered.others.push(nth),
            Deed::OfLine(told) => gathered.told.extend(told.map(|reader| (nth, reader))),
        }
    }
    for line in lines.forming {
        gathered.lines.extend(line.settle().map_err(Stop::Failed)?);
    }
    Ok(gathered)
}

/// Asks for all rows together that are needed whatever is decided.
fn needed(rows: &Rows, asked: &[Write]) -> Decision<()> {
    let joining: Vec<&Notification> = asked
        .iter()
        .filter_map(|write| if let Write::Notify(told) = write { Some(&**told) } else { None })
        .filter(|told| told.group.is_some())
        .collect();
    let keys = || joining.iter().filter_map(|told| told.publish.foreign_id.as_ref());
    let leaving =
        asked.iter().filter_map(|write| if let Write::Withdraw { key, .. } = write { Some(key) } else { None });
    all(keys().chain(leaving).map(|key| rows.member(key)))?;
    all(joining.iter().flat_map(|told| edges_of(told)).map(|edge| rows.edge(edge)))?;
    all(keys().map(|key| rows.foreign_id(key))).map(drop)
}

/// The lines that change.
struct Lines<'r> {
    rows: &'r Rows,
    /// How many of the newest members of a line have to be known.
    newest: usize,
    forming: Vec<Forming>,
    /// The place in `forming` of each stored line that changes.
    stored: HashMap<ItemId, usize>,
    /// The place of the line that deeds of a group join.
    groups: HashMap<(UserNo, CompactString), usize>,
    /// The deeds that have joined, each with the place of its line, and those that have left.
    moved: HashMap<CompactString, Option<usize>>,
}

impl<'r> Lines<'r> {
    fn of(rows: &'r Rows, newest: usize) -> Self {
        let (stored, groups, moved) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { rows, newest, forming: vec![], stored, groups, moved }
    }

    /// Lets a deed join the line of its group. Answers the reader, if the reader is notified.
    fn join(&mut self, told: &Notification) -> Decision<Option<UserNo>> {
        let Notification { reader, publish, group, .. } = told;
        let (Some(group), Some(key)) = (group, &publish.foreign_id) else { return Ok(None) };
        if !is_open(self.rows, told)? || self.is_told(key)? {
            return Ok(None);
        }
        let place = (*reader, group.clone());
        let at = match self.groups.get(&place) {
            Some(at) => *at,
            None => {
                let at = match self.open(told, group)? {
                    Some(id) => self.stored(id)?,
                    None => self.begin(Forming::new(
                        *reader,
                        group.clone(),
                        publish.kind.clone().unwrap_or_default(),
                        publish.feed,
                    )),
                };
                self.groups.insert(place, at);
                at
            }
        };
        self.forming[at].join(key.clone(), told.actor, publish.body.clone());
        self.moved.insert(key.clone(), Some(at));
        Ok(Some(*reader))
    }

    /// Lets a deed leave its line, if it is in one. What the reader has seen stays, unless `even_seen`.
    fn leave(&mut self, key: &CompactString, even_seen: bool) -> Decision<Deed> {
        let at = match self.moved.get(key) {
            Some(Some(at)) => *at,
            Some(None) => return Ok(Deed::OfLine(None)),
            None => {
                let Some(id) = self.rows.member(key)? else { return Ok(Deed::Alone) };
                if !even_seen && self.item(id)?.map_or(Ok(false), |(line, item)| self.is_seen(line, item))? {
                    return Ok(Deed::OfLine(None));
                }
                self.stored(id)?
            }
        };
        self.forming[at].leave(key);
        self.moved.insert(key.clone(), None);
        Ok(Deed::OfLine(self.forming[at].seen_by()))
    }

    /// Whether there is a living item that tells of the deed.
    fn is_told(&self, key: &CompactString) -> Decision<bool> {
        if let Some(moved) = self.moved.get(key) {
            return Ok(moved.is_some());
        }
        if let Some(id) = self.rows.member(key)? {
            return Ok(self.item(id)?.is_some());
        }
        let Some(id) = self.rows.foreign_id(key)? else { return Ok(false) };
        Ok(self.rows.item_of_key(id)?.living)
    }

    /// The line of the group, if deeds may still join it.
    fn open(&self, told: &Notification, group: &CompactString) -> Decision<Option<ItemId>> {
        let Some(id) = self.rows.group(told.reader, group)? else { return Ok(None) };
        let Some((line, item)) = self.item(id)? else { return Ok(None) };
        let is_open = item.feed == told.publish.feed && !self.is_seen(line, item)?;
        Ok(is_open.then_some(id))
    }

    /// A line and its item, if the item lives.
    fn item(&self, id: ItemId) -> Decision<Option<(&'r Line, &'r ItemRow)>> {
        let Some(row) = self.rows.line(id, self.newest)? else { return Ok(None) };
        let item = self.rows.item(row.line.item)?.filter(|item| item.living);
        Ok(item.map(|item| (&row.line, item)))
    }

    fn is_seen(&self, line: &Line, item: &ItemRow) -> Decision<bool> {
        let seen = self.rows.sight(InboxKey { reader: line.reader, feed: item.feed })?;
        Ok(seen.is_some_and(|until| item.published_at <= until))
    }

    /// The place of a stored line among those that change.
    fn stored(&mut self, id: ItemId) -> Decision<usize> {
        if let Some(at) = self.stored.get(&id) {
            return Ok(*at);
        }
        let none = || Stop::Failed(StoreError::corrupt(format_args!("line {id} has members but no row")));
        let row = self.rows.line(id, self.newest)?.ok_or_else(none)?;
        let stands = self.item(id)?.map(|(_, item)| {
            let ItemRow { author, feed, published_at, rank, .. } = *item;
            Stands { author, feed, published_at, rank }
        });
        let edges = all(row.newest.iter().map(|member| self.rows.edge((row.line.reader, member.actor))))?;
        let is_hidden = |edge: &Option<EdgeRow>| !passes(edge.map_or(Shields(0), |edge| edge.shields), true);
        let hidden = row.newest.iter().zip(&edges).filter(|(_, edge)| is_hidden(edge));
        let hidden = hidden.map(|(member, _)| member.actor).collect();
        let at = self.begin(Forming::stored(id, row, stands, hidden));
        self.stored.insert(id, at);
        Ok(at)
    }

    fn begin(&mut self, line: Forming) -> usize {
        self.forming.push(line);
        self.forming.len() - 1
    }
}

/// Decides what becomes of a [`Write::Line`].
pub(super) fn line<'a>(draft: &mut Draft<'_, 'a>, wanted: &'a LineWrite, fingerprint: [u8; 16]) -> Decision<Written> {
    let LineWrite { id, line, joined, left, then } = wanted;
    let mut item = line.item;
    match then {
        Then::Nothing => {}
        Then::Gone => _ = edit::delete(draft, item, None)?,
        Then::Edited(body) => {
            let to = edit::Edit { body: Some(body), rank: None, mentions: None, keeps: false };
            edit::edit(draft, item, to, None)?;
        }
        Then::Replaced(actor, publish) => {
            if id.is_some() {
                edit::delete(draft, item, None)?;
            }
            item = make(draft, (line.reader, *actor), publish, fingerprint)?;
        }
    }
    let (line, begins) = (Line { item, ..line.clone() }, id.is_none());
    let (id, reader) = (id.unwrap_or(item), line.reader);
    draft.changes.push(Change::Line { id, line, begins, joined: Cow::Borrowed(joined), left });
    Ok(Written::Line { reader })
}

/// Decides what becomes of an [`Import::Member`](crate::import::Import::Member). A file names the members of a line in
/// their order. If the place of a member is taken already, a deed that joined the line meanwhile has it: then the
/// imported member comes behind that deed.
pub(super) fn import(draft: &mut Draft<'_, '_>, wanted: &PastMember) -> Decision<Written> {
    let PastMember { line: id, item, group, kind, seq, key, told, .. } = wanted;
    let (reader, actor) = draft.rows.pair((&wanted.reader, &wanted.actor))?;
    if draft.rows.member(key)?.is_some() {
        return Ok(Written::Untold);
    }
    let is_of_reader = |row: &ItemRow| row.living && row.door.readers() == [reader];
    if !draft.rows.item(*item)?.is_some_and(is_of_reader) {
        return Err(Refused::NoSuchItem(*item).into());
    }
    let stored = draft.rows.line(*id, 0)?.map(|row| row.line.clone());
    // Ids ascend with time. A line that is newer than the one that deeds join takes its place.
    let newest = draft.rows.group(reader, group)?;
    let begins = stored.is_none() && newest.is_none_or(|newest| newest < *id);
    let new = Line { reader, group: group.clone(), kind: kind.clone(), item: *item, count: 0, next: 1 };
    let before = stored.unwrap_or(new);
    if before.reader != reader || before.group != *group || before.item != *item {
        return Err(Refused::IdTaken(*id).into());
    }
    let seq = before.next.max(*seq);
    let line = Line { count: before.count + 1, next: seq.saturating_add(1), ..before };
    let member = Member { seq, key: key.clone(), actor, told: told.clone() };
    draft.changes.push(Change::Line { id: *id, line, begins, joined: Cow::Owned(vec![member]), left: &[] });
    Ok(Written::Line { reader })
}

#[cfg(test)]
mod tests {
    use super::super::rows::{Door, ReaderRow};
    use super::super::{Ask, Policy, announcements, decide};
    use super::*;
    use crate::announce::{Act, Announcement};
    use crate::archive::{Audience, Publish};
    use crate::notify::lines::LineRow;
    use crate::{Body, FeedId, Millis};

    const ANN: UserNo = UserNo(1);
    const BOB: UserNo = UserNo(2);
    const FEED: FeedId = FeedId(3);
    const LINE: ItemId = ItemId(50);

    fn key(actor: UserNo) -> CompactString {
        compact_str::format_compact!("key-{}", actor.0)
    }

    fn told(actor: UserNo) -> Body {
        Body::stored(format!("{{\"actor\":\"user-{}\"}}", actor.0)).unwrap()
    }

    fn joins(actor: UserNo) -> Write {
        let publish = Publish::new(format!("user-{}", actor.0).parse().unwrap(), told(actor));
        let (kind, foreign_id, audience) = (Some("like".into()), Some(key(actor)), Audience::Users(vec![]));
        let publish = Publish { kind, foreign_id, audience, feed: FEED, ..publish };
        let (group, mutual, sees) = (Some("g".into()), false, None);
        Write::Notify(Box::new(Notification { reader: ANN, actor, publish, group, mutual, sees }))
    }

    fn leaves(actor: UserNo, even_seen: bool) -> Write {
        Write::Withdraw { key: key(actor), even_seen }
    }

    /// Rows in which bob has joined a line of ann, whose item was published at 70, and users up to 9 are known.
    fn rows(seen: Option<Millis>) -> Rows {
        let line = Line { reader: ANN, group: "g".into(), kind: "like".into(), item: LINE, count: 1, next: 2 };
        let newest = vec![Member { seq: 1, key: key(BOB), actor: BOB, told: told(BOB) }];
        let item = ItemRow {
            author: BOB,
            seq: 0,
            published_at: 70,
            rank: 70,
            version: 1,
            feed: FEED,
            door: Door::Direct(vec![ANN]),
            fingerprint: [0; 16],
            living: true,
            repost_of: None,
            mentions: vec![],
        };
        let users = || (2..9).map(UserNo);
        Rows {
            members: users().map(|user| (key(user), (user == BOB).then_some(LINE))).collect(),
            foreign_ids: users().map(|user| (key(user), (user == BOB).then_some(LINE))).collect(),
            edges: users().map(|user| ((ANN, user), None)).collect(),
            groups: [((ANN, "g".into()), Some(LINE))].into(),
            lines: [(LINE, Some(LineRow { line, newest }))].into(),
            items: [(LINE, Some(item))].into(),
            sights: [(InboxKey { reader: ANN, feed: FEED }, seen)].into(),
            ..Rows::default()
        }
    }

    /// A line that changes, its count, and how many join and leave.
    type Moved = (Option<ItemId>, u64, usize, usize);

    /// Each line that changes, and how often somebody is told.
    fn gathered(rows: &Rows, asked: &[Write]) -> (Vec<Moved>, usize) {
        let Gathered { lines, told, others } = gather(rows, asked).unwrap();
        assert!(others.is_empty(), "{others:?}");
        let line = |line: LineWrite| (line.id, line.line.count, line.joined.len(), line.left.len());
        (lines.into_iter().map(line).collect(), told.len())
    }

    #[test]
    fn s6_deeds_of_one_transaction_change_a_line_once() {
        let asked =
            [joins(UserNo(3)), joins(UserNo(4)), leaves(BOB, false), joins(UserNo(5)), leaves(UserNo(4), false)];
        assert_eq!(gathered(&rows(Some(69)), &asked), (vec![(Some(LINE), 2, 2, 1)], 5));
        assert_eq!(gathered(&rows(None), &asked[..2]), (vec![(Some(LINE), 3, 2, 0)], 2));
        assert_eq!(gathered(&rows(None), &[joins(BOB)]), (vec![], 0), "it is told already");
    }

    #[test]
    fn s6_nothing_joins_or_leaves_a_line_that_was_seen() {
        let asked = [joins(UserNo(3)), joins(UserNo(4))];
        assert_eq!(gathered(&rows(Some(70)), &asked), (vec![(None, 2, 2, 0)], 2), "another line begins");
        assert_eq!(gathered(&rows(Some(70)), &[leaves(BOB, false)]), (vec![], 0));
        assert_eq!(gathered(&rows(Some(70)), &[leaves(BOB, true)]), (vec![(Some(LINE), 0, 0, 1)], 1), "but an erasure");
    }

    #[test]
    fn s6_nobody_is_told_who_leaves_a_line_whose_item_was_deleted() {
        let mut rows = rows(None);
        rows.items.values_mut().flatten().for_each(|item| item.living = false);
        assert_eq!(gathered(&rows, &[leaves(BOB, false)]), (vec![(Some(LINE), 0, 0, 1)], 0));
    }

    #[test]
    fn s6_nothing_joins_a_line_through_a_shield() {
        let mut rows = rows(None);
        let muted = EdgeRow { shields: Shields::MUTED, ..EdgeRow::default() };
        rows.edges.insert((ANN, UserNo(3)), Some(muted));
        assert_eq!(gathered(&rows, &[joins(UserNo(3))]), (vec![], 0));
    }

    #[test]
    fn s6_a_line_that_changes_names_nobody_who_is_behind_a_shield_by_now() {
        let mut rows = rows(None);
        let told = |rows: &Rows| match gather(rows, &[joins(UserNo(3))]).unwrap().lines.remove(0).then {
            Then::Replaced(_, publish) => publish.body.get().contains("user-2"),
            other => panic!("{other:?}"),
        };
        assert!(told(&rows));
        let blocked = EdgeRow { shields: Shields::BLOCKED_BY_READER, ..EdgeRow::default() };
        rows.edges.insert((ANN, BOB), Some(blocked));
        assert!(!told(&rows));
        rows.edges.remove(&(ANN, BOB));
        let Err(Stop::Needs(needs)) = gather(&rows, &[joins(UserNo(3))]) else { panic!("an edge is not loaded") };
        assert_eq!(needs, [crate::accept::Need::Edge(ANN, BOB)]);
    }

    /// What other programs are told of a write at 80, with the rows of [`rows`].
    fn announced(write: Write) -> Vec<Announcement> {
        let rows = Rows { readers: [(ANN, ReaderRow::default())].into(), ..rows(None) };
        let ask = Ask::new(write, 80);
        let plan = decide(&rows, &ask, Policy::default()).unwrap();
        announcements(&ask, &plan)
    }

    fn announcement(act: Act, user: UserNo, item: ItemId, version: Option<u32>) -> Announcement {
        Announcement { act, user, other: None, item: Some(item), version, at: 80, detail: None }
    }

    #[test]
    fn s6_other_programs_are_told_what_becomes_of_the_items_of_a_line() {
        let line = |then| {
            let line = rows(None).lines[&LINE].clone().unwrap().line;
            Write::Line(Box::new(LineWrite { id: Some(LINE), line, joined: vec![], left: vec![], then }))
        };
        assert_eq!(announced(line(Then::Nothing)), []);
        assert_eq!(announced(line(Then::Gone)), [announcement(Act::Delete, BOB, LINE, None)]);
        let edited = line(Then::Edited(told(UserNo(3))));
        assert_eq!(announced(edited), [announcement(Act::Edit, BOB, LINE, Some(2))]);
        let Write::Notify(other) = joins(UserNo(3)) else { panic!("a deed notifies") };
        let publish = Publish { id: Some(ItemId(51)), ..other.publish };
        let made = announcement(Act::Publish, UserNo(3), ItemId(51), Some(1));
        let made = Announcement { detail: Some(key(UserNo(3))), ..made };
        let replaced = line(Then::Replaced(UserNo(3), Box::new(publish)));
        assert_eq!(announced(replaced), [announcement(Act::Delete, BOB, LINE, None), made]);
    }

    #[test]
    fn s5_other_programs_are_told_of_a_notification_and_that_it_is_taken_back() {
        let Write::Notify(mut told) = joins(UserNo(3)) else { panic!("a deed notifies") };
        (told.group, told.publish.id) = (None, Some(ItemId(51)));
        let made = announcement(Act::Publish, UserNo(3), ItemId(51), Some(1));
        assert_eq!(announced(Write::Notify(told)), [Announcement { detail: Some(key(UserNo(3))), ..made }]);
        assert_eq!(announced(leaves(BOB, false)), [announcement(Act::Delete, BOB, LINE, None)]);
    }

    /// Deeds leave and join in one change, so the newest members are those that join, then those that stay.
    #[test]
    fn s6_rows_follow_a_line_as_the_store_does() {
        let member = |actor, seq| Member { seq, key: key(actor), actor, told: told(actor) };
        let group = (ANN, CompactString::from("g"));
        let after = |id: ItemId, count, left: &[CompactString]| {
            let mut rows = rows(None);
            let line = Line { count, ..rows.lines[&LINE].clone().unwrap().line };
            let joined = Cow::Owned(if count > 0 { vec![member(UserNo(3), 2)] } else { vec![] });
            rows.apply_one(&Change::Line { id, line, begins: false, joined, left });
            let newest = rows.lines[&id].clone().map(|row| row.newest);
            (newest, rows.groups[&group])
        };
        let (three, bob) = (member(UserNo(3), 2), member(BOB, 1));
        assert_eq!(after(LINE, 2, &[]), (Some(vec![three.clone(), bob]), Some(LINE)));
        assert_eq!(after(LINE, 1, &[key(BOB)]), (Some(vec![three.clone()]), Some(LINE)));
        assert_eq!(after(LINE, 0, &[key(BOB)]), (None, None), "a line without members is gone, and nothing joins it");
        assert_eq!(after(ItemId(40), 1, &[]), (Some(vec![three]), Some(LINE)), "an older line");
        assert_eq!(after(ItemId(40), 0, &[]), (None, Some(LINE)));
    }

    #[test]
    fn s6_rows_that_are_missing_are_asked_for_together() {
        let asked = [joins(UserNo(3)), joins(UserNo(4))];
        let Err(Stop::Needs(needs)) = gather(&Rows::default(), &asked) else { panic!("nothing is loaded") };
        assert_eq!(needs.len(), 2, "{needs:?}");
        let Err(Stop::Needs(needs)) = gather(&Rows { lines: HashMap::new(), ..rows(None) }, &asked) else {
            panic!("the line is not loaded")
        };
        assert_eq!(needs, [crate::accept::Need::Line(LINE, ACTORS)]);
    }
}
