//! Comments: the rows that a change needs are loaded, decided on and stored by the only writer, so no lock is needed. A
//! store without any comment costs a page nothing.

use std::ops::Bound::{Excluded, Included};

use async_trait::async_trait;
use feedgate_common::archive::Comments;
use feedgate_common::around::{
    COMMENTS_LOOKED_AT, Comment, CommentOrder, CommentPage, CommentPlace, CommentRow, CommentRows, CommentWrite,
    Commented, Onlooker, Talk, Tie, Uncommented, Viewer, Visible, comment_id, shows_comment,
};
use feedgate_common::error::Result;
use feedgate_common::graph::Shields;
use feedgate_common::mentions::text_of;
use feedgate_common::{Body, ItemId, Millis, StoreError, UserNo};

use super::EmbeddedArchive;
use super::any::Any;
use super::around_items::AroundItems;
use super::hot::mentions_of;
use super::tables::{self, CommentEnds, CommentIds, CommentKeys, Edges, Items, Life, TalkRow, Talks};
use crate::codec::Short;
use crate::request::Durability;
use crate::view::{Read, Tx, View};

/// The most comments of deleted items that one write removes. So few do not slow down the write.
const SWEEP_MAX: usize = 256;

/// What is known of all comments without a look into the store.
pub(super) fn known(from: &impl Read) -> Result<AroundItems> {
    Ok(AroundItems::new(Any::of::<Talks>(from)?, sweep))
}

/// How many comments an item has.
pub(super) fn count(view: &View, item: ItemId) -> Result<u64> {
    Ok(view.get::<Talks>(&item)?.map_or(0, |talk| talk.count))
}

#[async_trait]
impl Comments for EmbeddedArchive {
    async fn comment(
        &self,
        writes: Vec<CommentWrite>,
        now: Millis,
    ) -> Result<Vec<std::result::Result<Commented, Uncommented>>> {
        let known = self.comments.clone();
        let comment = move |tx: &mut Tx<'_>| {
            known.any.set();
            known.sweep(tx, false)?;
            writes.iter().map(|write| Ok(apply(tx, write, now)?.0)).collect()
        };
        self.db.write(Durability::Synced, comment).await
    }

    async fn comments(
        &self,
        item: ItemId,
        onlooker: Onlooker,
        order: CommentOrder,
        from: Option<CommentPlace>,
        limit: usize,
    ) -> Result<CommentPage> {
        let view = self.db.view()?;
        let (mut page, mut last) = (CommentPage::default(), None);
        if !view.has::<Talks>(&item)? {
            return Ok(page);
        }
        let eyes = Eyes::of(&view, onlooker, item)?;
        let place = |place: CommentPlace| Excluded((item, place.at, place.id));
        let first = || Included((item, Millis::MIN, ItemId(0)));
        let end = || Included((item, Millis::MAX, ItemId(u64::MAX)));
        let mut rows = match order {
            CommentOrder::Newest => view.scan::<tables::Comments>((first(), from.map_or_else(end, place))),
            CommentOrder::Oldest => view.scan::<tables::Comments>((from.map_or_else(first, place), end())),
        };
        for _ in 0..COMMENTS_LOOKED_AT {
            let row = match order {
                CommentOrder::Newest => rows.next_back(),
                CommentOrder::Oldest => rows.next(),
            };
            let Some(row) = row else { return Ok(page) };
            let ((_, at, id), row) = row?;
            let place = CommentPlace { at, id };
            if let Some(comment) = self.seen(&view, place, row_of(item, place, row)?, eyes)? {
                if page.comments.len() == limit {
                    page.next = last;
                    return Ok(page);
                }
                page.comments.push(comment);
            }
            last = Some(place);
        }
        page.next = last;
        Ok(page)
    }

    async fn comment_of(&self, item: ItemId, id: ItemId, onlooker: Onlooker) -> Result<Option<Comment>> {
        self.standing(&*self.db.view()?, (item, id), onlooker)
    }

    async fn comments_of(&self, of: &[(ItemId, ItemId)]) -> Result<Vec<Option<Comment>>> {
        let view = self.db.view()?;
        of.iter().map(|one| self.standing(&view, *one, Onlooker::BACKEND)).collect()
    }

    async fn commented_item(&self, after: Option<ItemId>) -> Result<Option<ItemId>> {
        let view = self.db.view()?;
        let from = after.map_or(Included(ItemId(0)), Excluded);
        let first = view.scan::<Talks>((from, Included(ItemId(u64::MAX)))).next().transpose()?;
        Ok(first.map(|(item, _)| item))
    }
}

impl EmbeddedArchive {
    /// The comment of an item with this id, if it stands and the onlooker sees it.
    fn standing(&self, view: &View, (item, id): (ItemId, ItemId), onlooker: Onlooker) -> Result<Option<Comment>> {
        let Some(row) = comment(view, id)?.filter(|row| row.item == item) else { return Ok(None) };
        if !view.has::<Talks>(&item)? {
            return Ok(None);
        }
        self.seen(view, CommentPlace { at: row.at, id }, row, Eyes::of(view, onlooker, item)?)
    }

