//! Reactions: the set, its counts and its list change in one operation of the only writer, so no lock is needed and a
//! count is never off. The kinds of an item and all its counts are one row, so most items cost a page one look at a key
//! that is not there, and a store without any reaction costs it nothing.

use std::ops::Bound::{Excluded, Included};

use async_trait::async_trait;
use compact_str::CompactString;
use feedgate_common::archive::Reactions;
use feedgate_common::around::{
    Around, Place, Reacted, Reaction, ReactionKind, Unreacted, may_have_kind, newest_of, place_after,
};
use feedgate_common::error::Result;
use feedgate_common::{ItemId, Millis, StoreError, UserNo};

use super::any::Any;
use super::around_items::AroundItems;
use super::tables::{self, Items, Life, ReactedRow, ReactionEnds, Reactors, Slot, Tallies, TallyRow};
use super::{EmbeddedArchive, comments, reposts};
use crate::request::Durability;
use crate::view::{Read, Tx, View};

/// The most reactions of deleted items that one write removes. So few do not slow it down.
const SWEEP_MAX: usize = 512;

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

    async fn around(&self, items: &[ItemId], viewer: Option<UserNo>) -> Result<Vec<Around>> {
        let any = [&self.reactions.any, &self.comments.any, &*self.any_reposts].map(Any::is_set);
        let [any_reactions, any_comments, any_reposts] = any;
        if any == [false; 3] {
            return Ok(vec![Around::default(); items.len()]);
        }
        let view = self.db.view()?;
        let joined = |item: &ItemId| {
            let reactions = if any_reactions { around(&view, *item, viewer)? } else { Around::default() };
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
        kind: Option<&ReactionKind>,
        before: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<Reacted>> {
        let view = self.db.view()?;
        let places = places(&view, item, kind, before, limit)?;
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

fn lives(from: &impl Read, item: ItemId) -> Result<bool> {
    Ok(from.get::<Items>(&item)?.is_some_and(|row| row.life != Life::Gone))
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

fn around(view: &View, item: ItemId, viewer: Option<UserNo>) -> Result<Around> {
    let Some(TallyRow(tally)) = view.get::<Tallies>(&item)? else { return Ok(Around::default()) };
    let kinds = tally.iter().map(|(kind, _)| kind_of(item, kind)).collect::<Result<Vec<_>>>()?;
    let given = kinds.iter().cloned().zip(tally.iter().map(|(_, count)| *count));
    let mut counts: Vec<_> = given.filter(|(_, count)| *count > 0).collect();
    counts.sort_unstable();
    let mut own = vec![];
    if let (Some(viewer), false) = (viewer, counts.is_empty()) {
        let ReactedRow(reacted) = view.get::<tables::Reacted>(&(item, viewer))?.unwrap_or_default();
        own.extend(reacted.iter().filter_map(|(slot, _)| kinds.get(usize::from(*slot)).cloned()));
        own.sort_unstable();
    }
    Ok(Around { counts, own, ..Around::default() })
}

/// The places of the list of an item, as [`Reactions::reactions`] answers them.
fn places(
    view: &View,
    item: ItemId,
    only: Option<&ReactionKind>,
    before: Option<&Place>,
    limit: usize,
) -> Result<Vec<Place>> {
    let TallyRow(tally) = view.get::<Tallies>(&item)?.unwrap_or_default();
    let mut found = vec![];
    for (slot, (text, _)) in tally.iter().enumerate() {
        let (slot, kind) = (number_of(slot), kind_of(item, text)?);
        if only.is_some_and(|only| *only != kind) {
            continue;
        }
        let below = match before {
            None => Included((item, slot, Millis::MAX, UserNo(u32::MAX))),
            Some(before) if place_after(before, &kind) => Included((item, slot, before.at, before.user)),
            Some(before) => Excluded((item, slot, before.at, before.user)),
        };
        for row in view.scan::<Reactors>((Included((item, slot, Millis::MIN, UserNo(0))), below)).rev().take(limit) {
            let ((_, _, at, user), ()) = row?;
            found.push(Place { at, user, kind: kind.clone() });
        }
    }
    Ok(newest_of(found, limit))
}

/// Takes the reactions of an item from sight, because it is deleted. Their rows are removed by later writes.
pub(super) fn end(tx: &mut Tx<'_>, item: ItemId) -> Result<()> {
    if tx.has::<Tallies>(&item)? {
        tx.remove::<Tallies>(&item);
        tx.put::<ReactionEnds>(&item, &());
    }
    Ok(())
}

/// Removes some reactions of the first deleted item that has any. Answers whether there may be more.
fn sweep(tx: &mut Tx<'_>) -> Result<bool> {
    let Some((item, ())) = tx.scan::<ReactionEnds>(..).next().transpose()? else { return Ok(false) };
    let all = (item, 0, Millis::MIN, UserNo(0))..=(item, Slot::MAX, Millis::MAX, UserNo(u32::MAX));
    let rows: Vec<_> = tx.scan::<Reactors>(all).take(SWEEP_MAX).collect::<Result<_>>()?;
    for (key @ (_, _, _, user), ()) in &rows {
        tx.remove::<Reactors>(key);
        tx.remove::<tables::Reacted>(&(item, *user));
    }
    if rows.len() < SWEEP_MAX {
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
        assert_eq!(archive.around(&[item], None).await.unwrap(), [Around::default()]);
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
        assert_eq!(archive.around(&[item], None).await.unwrap()[0].counts.len(), 2);
    }
}
