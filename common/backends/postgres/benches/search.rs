//! What search costs in both homes: a publish with and without it, the disk, and queries of words that are common and
//! rare.
//!
//! `cargo bench -p feedgate-postgres --bench search` (`-- ITEMS` for another number of items than 10,000 and 100,000).
//! Each query is one look for a page of 20, through the index and the items. Prints plain lines; nothing can fail.

#![allow(clippy::unwrap_used, reason = "a benchmark: what fails says where")]

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::archive::{Archive, Publish, Write};
use feedgate_common::around::Viewer;
use feedgate_common::error::Result;
use feedgate_common::feed::{Seeing, find_items};
use feedgate_common::search::{ItemQuery, TextFields, phrases};
use feedgate_common::{Body, Item, ItemId, StoreError};
use feedgate_conformance::archive::search::Chance;
use feedgate_embedded::{Database, EmbeddedArchive};
use feedgate_engines::Postgres;
use feedgate_postgres::{Options, PostgresArchive};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tokio::time::{Duration, Instant, sleep};

/// How many calls are under way at a time. Each publishes one item.
const AT_ONCE: usize = 64;

/// From this many items on, a call publishes [`BATCH`] items, so that the benchmark does not take all day.
const MANY: usize = 50_000;
const BATCH: usize = 100;

/// How many of these calls are under way at a time: a store refuses more items at once than it can take.
const BATCHES_AT_ONCE: usize = 8;

/// How often each query is asked.
const TIMES: usize = 100;

const NOW: i64 = 1_800_000_000_000;

fn main() {
    let named: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if named.is_empty() { vec![10_000, 100_000] } else { named };
    tokio::runtime::Runtime::new().unwrap().block_on(run(&sizes));
}

async fn run(sizes: &[usize]) {
    let server = Postgres::start_with(&[]);
    for &size in sizes {
        say(&format!("embedded, {size} items"));
        let mut costs = [0.0; 2];
        let mut bytes = [0; 2];
        for (nth, of) in [None, Some(fields())].into_iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let archive = embedded(dir.path()).await;
            costs[nth] = fill(&archive, size, of.as_ref()).await;
            if of.is_some() {
                queries(&*archive).await;
            }
            drop(archive);
            bytes[nth] = bytes_of(dir.path());
        }
        compare(size, costs, bytes);
        say(&format!("PostgreSQL, {size} items"));
        for (nth, of) in [None, Some(fields())].into_iter().enumerate() {
            let url = server.database(&format!("search_{size}_{nth}"));
            let archive: Arc<dyn Archive> = Arc::new(PostgresArchive::connect(&url, Options::default()).await.unwrap());
            costs[nth] = fill(&archive, size, of.as_ref()).await;
            let start = Instant::now();
            while archive.index(of.as_ref()).await.unwrap() {}
            if of.is_some() {
                line("to index all of it after that", start.elapsed().as_secs_f64(), "s");
                execute(&url, "ANALYZE").await;
                queries(&*archive).await;
            }
            bytes[nth] = execute(&url, "SELECT pg_database_size(current_database())").await;
        }
        compare(size, costs, bytes);
    }
    say("command: cargo bench -p feedgate-postgres --bench search");
}

fn compare(size: usize, [without, with]: [f64; 2], [less, more]: [u64; 2]) {
    line("a publish without search", without * 1e6, "µs");
    line("a publish with search", with * 1e6, "µs");
    line("ratio", with / without, "");
    line("disk without search", less as f64 / size as f64, "bytes an item");
    line("disk for search", (more.saturating_sub(less)) as f64 / size as f64, "bytes an item");
}

fn fields() -> TextFields {
    TextFields::new(vec!["text".into()]).unwrap()
}

async fn embedded(dir: &Path) -> Arc<dyn Archive> {
    Arc::new(EmbeddedArchive::open(Database::open(dir).unwrap(), 16).await.unwrap())
}

/// The bytes on the disk of a store, once all its rows are in tables and the tables are merged.
fn bytes_of(dir: &Path) -> u64 {
    let db = fjall::SingleWriterTxDatabase::builder(dir).open().unwrap();
    let size = |name| {
        let tree = db.keyspace(name, fjall::KeyspaceCreateOptions::default).unwrap();
        tree.inner().rotate_memtable_and_wait().unwrap();
        tree.inner().major_compact().unwrap();
        tree.inner().disk_space()
    };
    size("archive") + size("items")
}