    /// The comment of a row, if the comment stands and the viewer sees it.
    fn seen(&self, view: &View, place: CommentPlace, row: CommentRow, eyes: Eyes) -> Result<Option<Comment>> {
        if !row.stands() || !eyes.see(view, &row)? {
            return Ok(None);
        }
        let author = self.users.learn_id(view, row.author)?;
        let CommentRow { author: author_no, reply_to, version, body, mentions, .. } = row;
        Ok(Some(Comment { place, author, author_no, reply_to, version, body, mentions }))
    }
}

/// The viewer for whom the comments of one item are read.
#[derive(Clone, Copy)]
struct Eyes {
    onlooker: Onlooker,
    /// The author of the item; `None` if the author does not decide what the viewer sees.
    owner: Option<UserNo>,
}

impl Eyes {
    fn of(view: &View, onlooker: Onlooker, item: ItemId) -> Result<Self> {
        let owner = if onlooker.sees_some() { view.get::<Items>(&item)?.map(|row| row.author) } else { None };
        Ok(Self { onlooker, owner })
    }

    /// Whether the viewer sees a comment that stands.
    fn see(self, view: &View, row: &CommentRow) -> Result<bool> {
        let Viewer::User(user) = self.onlooker.viewer else { return Ok(true) };
        let held = |reader, author| Ok(view.get::<Edges>(&(reader, author))?.map(|edge| edge.held));
        let to_author = user.map(|user| held(user, row.author)).transpose()?.flatten();
        let follows = self.onlooker.visible == Visible::Mutual && to_author.is_some_and(|edge| edge.follows);
        let back = user.filter(|_| follows).map(|user| held(row.author, user)).transpose()?.flatten();
        let tie = Tie {
            own: user == Some(row.author),
            shields: to_author.map_or(Shields(0), |edge| edge.shields),
            mutual: back.is_some_and(|edge| edge.follows),
            of_item: self.owner.is_some_and(|owner| owner == row.author || Some(owner) == user),
        };
        Ok(shows_comment(row.body.is_some(), tie, self.onlooker.visible))
    }
}

/// The outcome of a change.
type Outcome = std::result::Result<Commented, Uncommented>;

/// Carries out one change: loads the rows that the change names, decides, and stores the rows that have changed.
/// Answers the rows, too.
pub(super) fn apply(tx: &mut Tx<'_>, write: &CommentWrite, now: Millis) -> Result<(Outcome, CommentRows)> {
    let mut rows = CommentRows::default();
    let item = write.item();
    if let Some(row) = tx.get::<Items>(&item)?.filter(|row| row.life != Life::Gone) {
        let talk = tx.get::<Talks>(&item)?;
        let last = talk.and_then(|talk| talk.last).map(|(at, id)| CommentPlace { at, id });
        rows.talks.insert(item, Talk { owner: row.author, count: talk.map_or(0, |talk| talk.count), last });
    }
    let mut named: Vec<ItemId> = write.comments().collect();
    if let Some(key) = write.key()
        && let Some(id) = tx.get::<CommentKeys>(&key)?
    {
        rows.keys.insert(key, id);
        named.push(id);
    }
    for id in named {
        let Some(row) = comment(tx, id)? else { continue };
        // A comment that begins or ceases to stand changes the count of the comment that it answers.
        let mut answered = row.reply_to;
        while let Some(above) = answered {
            let Some(row) = comment(tx, above)? else { break };
            answered = if row.stands() { None } else { row.reply_to };
            rows.comments.entry(above).or_insert(row);
        }
        rows.comments.insert(id, row);
    }
    let fresh = if write.needs_id() { new_id(tx, now)? } else { ItemId(0) };
    let done = rows.apply(write, now, fresh);
    store(tx, &rows);
    Ok((done, rows))
}

fn store(tx: &mut Tx<'_>, rows: &CommentRows) {
    for item in &rows.talked {
        let Talk { count, last, .. } = rows.talks[item];
        tx.put::<Talks>(item, &TalkRow { count, last: last.map(|place| (place.at, place.id)) });
    }
    for id in &rows.changed {
        let CommentRow { item, at, author, reply_to, replies, version, body, key, fingerprint, mentions } =
            rows.comments[id].clone();
        if let Some(key) = &key {
            tx.put::<CommentKeys>(&(item, author, key.clone()), id);
        }
        let body = body.map(|body| body.get().into());
        let (key, mentions) = (key.map(Short), text_of(&mentions));
        let row = tables::CommentRow { author, reply_to, replies, version, fingerprint, key, mentions, body };
        tx.put::<CommentIds>(id, &(item, at));
        tx.put::<tables::Comments>(&(item, at, *id), &row);
    }
}

/// The comment with an id, whatever its item.
fn comment(from: &impl Read, id: ItemId) -> Result<Option<CommentRow>> {
    let Some((item, at)) = from.get::<CommentIds>(&id)? else { return Ok(None) };
    from.get::<tables::Comments>(&(item, at, id))?.map(|row| row_of(item, CommentPlace { at, id }, row)).transpose()
}

