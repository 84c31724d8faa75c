//! What a copy holds, and what becomes of one that is not whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use feedgate_common::archive::{Note, Publish, PushDevice, Write, Written};
use feedgate_common::feed::{Changes, Feeds};
use feedgate_common::sessions::{Claim, SavePosition};
use feedgate_common::{Body, FeedId, InboxKey, ItemId, Position};
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;

use super::*;
use crate::Embedded;
use crate::rows::{copy, read};

const NOW: Millis = 1_764_000_000_000;

fn post(author: &str, body: &str) -> Write {
    Write::Publish(Publish::new(author.parse().unwrap(), Body::parse(body.to_owned()).unwrap()))
}

fn follow(reader: &str, author: &str) -> Write {
    Write::Follow { reader: reader.parse().unwrap(), author: author.parse().unwrap() }
}

async fn write(stores: &Embedded, writes: Vec<Write>) -> Vec<Written> {
    stores.archive.write(writes, NOW).await.unwrap().into_iter().map(|done| done.unwrap()).collect()
}

async fn bytes_of(pieces: BoxStream<'static, Result<Vec<u8>>>) -> Vec<u8> {
    pieces.try_concat().await.unwrap()
}

/// A reader who follows `a`, whose feed has `posts` items.
async fn filled(dir: &Path, posts: usize) -> (Embedded, InboxKey) {
    let stores = Embedded::open(dir, 2).unwrap();
    let written = write(&stores, vec![follow("r", "a")]).await;
    let Written::Edge { reader, .. } = written[0] else { panic!("{written:?}") };
    write(&stores, vec![post("a", "1"); posts]).await;
    (stores, InboxKey::main(reader))
}

fn changes(stores: &Embedded) -> Changes {
    Changes::new(Arc::new(Feeds::new(stores.archive.clone(), stores.inboxes.clone(), 1000)))
}

/// Notes an item for a reader who has a device, and gives the number of the notice.
async fn noted(stores: &Embedded, key: InboxKey, item: u64) -> u64 {
    let (device, feeds) = ("phone".parse().unwrap(), vec![FeedId::MAIN]);
    let device = PushDevice { device, platform: "fcm".into(), token: "t".into(), feeds, since: NOW };
    assert!(stores.archive.register(key.reader, device).await.unwrap());
    stores.archive.note(&[Note { key, item: ItemId(item), count: 1 }], NOW, None).await.unwrap();
    stores.archive.take_due(Millis::MAX - 1, NOW, 1).await.unwrap()[0].number
}

fn again(rows: &[u8], now: Millis) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    restore(dir.path(), rows, now).unwrap();
    finish(dir.path()).unwrap();
    dir
}

#[tokio::test]
async fn i6_a_copy_has_what_was_accepted_before_it_was_asked_for_and_nothing_that_came_later() {
    let dir = tempfile::tempdir().unwrap();
    let (stores, key) = filled(dir.path(), 100).await;
    let pieces = stores.archive.copy().unwrap();
    write(&stores, vec![post("a", "\"later\""); 7]).await;
    let rows = bytes_of(pieces).await;
    let counted = check(&rows[..]).unwrap();
    assert_eq!((counted.items, counted.positions), (100, 0));
    let restored = again(&rows, NOW);
    let stores = Embedded::open(restored.path(), 2).unwrap();
    assert_eq!(changes(&stores).head(key).await.unwrap().offset, 100);
}