/// Publishes `size` items. Answers the seconds that one item took, while others were under way.
async fn fill(archive: &Arc<dyn Archive>, size: usize, of: Option<&TextFields>) -> f64 {
    archive.index_of(of).await.unwrap();
    while archive.index(of).await.unwrap() {}
    let start = Instant::now();
    let (at_once, batch) = if size < MANY { (AT_ONCE, 1) } else { (BATCHES_AT_ONCE, BATCH) };
    let tasks: Vec<_> = (0..at_once)
        .map(|task| {
            let archive = archive.clone();
            tokio::spawn(async move {
                let mut chance = Chance::of_seed(task as u64 + 1);
                for first in (task * batch..size).step_by(at_once * batch) {
                    let writes = (first..size.min(first + batch)).map(|nth| item(nth, &mut chance)).collect();
                    write(&*archive, writes, NOW + first as i64).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    start.elapsed().as_secs_f64() / size as f64
}

/// Carries out the writes of a call. Calls that name new authors at the same time may hinder each other: a call that is
/// refused for that is made again.
async fn write(archive: &dyn Archive, writes: Vec<Write>, now: i64) {
    loop {
        match archive.write(writes.clone(), now).await {
            Ok(done) => return done.into_iter().for_each(|done| drop(done.unwrap())),
            Err(StoreError::Overloaded { retry_after_ms }) => sleep(Duration::from_millis(retry_after_ms.into())).await,
            Err(error) => panic!("{error}"),
        }
    }
}

fn item(nth: usize, chance: &mut Chance) -> Write {
    let text = format!("{} {} w{}", chance.text(), chance.text(), nth % 5000);
    let body = Body::parse(serde_json::json!({ "text": text }).to_string()).unwrap();
    let author = format!("a{}", nth % 1000).parse().unwrap();
    Write::Publish(Publish { published_at: Some(NOW + nth as i64), ..Publish::new(author, body) })
}

struct All<'a>(&'a dyn Archive);

#[async_trait]
impl Seeing for All<'_> {
    async fn of(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
        self.0.originals(ids, Viewer::Backend).await
    }
}

async fn queries(archive: &dyn Archive) {
    let cases = [
        ("a common word", "的", None),
        ("a word of 1 in 5000", "w17", None),
        ("a word that is nowhere", "nowhere", None),
        ("a phrase", "王小明", None),
        ("a common and a rare word", "the w17", None),
        ("a common word of one author", "的", Some("a17")),
    ];
    for (what, text, author) in cases {
        let author = match author {
            Some(author) => archive.user_nos(&[author.parse().unwrap()]).await.unwrap()[0],
            None => None,
        };
        let query = ItemQuery { phrases: phrases(text), author, kind: None, published: (i64::MIN, i64::MAX) };
        let (mut micros, mut found) = (vec![], 0);
        for _ in 0..TIMES {
            let start = Instant::now();
            let page = find_items(archive, &fields(), &query, &All(archive), None, 20.into()).await.unwrap();
            micros.push(start.elapsed().as_secs_f64() * 1e6);
            found = page.items.len();
        }
        micros.sort_by(f64::total_cmp);
        let [p50, p99] = [TIMES / 2, TIMES * 99 / 100].map(|nth| micros[nth]);
        say(&format!("  {what} ({found} found): p50 {p50:.0} µs, p99 {p99:.0} µs"));
    }
}

async fn execute(url: &str, sql: &'static str) -> u64 {
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    let row: Option<i64> = match sql.starts_with("SELECT") {
        true => Some(sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()),
        false => sqlx::query(sql).execute(&mut connection).await.map(|_| None).unwrap(),
    };
    connection.close().await.unwrap();
    row.unwrap_or(0).cast_unsigned()
}

fn line(what: &str, value: f64, unit: &str) {
    say(&format!("  {what}: {value:.2} {unit}"));
}

#[allow(clippy::print_stdout, reason = "a benchmark's result")]
fn say(line: &str) {
    println!("{line}");
}