fn row_of(item: ItemId, CommentPlace { at, id }: CommentPlace, row: tables::CommentRow) -> Result<CommentRow> {
    let tables::CommentRow { author, reply_to, replies, version, fingerprint, key, mentions, body } = row;
    let mentions = mentions_of(mentions.as_deref(), id)?;
    let body = body.map(|body| Body::stored(body.into())).transpose().map_err(StoreError::corrupt)?;
    let key = key.map(|Short(key)| key);
    Ok(CommentRow { item, at, author, reply_to, replies, version, body, key, fingerprint, mentions })
}

/// An id that no comment and no item has: by the clock, with the first free number.
fn new_id(tx: &Tx<'_>, now: Millis) -> Result<ItemId> {
    for id in (0..1 << 21).map(|number| comment_id(now, number)) {
        if !tx.has::<CommentIds>(&id)? && !tx.has::<Items>(&id)? {
            return Ok(id);
        }
    }
    Err(StoreError::unavailable("no id of a comment is left in this millisecond"))
}

/// Hides the comments of an item, because the item is deleted. Later writes remove the rows of the comments.
pub(super) fn end(tx: &mut Tx<'_>, item: ItemId) -> Result<()> {
    if tx.has::<Talks>(&item)? {
        tx.remove::<Talks>(&item);
        tx.put::<CommentEnds>(&item, &());
    }
    Ok(())
}

/// Removes some comments of the first deleted item that has any. Answers whether there may be more.
fn sweep(tx: &mut Tx<'_>) -> Result<bool> {
    let Some((item, ())) = tx.scan::<CommentEnds>(..).next().transpose()? else { return Ok(false) };
    let all = (item, Millis::MIN, ItemId(0))..=(item, Millis::MAX, ItemId(u64::MAX));
    let rows: Vec<_> = tx.scan::<tables::Comments>(all).take(SWEEP_MAX).collect::<Result<_>>()?;
    for (place, row) in &rows {
        tx.remove::<tables::Comments>(place);
        tx.remove::<CommentIds>(&place.2);
        if let Some(Short(key)) = &row.key {
            tx.remove::<CommentKeys>(&(item, row.author, key.clone()));
        }
    }
    if rows.len() < SWEEP_MAX {
        tx.remove::<CommentEnds>(&item);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use feedgate_common::archive::{Names, Reactions, Write, Writes};
    use feedgate_common::around::NewComment;

    use super::*;
    use crate::archive::fixture::{open, published};

    /// A new item with so many comments, each with a key.
    async fn commented(archive: &EmbeddedArchive, comments: usize) -> ItemId {
        let item = published(archive).await;
        let author = archive.intern(&["bob".parse().unwrap()]).await.unwrap()[0];
        let body = Body::parse("1".to_owned()).unwrap();
        let new = |n| {
            let key = Some(format!("key-{n}").into());
            CommentWrite::Make(NewComment {
                item,
                author,
                reply_to: None,
                body: body.clone(),
                id: None,
                key,
                past: None,
                mentions: vec![],
            })
        };
        let made = archive.comment((0..comments).map(new).collect(), 5).await.unwrap();
        assert!(made.iter().all(|made| made.as_ref().is_ok_and(|made| made.changed)));
        item
    }

    fn left(archive: &EmbeddedArchive) -> [usize; 5] {
        let view = archive.db.view().unwrap();
        let (rows, ids) = (view.scan::<tables::Comments>(..).count(), view.scan::<CommentIds>(..).count());
        let (keys, ends) = (view.scan::<CommentKeys>(..).count(), view.scan::<CommentEnds>(..).count());
        [view.scan::<Talks>(..).count(), rows, ids, keys, ends]
    }

    #[tokio::test]
    async fn s3_the_rows_of_a_deleted_items_comments_are_removed_some_with_each_write() {
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path()).await;
        let all = SWEEP_MAX + 1;
        let item = commented(&archive, all).await;
        assert_eq!(left(&archive), [1, all, all, all, 0]);
        archive.write(vec![Write::Delete { item, if_version: None }], 2).await.unwrap();
        assert_eq!(left(&archive), [0, all, all, all, 1], "out of sight at once");
        assert_eq!(archive.around(&[item], Onlooker::BACKEND).await.unwrap()[0].comments, 0);
        let follow = || Write::Follow { reader: "bob".parse().unwrap(), author: "ann".parse().unwrap() };
        for rows in [1, 0] {
            archive.write(vec![follow()], 3).await.unwrap();
            assert_eq!(left(&archive)[1], rows, "so many with each write");
        }
        assert_eq!(left(&archive), [0; 5]);
    }

    #[tokio::test]
    async fn s1_a_store_that_is_opened_again_knows_that_it_has_comments() {
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path()).await;
        let item = commented(&archive, 3).await;
        drop(archive);
        let archive = open(dir.path()).await;
        assert_eq!(archive.around(&[item], Onlooker::BACKEND).await.unwrap()[0].comments, 3);
    }
}
