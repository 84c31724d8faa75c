//! Lists of users, and the audiences of items.
//!
//! Invariants: `Listing` has a row for each row of `Listed`. `ListHeads` has a row for each list with a member, and for
//! no other.

use std::ops::Bound::{Excluded, Included, Unbounded};

use async_trait::async_trait;
use compact_str::CompactString;
use feedgate_common::archive::{self, Follow, ListCursor};
use feedgate_common::audience::{ListChange, ListRefused, Listed as Line, has_room};
use feedgate_common::error::Result;
use feedgate_common::ids::ListName;
use feedgate_common::{ItemId, StoreError, UserNo};

use super::EmbeddedArchive;
use super::tables::{AudienceRow, Audiences, ListHeads, ListPlace, Listed, Listing};
use crate::request::{Durability, Request};
use crate::view::{Read, Tx, View};

#[async_trait]
impl archive::Audiences for EmbeddedArchive {
    async fn change_lists(&self, changes: Vec<ListChange>) -> Result<Vec<std::result::Result<bool, ListRefused>>> {
        let bytes = changes.len() * 2 * size_of::<ListChange>();
        let change = Request::new(Durability::Synced, move |tx| changes.iter().map(|one| change(tx, one)).collect());
        self.db.submit(change.bytes(bytes)).await
    }

    async fn lists(&self, owner: UserNo) -> Result<Vec<(ListName, u64)>> {
        let heads = heads(&*self.db.view()?, owner).collect::<Result<Vec<_>>>()?;
        heads.into_iter().map(|(list, members)| Ok((name(&list)?, members))).collect()
    }

    async fn members(
        &self,
        owner: UserNo,
        list: &ListName,
        cursor: Option<ListCursor>,
        limit: usize,
    ) -> Result<Vec<Follow>> {
        let view = self.db.view()?;
        let after = cursor.map(|cursor| UserNo(u32::try_from(cursor.listed).unwrap_or(u32::MAX)));
        let from = after.map_or(Included(place(owner, list, 0)), |after| Excluded(place(owner, list, after.0)));
        let rows = view.scan::<Listed>((from, Included(place(owner, list, u32::MAX)))).take(limit);
        let line = |((_, ListPlace { member, .. }), since)| {
            Ok(Follow { user: self.users.learn_id(&view, member)?, since, cursor: ListCursor::at(member.0.into()) })
        };
        rows.map(|row| row.and_then(line)).collect()
    }

    async fn member_nos(&self, owner: UserNo, lists: &[ListName]) -> Result<Vec<Vec<UserNo>>> {
        let view = self.db.view()?;
        let all = |list| {
            let rows = view.scan::<Listed>(place(owner, list, 0)..=place(owner, list, u32::MAX));
            rows.map(|row| row.map(|((_, place), _)| place.member)).collect()
        };
        lists.iter().map(all).collect()
    }

    async fn listed(&self, after: Option<(UserNo, ListName, UserNo)>, limit: usize) -> Result<Vec<Line>> {
        let from = after.map_or(Unbounded, |(owner, list, member)| Excluded(place(owner, &list, member.0)));
        let rows = self.db.view()?.scan::<Listed>((from, Unbounded)).take(limit);
        rows.map(|row| row.and_then(line)).collect()
    }

    async fn listing(&self, member: UserNo, after: Option<(UserNo, ListName)>, limit: usize) -> Result<Vec<Line>> {
        let view = self.db.view()?;
        let line = |row: Result<((UserNo, UserNo, CompactString), ())>| {
            let ((_, owner, list), ()) = row?;
            let key = (owner, ListPlace { list, member });
            let since = view.get::<Listed>(&key)?.unwrap_or_default();
            line((key, since))
        };
        let after = after.map(|(owner, list)| (owner, CompactString::from(list.as_str())));
        listing(&*view, member, after).take(limit).map(line).collect()
    }

    async fn audience(&self, item: ItemId) -> Result<Vec<UserNo>> {
        Ok(self.db.view()?.get::<Audiences>(&item)?.map_or_else(Vec::new, |row| row.0))
    }
}

/// Whether the audience of an item has the reader.
pub(super) fn has(from: &impl Read, item: ItemId, reader: UserNo) -> Result<bool> {
    let audience = from.get::<Audiences>(&item)?;
    Ok(audience.is_some_and(|AudienceRow(readers)| readers.binary_search(&reader).is_ok()))
}

/// Takes a reader out of the audience of an item.
pub(super) fn leave(tx: &mut Tx<'_>, item: ItemId, reader: UserNo) -> Result<()> {
    if let Some(AudienceRow(mut readers)) = tx.get::<Audiences>(&item)? {
        readers.retain(|other| *other != reader);
        tx.put::<Audiences>(&item, &AudienceRow(readers));
    }
    Ok(())
}

