//! Tests of what the store promises to everything above it.

use std::sync::mpsc;

use super::*;
use crate::table::{Space, Table};
use crate::view::Read;

struct Numbers;

impl Table for Numbers {
    const SPACE: Space = Space::Positions;
    const TAG: u8 = b'#';
    const NAME: &'static str = "numbers";
    type Key = u32;
    type Row = u64;
}

/// A table over the rows of [`Numbers`], which reads them as another type.
struct Misread;

impl Table for Misread {
    const SPACE: Space = Space::Positions;
    const TAG: u8 = b'#';
    const NAME: &'static str = "misread";
    type Key = u32;
    type Row = u32;
}

fn put(key: u32, row: u64) -> impl FnOnce(&mut Tx<'_>) -> Result<()> + Send + 'static {
    move |tx| {
        tx.put::<Numbers>(&key, &row);
        Ok(())
    }
}

pub(crate) async fn set(db: &Database, key: u32, row: u64) {
    db.write(Durability::Synced, put(key, row)).await.unwrap();
}

pub(crate) fn seen(db: &Database) -> Vec<(u32, u64)> {
    db.view().unwrap().scan::<Numbers>(..).collect::<Result<_>>().unwrap()
}

/// Occupies the writer until the answer is dropped or told to go on.
fn hold(db: &Arc<Database>) -> (mpsc::Sender<()>, tokio::task::JoinHandle<()>, mpsc::Receiver<()>) {
    let (go, wait) = mpsc::channel::<()>();
    let (tell, held) = mpsc::channel();
    let db = db.clone();
    let task = tokio::spawn(async move {
        db.write(Durability::Buffered, move |_| {
            let _ = tell.send(());
            let _ = wait.recv();
            Ok(())
        })
        .await
        .unwrap();
    });
    (go, task, held)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_no_reader_sees_a_write_before_its_group_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();

    // While the first group is held, a write and a second hold gather into the next one.
    let (go, first, held) = hold(&db);
    held.recv().unwrap();
    let mut writing = Box::pin(set(&db, 1, 10));
    assert!(futures_util::poll!(&mut writing).is_pending());
    let (tell, committed) = mpsc::channel();
    let (finish, wait) = mpsc::channel::<()>();
    let mut probe = Box::pin(db.write(Durability::Synced, move |tx| {
        tell.send(tx.get::<Numbers>(&1)?).unwrap();
        let _ = wait.recv();
        Ok(())
    }));
    assert!(futures_util::poll!(&mut probe).is_pending());
    go.send(()).unwrap();
    first.await.unwrap();

    assert_eq!(committed.recv().unwrap(), Some(10), "a later operation of the group sees the write");
    assert_eq!(seen(&db), [], "no reader does");
    assert!(futures_util::poll!(&mut writing).is_pending(), "and nobody was answered");
    finish.send(()).unwrap();
    probe.await.unwrap();
    writing.await;
    assert_eq!(seen(&db), [(1, 10)]);
}

#[tokio::test]
async fn what_was_answered_is_there_after_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();
    set(&db, 1, 10).await;
    db.write(Durability::Buffered, put(2, 20)).await.unwrap();
    drop(db);
    let db = Database::open(dir.path()).unwrap();
    assert_eq!(seen(&db), [(1, 10), (2, 20)]);
}

#[tokio::test]
async fn a_failed_operation_changes_nothing_and_the_next_one_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();
    let failed = db
        .write(Durability::Synced, |tx| {
            tx.put::<Numbers>(&1, &10);
            Err::<(), _>(StoreError::corrupt("for the test"))
        })
        .await;
    assert!(matches!(failed, Err(StoreError::Corrupt(_))));
    set(&db, 2, 20).await;
    assert_eq!(seen(&db), [(2, 20)]);
}

#[tokio::test]
async fn an_operation_reads_its_own_writes_and_removals() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();
    set(&db, 1, 10).await;
    let rows = db
        .write(Durability::Synced, |tx| {
            tx.remove::<Numbers>(&1);
            tx.put::<Numbers>(&3, &30);
            tx.put::<Numbers>(&3, &31);
            Ok((tx.has::<Numbers>(&1)?, tx.scan::<Numbers>(..).collect::<Result<Vec<_>>>()?))
        })
        .await
        .unwrap();
    assert_eq!(rows, (false, vec![(3, 31)]));
    assert_eq!(seen(&db), [(3, 31)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i18_beyond_its_bounds_the_queue_refuses_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open_with(dir.path(), Limits { ops: 2, bytes: 100 }).unwrap();
    let (go, first, held) = hold(&db);
    held.recv().unwrap();

    let ask = |key, bytes| db.submit(Request::new(Durability::Synced, put(key, 0)).bytes(bytes));
    let mut large = Box::pin(ask(1, 60));
    assert!(futures_util::poll!(&mut large).is_pending());
    let refused = ask(2, 60).await;
    assert!(matches!(refused, Err(StoreError::Overloaded { retry_after_ms: 1.. })), "too many bytes: {refused:?}");
    let mut small = Box::pin(ask(3, 1));
    assert!(futures_util::poll!(&mut small).is_pending());
    let refused = ask(4, 1).await;
    assert!(matches!(refused, Err(StoreError::Overloaded { .. })), "too many operations: {refused:?}");

    go.send(()).unwrap();
    first.await.unwrap();
    large.await.unwrap();
    small.await.unwrap();
    ask(5, 60).await.unwrap();
    assert_eq!(seen(&db), [(1, 0), (3, 0), (5, 0)]);
}

#[tokio::test]
async fn what_follows_a_write_runs_when_it_is_visible_and_before_it_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();
    let (tell, told) = mpsc::channel();
    let published = db.published.clone();
    let request = Request::new(Durability::Synced, put(1, 10))
        .then(move |()| tell.send(published.load().as_ref().unwrap().get::<Numbers>(&1).unwrap()).unwrap());
    db.submit(request).await.unwrap();
    assert_eq!(told.try_recv().unwrap(), Some(10));
}

#[tokio::test]
async fn a_row_that_cannot_be_what_was_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();
    set(&db, 7, 10).await;
    let error = db.view().unwrap().get::<Misread>(&7).unwrap_err().to_string();
    assert!(error.contains("row 7 of misread has 8 bytes"), "{error}");
}

#[tokio::test]
async fn a_range_that_ends_before_it_starts_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();
    set(&db, 7, 10).await;
    let (from, to) = (8, 3);
    assert_eq!(db.view().unwrap().scan::<Numbers>(from..to).count(), 0);
    assert_eq!(db.view().unwrap().scan::<Numbers>(7..7).count(), 0);
    assert_eq!(db.view().unwrap().scan::<Numbers>(7..=7).count(), 1);
}

#[test]
fn a_data_directory_belongs_to_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let _open = Database::open(dir.path()).unwrap();
    assert!(matches!(Database::open(dir.path()), Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn a_writer_that_has_panicked_is_not_well_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();
    db.ping().unwrap();
    let asked = db.write(Durability::Synced, |_| -> Result<()> { panic!("as this test wants it") }).await;
    let why = db.vital().died().await;
    assert!(why.contains("thread archive-writer has panicked"), "{why}");
    for refused in [asked, db.ping(), db.write(Durability::Synced, put(1, 1)).await] {
        assert!(matches!(refused, Err(StoreError::Down(_) | StoreError::Unavailable(_))), "{refused:?}");
    }
    assert!(matches!(db.ping(), Err(StoreError::Down(told)) if told == why));
}