#[tokio::test]
async fn s14_a_restored_store_finds_what_the_copied_one_found() {
    use feedgate_common::search::{ItemQuery, TextFields, phrases};
    let dir = tempfile::tempdir().unwrap();
    let (stores, _) = filled(dir.path(), 3).await;
    let fields = TextFields::new(vec!["text".into()]).unwrap();
    stores.archive.index_of(Some(&fields)).await.unwrap();
    while stores.archive.index(Some(&fields)).await.unwrap() {}
    write(&stores, vec![post("a", r#"{"text":"hello"}"#)]).await;
    let rows = bytes_of(stores.archive.copy().unwrap()).await;
    let restored = again(&rows, NOW);
    let stores = Embedded::open(restored.path(), 2).unwrap();
    write(&stores, vec![post("a", r#"{"text":"hello again"}"#)]).await;
    let all = (Millis::MIN, Millis::MAX);
    let query = ItemQuery { phrases: phrases("hello"), author: None, kind: None, published: all };
    let hits = stores.archive.find(&fields, &query.look(None, 10)).await.unwrap();
    assert_eq!((hits.places.len(), hits.building), (2, false));
}

#[tokio::test]
async fn every_row_comes_back_as_it_was_also_over_many_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let (stores, key) = filled(dir.path(), 3).await;
    let long = format!("\"{}\"", "x".repeat(60_000));
    write(&stores, vec![post("b", &long); 20]).await;
    let claim = Claim {
        user: key.reader,
        device: "phone".parse().unwrap(),
        durable: true,
        node: "n".to_owned(),
        connection: 1,
        since: NOW,
    };
    let token = stores.sessions.claim(claim.clone()).await.unwrap().token;
    let position = Position { epoch: feedgate_common::Epoch(1), offset: 2 };
    let save = SavePosition { user: claim.user, device: claim.device, token, feed: FeedId::MAIN, position };
    stores.sessions.save(vec![save], NOW).await.unwrap();
    noted(&stores, key, 1).await;
    let pieces: Vec<Vec<u8>> = stores.archive.copy().unwrap().try_collect().await.unwrap();
    assert!(pieces.len() > 4 && pieces.iter().all(|piece| piece.len() < 1 << 20), "{} pieces", pieces.len());
    let rows = pieces.concat();
    let counted = check(&rows[..]).unwrap();
    assert_eq!((counted.items, counted.positions), (23, 1), "each once");

    let restored = again(&rows, NOW);
    let database = Database::open(&restored.path().join("archive")).unwrap();
    let second = bytes_of(copy(database)).await;
    let all = |rows: &[u8]| {
        let mut all = BTreeMap::new();
        read(rows, |rows| {
            all.extend(rows.into_iter().map(|(space, key, value)| ((space, key.to_vec()), value.to_vec())));
            Ok(())
        })
        .unwrap();
        all
    };
    let (before, after) = (all(&rows), all(&second));
    let changed: Vec<_> = before.iter().filter(|(key, value)| after.get(*key) != Some(*value)).collect();
    let other = changed.iter().filter(|((space, key), _)| !archive::is_announcement(*space, key)).count();
    assert_eq!(other, 4, "the counters, the numbers of the last announcement and notice, and the inbox store");
    assert_eq!(changed.len() - other, 24, "the log for other programs starts anew");
    assert!(after.keys().all(|key| before.contains_key(key)), "nothing is there that was not");
}

#[tokio::test]
async fn i16_a_restored_feed_is_in_a_greater_epoch_than_any_before_or_after_the_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (stores, key) = filled(dir.path(), 2).await;
    let rows = bytes_of(stores.archive.copy().unwrap()).await;
    for _ in 0..3000 {
        stores.archive.next_epoch().await.unwrap();
    }
    let ahead = stores.archive.next_epoch().await.unwrap();
    let mut last = ahead;
    for now in [NOW, NOW + 10] {
        let restored = again(&rows, now);
        let stores = Embedded::open(restored.path(), 2).unwrap();
        let head = changes(&stores).head(key).await.unwrap();
        assert!(head.epoch > last, "{head:?} behind {last:?}");
        assert_eq!(head.offset, 2);
        last = head.epoch;
        for _ in 0..3000 {
            last = stores.archive.next_epoch().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_notice_of_a_restored_store_has_a_greater_number_than_any_before_or_after_the_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (stores, key) = filled(dir.path(), 2).await;
    let rows = bytes_of(stores.archive.copy().unwrap()).await;
    let mut last = 0;
    for item in 0..20 {
        last = noted(&stores, key, item).await;
    }
    for now in [NOW, NOW + 10] {
        let restored = again(&rows, now);
        let stores = Embedded::open(restored.path(), 2).unwrap();
        for item in 0..20 {
            let number = noted(&stores, key, item).await;
            assert!(number > last, "{number} after {last}");
            last = number;
        }
    }
}

#[tokio::test]
async fn a_copy_with_any_byte_flipped_or_missing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (stores, _) = filled(dir.path(), 1).await;
    let rows = bytes_of(stores.archive.copy().unwrap()).await;
    for at in 0..rows.len() {
        let mut flipped = rows.clone();
        flipped[at] ^= 1;
        assert!(matches!(check(&flipped[..]), Err(StoreError::Corrupt(_))), "byte {at}");
        assert!(matches!(check(&rows[..at]), Err(StoreError::Corrupt(_))), "the first {at} bytes");
    }
    let more = [&rows[..], &[0]].concat();
    assert!(matches!(check(&more[..]), Err(StoreError::Corrupt(_))));
}

#[tokio::test]
async fn a_directory_whose_restore_did_not_end_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let (stores, _) = filled(dir.path(), 1).await;
    let rows = bytes_of(stores.archive.copy().unwrap()).await;
    let target = tempfile::tempdir().unwrap();
    assert!(matches!(restore(target.path(), &rows[..rows.len() - 1], NOW), Err(StoreError::Corrupt(_))));
    let Err(StoreError::Corrupt(why)) = Embedded::open(target.path(), 2).map(drop) else { panic!("it is opened") };
    assert!(why.contains("empty it, and restore it again") && why.contains(&*target.path().to_string_lossy()), "{why}");
}

#[tokio::test]
async fn rows_that_are_not_those_of_an_archive_are_not_restored() {
    let dir = tempfile::tempdir().unwrap();
    let rows = bytes_of(copy(Database::open(dir.path()).unwrap())).await;
    assert_eq!(check(&rows[..]).unwrap(), Rows::default());
    let target = tempfile::tempdir().unwrap();
    let Err(StoreError::Corrupt(why)) = restore(target.path(), &rows[..], NOW) else { panic!("it is restored") };
    assert!(why.contains("not those of an Archive"), "{why}");
}
