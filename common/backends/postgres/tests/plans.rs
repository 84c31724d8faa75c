//! How the server carries out what is asked most: along indexes, without a sort, however big the tables are.
//!
//! The server itself logs the plan of every statement that the Archive sends (`auto_explain`), with the parameters it was
//! sent with, for the first callers and once it has made one plan for all.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use feedgate_common::archive::Built;
use feedgate_common::{Archive, Bucket, Cut, DisplayKey, ItemId, Progress, UserNo};
use feedgate_engines::Postgres;
use feedgate_postgres::PostgresArchive;
use server::{execute, open};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Row};

const SETTINGS: [&str; 7] = [
    "fsync=off",
    "logging_collector=on",
    "log_directory=log",
    "log_filename=plans",
    "session_preload_libraries=auto_explain",
    "auto_explain.log_min_duration=0",
    "auto_explain.log_format=text",
];

/// A hundred authors with a thousand records each, whom ten thousand edges follow; then ANALYZE.
const FILL: &str = "
INSERT INTO users SELECT n, 'u' || n FROM generate_series(1, 1000) n;
INSERT INTO authors (author, head, last_rank, last_item, has_aside)
    SELECT n, 1000, 1000, 5, true FROM generate_series(1, 1000) n;
INSERT INTO readers SELECT n, 100 FROM generate_series(1, 1000) n;
INSERT INTO records (author, seq, item, rank, at, deleted_by, op, route, lane)
    SELECT a, n, a * 10000 + n, n, n, CASE WHEN n % 50 = 0 THEN 1000 END, 1, 1, n % 2
    FROM generate_series(1, 100) a, generate_series(1, 1000) n;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, due, bucket, is_on)
    SELECT r, a, a, 500, 0, nextval('follows'), CASE WHEN r % 10 = 0 THEN 5 END, r % 16, true
    FROM generate_series(1, 100) r, generate_series(1, 100) a;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, due, bucket, is_on)
    SELECT r, 1, 1, 500, 0, nextval('follows'), NULL, r % 16, true FROM generate_series(101, 1000) r;
ANALYZE";

/// What is logged so far.
async fn log(url: &str) -> String {
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    let row = sqlx::query("SELECT pg_read_file('log/plans')").fetch_one(&mut connection).await.unwrap();
    row.get(0)
}

/// Every page there is, often enough that the server makes up its mind.
async fn read_everything(archive: &PostgresArchive) {
    let (reader, author) = (UserNo(7), UserNo(3));
    let cuts: Vec<_> = (1..=100).map(|author| (UserNo(author), Progress::at(700))).collect();
    let cut = Cut { progress: Progress::at(700), pull: 0 };
    for n in 0..8 {
        let before = Some(DisplayKey { rank: 900 - n, item: ItemId(5) });
        assert_eq!(archive.profile(author, before, 20).await.unwrap().len(), 20);
        assert_eq!(archive.feed_below(reader, before, None, 100, 20).await.unwrap().len(), 20);
        let built = archive.build(reader, &cuts, 100, 500).await.unwrap();
        assert!(matches!(built, Built::State(state) if state.adds.len() == 500));
        assert!(!archive.edge_state(reader, author, cut, 100).await.unwrap().adds.is_empty());
        assert_eq!(archive.outbox(author, 400, 100).await.unwrap().records.len(), 100);
        let recipients = archive.recipients(UserNo(1), Bucket(3), 16, Some(UserNo(20)), 50).await.unwrap();
        assert_eq!(recipients.len(), 50);
        assert_eq!(archive.following(reader, None, 20).await.unwrap().len(), 20);
        assert_eq!(archive.followers(UserNo(1), None, 20).await.unwrap().len(), 20);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_walk_along_indexes_without_a_sort() {
    let arguments: Vec<&str> = SETTINGS.iter().flat_map(|setting| ["-c", setting]).collect();
    let server = Postgres::start_with(&arguments);
    let url = server.database("plans");
    let archive = open(&url).await;
    execute(&url, FILL).await;
    let before = log(&url).await.len();
    read_everything(&archive).await;
    let log = log(&url).await.split_off(before);
    let plans: Vec<&str> = log.split("Query Text:").skip(1).filter(|plan| !plan.contains("pg_read_file")).collect();
    assert!(plans.len() >= 8 * 8, "{} plans are logged", plans.len());
    for plan in &plans {
        for bad in ["Sort  (", "Seq Scan", "Bitmap", "Hash", "Materialize"] {
            assert!(!plan.contains(bad), "{bad} in a plan:\n{plan}");
        }
    }
    let backward = "Index Only Scan Backward using records_shown on records";
    for wanted in [backward, "using records_adds", "using edges_recipients", "Backward using edges_followers"] {
        assert!(plans.iter().any(|plan| plan.contains(wanted)), "no plan is {wanted}:\n{log}");
    }
}