/// Removes members from the user's lists, and the user from lists of others, at most `limit` in all. Answers how many.
pub(super) fn forget(tx: &mut Tx<'_>, user: UserNo, limit: usize) -> Result<usize> {
    let own = owned(tx, user).map(|row| row.map(|(key, _)| key));
    let others = listing(tx, user, None).map(|row| {
        let ((member, owner, list), ()) = row?;
        Ok((owner, ListPlace { list, member }))
    });
    let lines: Vec<(UserNo, ListPlace)> = own.chain(others).take(limit).collect::<Result<_>>()?;
    for (owner, ListPlace { list, member }) in &lines {
        take_off(tx, *owner, list, *member)?;
    }
    Ok(lines.len())
}

/// How many members the user's lists have, and on how many lists the user is.
pub(super) fn count(view: &View, user: UserNo) -> (u64, u64) {
    (owned(view, user).count() as u64, listing(view, user, None).count() as u64)
}

fn change(tx: &mut Tx<'_>, change: &ListChange) -> Result<std::result::Result<bool, ListRefused>> {
    let ListChange { owner, list, member, on, at } = change;
    let list = CompactString::from(list.as_str());
    let key = (*owner, ListPlace { list: list.clone(), member: *member });
    if tx.has::<Listed>(&key)? == *on {
        return Ok(Ok(false));
    }
    if !on {
        take_off(tx, *owner, &list, *member)?;
        return Ok(Ok(true));
    }
    let head = (*owner, list.clone());
    let members = tx.get::<ListHeads>(&head)?.unwrap_or(0);
    let lists = if members == 0 { heads(tx, *owner).count() } else { 0 };
    if let Err(refused) = has_room(members, lists) {
        return Ok(Err(refused));
    }
    tx.put::<ListHeads>(&head, &(members + 1));
    tx.put::<Listed>(&key, at);
    tx.put::<Listing>(&(*member, *owner, list), &());
    Ok(Ok(true))
}

/// Takes a member off a list, if the member is on the list.
fn take_off(tx: &mut Tx<'_>, owner: UserNo, list: &CompactString, member: UserNo) -> Result<()> {
    if !tx.has::<Listed>(&(owner, ListPlace { list: list.clone(), member }))? {
        return Ok(());
    }
    tx.remove::<Listed>(&(owner, ListPlace { list: list.clone(), member }));
    tx.remove::<Listing>(&(member, owner, list.clone()));
    let head = (owner, list.clone());
    match tx.get::<ListHeads>(&head)? {
        Some(members) if members > 1 => tx.put::<ListHeads>(&head, &(members - 1)),
        _ => tx.remove::<ListHeads>(&head),
    }
    Ok(())
}

fn place(owner: UserNo, list: &ListName, member: u32) -> (UserNo, ListPlace) {
    (owner, ListPlace { list: list.as_str().into(), member: UserNo(member) })
}

fn line(((owner, ListPlace { list, member }), since): ((UserNo, ListPlace), i64)) -> Result<Line> {
    Ok(Line { owner, list: name(&list)?, member, since })
}

fn name(list: &CompactString) -> Result<ListName> {
    list.parse().map_err(|why| StoreError::corrupt(format_args!("the list {list:?}: {why}")))
}

/// The lists of a user by name, each with the number of its members.
fn heads<R: Read>(from: &R, owner: UserNo) -> impl Iterator<Item = Result<(CompactString, u64)>> + use<R> {
    let first = |owner| (UserNo(owner), CompactString::default());
    let rows = from.scan::<ListHeads>(first(owner.0)..first(owner.0.saturating_add(1)));
    rows.map(|row| row.map(|((_, list), members)| (list, members)))
}

type OwnedRow = ((UserNo, ListPlace), i64);

/// The lines of the lists of a user.
fn owned<R: Read>(from: &R, owner: UserNo) -> impl Iterator<Item = Result<OwnedRow>> + use<R> {
    let first = |owner| (UserNo(owner), ListPlace { list: CompactString::default(), member: UserNo(0) });
    from.scan::<Listed>((Included(first(owner.0)), Excluded(first(owner.0.saturating_add(1)))))
}

/// The lists on which a user is, by owner, after this list of an owner.
fn listing<R: Read>(
    from: &R,
    member: UserNo,
    after: Option<(UserNo, CompactString)>,
) -> impl Iterator<Item = Result<((UserNo, UserNo, CompactString), ())>> + use<R> {
    let first = |member| (UserNo(member), UserNo(0), CompactString::default());
    let begin = after.map_or(Included(first(member.0)), |(owner, list)| Excluded((member, owner, list)));
    from.scan::<Listing>((begin, Excluded(first(member.0.saturating_add(1)))))
}
