//! Reactions: the set, its counts and its list change in one operation of the only writer, so no lock is needed and a
//! count is never off. The kinds of an item and all its counts are one row, so most items cost a page one look at a key
//! that is not there, and a store without any reaction costs it nothing.

use std::ops::Bound::{Excluded, Included};

use async_trait::async_trait;
use compact_str::CompactString;
use feedgate_common::archive::Reactions;
use feedgate_common::around::{
    Around, Onlooker, Place, Reacted, Reaction, ReactionKind, Unreacted, may_have_kind, newest_of, place_after,
};
use feedgate_common::error::Result;
use feedgate_common::{ItemId, Millis, StoreError, UserNo};

use super::any::Any;
use super::around_items::AroundItems;
use super::circle::Circle;
use super::tables::{self, Items, ReactedRow, ReactionEnds, Reactors, Slot, Tallies, TallyRow, lives};
use super::{EmbeddedArchive, comments, lines, reposts};
use crate::request::Durability;
use crate::view::{Read, Tx, View};

/// The most reactions of deleted items, and members of lines that are over, that one write removes. So few do not slow
/// it down.
pub(super) const SWEEP_MAX: usize = 512;

/// What is known of all reactions without a look into the store.
pub(super) fn known(from: &impl Read) -> Result<AroundItems> {
    Ok(AroundItems::new(Any::of::<Tallies>(from)?, sweep))
}

