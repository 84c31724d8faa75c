//! Reposts: the living reposts of each item, and their number. Both change in the operation of the only writer that
//! makes or deletes a repost, so a count is never off. A store without any repost costs a page nothing.

use std::ops::Bound::{Excluded, Included};

use feedgate_common::ItemId;
use feedgate_common::error::Result;

use super::any::Any;
use super::tables::{Items, Life, RepostCounts, Reposts, RepostsKnown};
use crate::database::Database;
use crate::request::Durability;
use crate::view::{Read, Tx};

/// Whether there may be a repost. In a store that was made before reposts were counted, all reposts are counted first.
pub(super) async fn known(db: &Database) -> Result<Any> {
    if !db.view()?.has::<RepostsKnown>(&())? {
        db.write(Durability::Synced, begin).await?;
    }
    Any::of::<RepostCounts>(&*db.view()?)
}

/// Counts all reposts of the store.
fn begin(tx: &mut Tx<'_>) -> Result<()> {
    let mut reposts = vec![];
    for row in tx.scan::<Items>(..) {
        let (id, item) = row?;
        if let Life::Living { repost_of: Some(original), .. } = item.life {
            reposts.push((original, id));
        }
    }
    for (original, id) in reposts {
        count(tx, original, id, true)?;
    }
    tx.put::<RepostsKnown>(&(), &());
    Ok(())
}

/// Counts a repost that was made (`counts`), or stops counting it.
pub(super) fn count(tx: &mut Tx<'_>, original: ItemId, id: ItemId, counts: bool) -> Result<()> {
    let before = self::how_many(tx, original)?;
    if counts {
        tx.put::<Reposts>(&(original, id), &());
        tx.put::<RepostCounts>(&original, &(before + 1));
        return Ok(());
    }
    tx.remove::<Reposts>(&(original, id));
    match before.saturating_sub(1) {
        0 => tx.remove::<RepostCounts>(&original),
        left => tx.put::<RepostCounts>(&original, &left),
    }
    Ok(())
}

/// How many living reposts an item has.
pub(super) fn how_many(from: &impl Read, original: ItemId) -> Result<u64> {
    Ok(from.get::<RepostCounts>(&original)?.unwrap_or(0))
}

/// The living reposts of an item with an id below `before`, the greatest first.
pub(super) fn listed(from: &impl Read, original: ItemId, before: Option<ItemId>, limit: usize) -> Result<Vec<ItemId>> {
    let end = before.map_or(Included((original, ItemId(u64::MAX))), |before| Excluded((original, before)));
    let rows = from.scan::<Reposts>((Included((original, ItemId(0))), end)).rev().take(limit);
    rows.map(|row| row.map(|((_, id), ())| id)).collect()
}

#[cfg(test)]
mod tests {
    use feedgate_common::around::Onlooker;
    use std::sync::Arc;

    use feedgate_common::archive::{Items as _, Publish, Reactions, Write, Writes};

    use super::*;
    use crate::archive::EmbeddedArchive;
    use crate::archive::fixture::{open, published};

    async fn repost(archive: &EmbeddedArchive, of: ItemId, id: u64) {
        let body = feedgate_common::Body::parse("1".to_owned()).unwrap();
        let publish = Publish::new("bob".parse().unwrap(), body);
        let publish = Publish { id: Some(ItemId(id)), repost_of: Some(of), ..publish };
        archive.write(vec![Write::Publish(publish)], 3).await.unwrap()[0].as_ref().unwrap();
    }

    #[tokio::test]
    async fn s8_reposts_of_a_store_from_before_they_were_counted_are_counted_when_it_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path()).await;
        let item = published(&archive).await;
        for id in [u64::MAX - 2, u64::MAX - 1, u64::MAX] {
            repost(&archive, item, id).await;
        }
        archive.write(vec![Write::Delete { item: ItemId(u64::MAX), if_version: None }], 4).await.unwrap();
        let forget = |tx: &mut Tx<'_>| {
            let keys: Vec<_> = tx.scan::<Reposts>(..).collect::<Result<_>>()?;
            keys.iter().for_each(|(key, ())| tx.remove::<Reposts>(key));
            tx.remove::<RepostCounts>(&keys[0].0.0);
            tx.remove::<RepostsKnown>(&());
            Ok(())
        };
        archive.db.write(Durability::Synced, forget).await.unwrap();
        drop(archive);
        let archive = Arc::new(open(dir.path()).await);
        assert_eq!(archive.around(&[item], Onlooker::BACKEND).await.unwrap()[0].reposts, 2);
        let listed = archive.reposts(item, None, 9).await.unwrap();
        assert_eq!(listed, [ItemId(u64::MAX - 1), ItemId(u64::MAX - 2)]);
        drop(archive);
        let archive = open(dir.path()).await;
        assert_eq!(archive.around(&[item], Onlooker::BACKEND).await.unwrap()[0].reposts, 2, "once");
    }
}