#[async_trait]
impl Reactions for EmbeddedArchive {
    async fn react(&self, reactions: &[Reaction]) -> Result<Vec<std::result::Result<bool, Unreacted>>> {
        let (known, reactions) = (self.reactions.clone(), reactions.to_vec());
        let react = move |tx: &mut Tx<'_>| {
            known.any.set();
            known.sweep(tx, false)?;
            reactions.iter().map(|reaction| give(tx, reaction)).collect()
        };
        self.db.write(Durability::Synced, react).await
    }

    async fn unreact(&self, reactions: &[Reaction]) -> Result<Vec<std::result::Result<bool, Unreacted>>> {
        let reactions = reactions.to_vec();
        let unreact = move |tx: &mut Tx<'_>| reactions.iter().map(|reaction| take_back(tx, reaction)).collect();
        self.db.write(Durability::Synced, unreact).await
    }

    async fn around(&self, items: &[ItemId], onlooker: Onlooker) -> Result<Vec<Around>> {
        let any = [&self.reactions.any, &self.comments.any, &*self.any_reposts].map(Any::is_set);
        let [any_reactions, any_comments, any_reposts] = any;
        if any == [false; 3] {
            return Ok(vec![Around::default(); items.len()]);
        }
        let view = self.db.view()?;
        let circle = if any_reactions { Circle::of(&view, onlooker)? } else { None };
        let joined = |item: &ItemId| {
            let reactions =
                if any_reactions { around(&view, *item, onlooker, circle.as_ref())? } else { Around::default() };
            let comments = if any_comments { comments::count(&view, *item)? } else { 0 };
            // Reposts outlive their original, around which nothing stands any more.
            let reposts = if any_reposts { reposts::how_many(&*view, *item)? } else { 0 };
            let reposts = if reposts > 0 && !lives(&*view, *item)? { 0 } else { reposts };
            Ok(Around { comments, reposts, ..reactions })
        };
        items.iter().map(joined).collect()
    }

    async fn reactions(
        &self,
        item: ItemId,
        onlooker: Onlooker,
        kind: Option<&ReactionKind>,
        before: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<Reacted>> {
        let view = self.db.view()?;
        let page = Page { item, kind, before, limit };
        let places = match Circle::of(&view, onlooker)? {
            Some(circle) => page.seen(&view, &circle)?,
            None => page.of_all(&view, |_| true)?,
        };
        let line = |place: Place| Ok(Reacted { user: self.users.learn_id(&view, place.user)?, place });
        places.into_iter().map(line).collect()
    }

    async fn reacted_item(&self, after: Option<ItemId>) -> Result<Option<ItemId>> {
        let view = self.db.view()?;
        let from = after.map_or(Included(ItemId(0)), Excluded);
        for row in view.scan::<Tallies>((from, Included(ItemId(u64::MAX)))) {
            let (item, tally) = row?;
            if tally.0.iter().any(|(_, count)| *count > 0) {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

/// Gives one reaction. Answers whether it was not there before.
pub(super) fn give(tx: &mut Tx<'_>, reaction: &Reaction) -> Result<std::result::Result<bool, Unreacted>> {
    let Reaction { item, user, at, .. } = *reaction;
    if !lives(tx, item)? {
        return Ok(Err(Unreacted::NoSuchItem(item)));
    }
    let mut tally = tx.get::<Tallies>(&item)?.unwrap_or_default();
    let known = slot(&tally, &reaction.kind);
    if !may_have_kind(tally.0.len(), known.is_some()) {
        return Ok(Err(Unreacted::TooManyKinds(item)));
    }
    let slot = known.unwrap_or_else(|| {
        tally.0.push((reaction.kind.as_str().into(), 0));
        tally.0.len() - 1
    });
    let mut own = tx.get::<tables::Reacted>(&(item, user))?.unwrap_or_default();
    let number = number_of(slot);
    if own.0.iter().any(|(kind, _)| *kind == number) {
        return Ok(Ok(false));
    }
    own.0.push((number, at));
    tally.0[slot].1 += 1;
    tx.put::<tables::Reacted>(&(item, user), &own);
    tx.put::<Reactors>(&(item, number, at, user), &());
    tx.put::<Tallies>(&item, &tally);
    Ok(Ok(true))
}

/// Takes one reaction back. Answers whether it was there.
pub(super) fn take_back(tx: &mut Tx<'_>, reaction: &Reaction) -> Result<std::result::Result<bool, Unreacted>> {
    let Reaction { item, user, .. } = *reaction;
    if !lives(tx, item)? {
        return Ok(Err(Unreacted::NoSuchItem(item)));
    }
    let Some(mut tally) = tx.get::<Tallies>(&item)? else { return Ok(Ok(false)) };
    let Some(slot) = slot(&tally, &reaction.kind) else { return Ok(Ok(false)) };
    let ReactedRow(mut own) = tx.get::<tables::Reacted>(&(item, user))?.unwrap_or_default();
    let number = number_of(slot);
    let Some(place) = own.iter().position(|(kind, _)| *kind == number) else { return Ok(Ok(false)) };
    let (_, at) = own.remove(place);
    tally.0[slot].1 -= 1;
    if own.is_empty() {
        tx.remove::<tables::Reacted>(&(item, user));
    } else {
        tx.put::<tables::Reacted>(&(item, user), &ReactedRow(own));
    }
    tx.remove::<Reactors>(&(item, number, at, user));
    tx.put::<Tallies>(&item, &tally);
    Ok(Ok(true))
}

fn slot(tally: &TallyRow, kind: &ReactionKind) -> Option<usize> {
    tally.0.iter().position(|(known, _)| known == kind.as_str())
}

fn number_of(slot: usize) -> Slot {
    Slot::try_from(slot).expect("an item has at most 32 kinds")
}

fn kind_of(item: ItemId, text: &CompactString) -> Result<ReactionKind> {
    text.parse().map_err(|why| StoreError::corrupt(format_args!("a kind of reaction to item {item}: {why}")))
}

/// The kinds of an item, by their slots.
fn kinds_of(item: ItemId, TallyRow(tally): &TallyRow) -> Result<Vec<ReactionKind>> {
    tally.iter().map(|(kind, _)| kind_of(item, kind)).collect()
}

/// The reactions around an item as the onlooker sees them; `circle` says whose these are, if not everybody's.
fn around(view: &View, item: ItemId, onlooker: Onlooker, circle: Option<&Circle>) -> Result<Around> {
    let Some(tally) = view.get::<Tallies>(&item)? else { return Ok(Around::default()) };
    let kinds = kinds_of(item, &tally)?;
    let seen = match circle {
        Some(circle) => counts_seen(view, item, &tally, circle)?,
        None => tally.0.iter().map(|(_, count)| *count).collect(),
    };
    let mut counts: Vec<_> = kinds.iter().cloned().zip(seen).filter(|(_, count)| *count > 0).collect();
    counts.sort_unstable();
    let mut own = vec![];
    if let (Some(viewer), false) = (onlooker.viewer.user(), counts.is_empty()) {
        let ReactedRow(reacted) = view.get::<tables::Reacted>(&(item, viewer))?.unwrap_or_default();
        own.extend(reacted.iter().filter_map(|(slot, _)| kinds.get(usize::from(*slot)).cloned()));
        own.sort_unstable();
    }
    Ok(Around { counts, own, ..Around::default() })
}

/// How many reactions of each slot somebody sees who sees those of some.
fn counts_seen(view: &View, item: ItemId, tally: &TallyRow, circle: &Circle) -> Result<Vec<u64>> {
    let mut counts: Vec<u64> = tally.0.iter().map(|(_, count)| *count).collect();
    let owner = view.get::<Items>(&item)?.map(|row| row.author);
    let (others, all_but) = match circle.sees_all_but(owner) {
        Some(blocked) => (reactors(view, item, blocked.iter().copied())?, true),
        None => {
            counts.fill(0);
            (seen_reactors(view, item, tally, owner, circle)?, false)
        }
    };
    for (slot, _) in others.iter().flat_map(|(_, row)| &row.0) {
        let Some(count) = counts.get_mut(usize::from(*slot)) else { continue };
        *count = if all_but { count.saturating_sub(1) } else { *count + 1 };
    }
    Ok(counts)
}

/// The reactions of these users to an item.
fn reactors(view: &View, item: ItemId, users: impl Iterator<Item = UserNo>) -> Result<Vec<(UserNo, ReactedRow)>> {
    let row = |user| Ok(view.get::<tables::Reacted>(&(item, user))?.map(|row| (user, row)));
    users.filter_map(|user| row(user).transpose()).collect()
}

/// The reactions to an item that somebody sees who sees those of some: it looks up the circle or reads all reactions,
/// whichever are fewer.
fn seen_reactors(
    view: &View,
    item: ItemId,
    tally: &TallyRow,
    owner: Option<UserNo>,
    circle: &Circle,
) -> Result<Vec<(UserNo, ReactedRow)>> {
    let given: u64 = tally.0.iter().map(|(_, count)| *count).sum();
    if given > circle.len() as u64 {
        return reactors(view, item, circle.may_see(owner).filter(|user| circle.sees(owner, *user)));
    }
    let all = view.scan::<tables::Reacted>((item, UserNo(0))..=(item, UserNo(u32::MAX)));
    let seen = all.filter(|row| row.as_ref().map_or(true, |((_, user), _)| circle.sees(owner, *user)));
    seen.map(|row| row.map(|((_, user), reacted)| (user, reacted))).collect()
}

/// A part of the list of an item, as [`Reactions::reactions`] asks for it.
struct Page<'a> {
    item: ItemId,
    kind: Option<&'a ReactionKind>,
    before: Option<&'a Place>,
    limit: usize,
}

impl Page<'_> {
    /// The places of this page for a viewer who sees the reactions of some users only.
    fn seen(&self, view: &View, circle: &Circle) -> Result<Vec<Place>> {
        let Some(tally) = view.get::<Tallies>(&self.item)? else { return Ok(vec![]) };
        let owner = view.get::<Items>(&self.item)?.map(|row| row.author);
        if circle.sees_all_but(owner).is_some() {
            return self.of_all(view, |user| circle.sees(owner, user));
        }
        let kinds = kinds_of(self.item, &tally)?;
        let place =
            |user, (slot, at): (Slot, Millis)| Some(Place { at, user, kind: kinds.get(usize::from(slot))?.clone() });
        let seen = seen_reactors(view, self.item, &tally, owner, circle)?;
        let places = seen.into_iter().flat_map(|(user, row)| row.0.into_iter().filter_map(move |one| place(user, one)));
        let on_page = |found: &Place| {
            self.kind.is_none_or(|kind| *kind == found.kind) && self.before.is_none_or(|before| found < before)
        };
        Ok(newest_of(places.filter(on_page), self.limit))
    }

    /// The places of this page whose users `shows` accepts.
    fn of_all(&self, view: &View, shows: impl Fn(UserNo) -> bool) -> Result<Vec<Place>> {
        let Page { item, limit, .. } = *self;
        let tally = view.get::<Tallies>(&item)?.unwrap_or_default();
        let mut found = vec![];
        for (slot, kind) in kinds_of(item, &tally)?.into_iter().enumerate() {
            let slot = number_of(slot);
            if self.kind.is_some_and(|only| *only != kind) {
                continue;
            }
            let below = match self.before {
                None => Included((item, slot, Millis::MAX, UserNo(u32::MAX))),
                Some(before) if place_after(before, &kind) => Included((item, slot, before.at, before.user)),
                Some(before) => Excluded((item, slot, before.at, before.user)),
            };
            let rows = view.scan::<Reactors>((Included((item, slot, Millis::MIN, UserNo(0))), below)).rev();
            let shown = rows.filter(|row| row.as_ref().map_or(true, |((.., user), ())| shows(*user)));
            for row in shown.take(limit) {
                let ((_, _, at, user), ()) = row?;
                found.push(Place { at, user, kind: kind.clone() });
            }
        }
        Ok(newest_of(found, limit))
    }
}

/// Takes the reactions of an item from sight, because it is deleted. Their rows are removed by later writes.
pub(super) fn end(tx: &mut Tx<'_>, item: ItemId) -> Result<()> {
    if tx.has::<Tallies>(&item)? {
        tx.remove::<Tallies>(&item);
        tx.put::<ReactionEnds>(&item, &());
    }
    Ok(())
}

/// Removes some reactions of the first deleted item that has any, or some members of the line that began with it.
/// Answers whether there may be more.
fn sweep(tx: &mut Tx<'_>) -> Result<bool> {
    let Some((item, ())) = tx.scan::<ReactionEnds>(..).next().transpose()? else { return Ok(false) };
    let all = (item, 0, Millis::MIN, UserNo(0))..=(item, Slot::MAX, Millis::MAX, UserNo(u32::MAX));
    let rows: Vec<_> = tx.scan::<Reactors>(all).take(SWEEP_MAX).collect::<Result<_>>()?;
    for (key @ (_, _, _, user), ()) in &rows {
        tx.remove::<Reactors>(key);
        tx.remove::<tables::Reacted>(&(item, *user));
    }
    if rows.len() < SWEEP_MAX && !lines::sweep(tx, item, SWEEP_MAX - rows.len())? {
        tx.remove::<ReactionEnds>(&item);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use feedgate_common::UserId;
    use feedgate_common::archive::{Names, Write, Writes};

    use super::*;
    use crate::archive::fixture::{open, published};

    /// A new item to which so many users have reacted, with two kinds each.
    async fn liked(archive: &EmbeddedArchive, users: usize) -> ItemId {
        let item = published(archive).await;
        let names: Vec<UserId> = (0..users).map(|n| format!("user-{n}").parse().unwrap()).collect();
        let of = |user: UserNo| ["like", "sad"].map(|kind| Reaction { item, kind: kind.parse().unwrap(), user, at: 1 });
        let all: Vec<_> = archive.intern(&names).await.unwrap().into_iter().flat_map(of).collect();
        assert!(archive.react(&all).await.unwrap().iter().all(|given| *given == Ok(true)));
        item
    }

    fn left(archive: &EmbeddedArchive) -> [usize; 4] {
        let view = archive.db.view().unwrap();
        let ends = view.scan::<ReactionEnds>(..).count();
        let listed = view.scan::<Reactors>(..).count();
        [view.scan::<Tallies>(..).count(), view.scan::<tables::Reacted>(..).count(), listed, ends]
    }

    #[tokio::test]
    async fn s1_the_rows_of_a_deleted_items_reactions_are_removed_some_with_each_write() {
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path()).await;
        let item = liked(&archive, SWEEP_MAX).await;
        assert_eq!(left(&archive), [1, SWEEP_MAX, 2 * SWEEP_MAX, 0]);
        archive.write(vec![Write::Delete { item, if_version: None }], 2).await.unwrap();
        assert_eq!(left(&archive), [0, SWEEP_MAX, 2 * SWEEP_MAX, 1], "out of sight at once");
        assert_eq!(archive.around(&[item], Onlooker::BACKEND).await.unwrap(), [Around::default()]);
        let follow = || Write::Follow { reader: "bob".parse().unwrap(), author: "ann".parse().unwrap() };
        for rows in [SWEEP_MAX, 0, 0] {
            archive.write(vec![follow()], 3).await.unwrap();
            assert_eq!(left(&archive)[2], rows, "so many with each write");
        }
        assert_eq!(left(&archive), [0; 4]);
    }

    #[tokio::test]
    async fn s1_a_store_that_is_opened_again_knows_that_it_has_reactions() {
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path()).await;
        let item = liked(&archive, 3).await;
        drop(archive);
        let archive = open(dir.path()).await;
        assert_eq!(archive.around(&[item], Onlooker::BACKEND).await.unwrap()[0].counts.len(), 2);
    }
}
