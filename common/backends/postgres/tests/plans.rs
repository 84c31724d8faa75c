//! How the server carries out what is asked most: along indexes, without a sort, however big the tables are.
//!
//! The server itself logs the plan of every statement that the Archive sends (`auto_explain`), with the parameters it
//! was sent with.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use std::time::Duration;

use feedgate_common::archive::{
    Below, Comments, Content, Erasures, Graph, Items, Outboxes, Publish, Reactions, Search, Write, Writes,
};
use feedgate_common::around::{CommentOrder, CommentPlace, Onlooker, Reaction, Viewer, Visible};
use feedgate_common::erase::Removed;
use feedgate_common::graph::Shield;
use feedgate_common::search::{Look, Subject, TextFields};
use feedgate_common::{Body, Bucket, Cut, DisplayKey, FeedId, InboxKey, ItemId, Progress, UserNo, Watermarks};
use feedgate_conformance::archive::OneEdge;
use feedgate_engines::Postgres;
use feedgate_postgres::PostgresArchive;
use server::{execute, open};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row};
use tokio::time::timeout;

const SETTINGS: [&str; 9] = [
    "fsync=off",
    "logging_collector=on",
    "log_directory=log",
    "log_filename=plans",
    "session_preload_libraries=auto_explain",
    "auto_explain.log_min_duration=0",
    "auto_explain.log_format=text",
    "auto_explain.log_analyze=on",
    "auto_explain.log_buffers=on",
];

/// A hundred authors with a thousand records each, whom ten thousand edges follow; then ANALYZE.
const FILL: &str = "
INSERT INTO users SELECT n, 'u' || n FROM generate_series(1, 1000) n;
INSERT INTO authors (author, head, last_rank, last_item, has_aside, finished)
    SELECT n, 1000, 1000, 5, true, 980 FROM generate_series(1, 1000) n;
INSERT INTO readers SELECT n, 100 FROM generate_series(1, 1000) n;
INSERT INTO records (author, seq, item, rank, at, deleted_by, op, route, lane)
    SELECT a, n, a * 10000 + n, n, n, CASE WHEN n % 50 = 0 THEN 1000 END, 1, 1, n % 2
    FROM generate_series(1, 100) a, generate_series(1, 1000) n;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, due, bucket, is_on)
    SELECT r, a, a, 500, 0, nextval('follows'), CASE WHEN r % 10 = 0 THEN 5 END, r % 16, true
    FROM generate_series(1, 100) r, generate_series(1, 100) a;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, due, bucket, is_on)
    SELECT r, 1, 1, 500, 0, nextval('follows'), NULL, r % 16, true FROM generate_series(101, 1000) r;
INSERT INTO shields SELECT 7, 1, n, n, n FROM generate_series(1, 100) n;
INSERT INTO direct (reader, seq, item, rank, at, author, feed, op, deleted)
    SELECT r, n, n, n, n, 5, 0, 1, n % 2 = 0 FROM generate_series(1, 100) r, generate_series(1, 100) n;
ANALYZE";

/// Three authors have posted by pull since the last number a reader has seen, and four hundred since the first; one
/// reader follows all of a thousand authors, another five.
const FILL_NEWS: &str = "
INSERT INTO users SELECT n, 'u' || n FROM generate_series(1, 1100) n;
INSERT INTO readers (reader, counter, direct) SELECT n, 1000, 0 FROM generate_series(1, 1100) n;
INSERT INTO authors (author, head, last_pull)
    SELECT n, 10, CASE WHEN n <= 3 THEN 5000 + n WHEN n <= 400 THEN 10 * n ELSE 0 END FROM generate_series(1, 1100) n;
INSERT INTO records (author, seq, item, rank, at, op, route, lane, pull_seq)
    SELECT a, n, a * 10000 + n, n, n, 1, 2, 0, 10 * (a - 1) + n FROM generate_series(1, 400) a, generate_series(1, 9) n;
INSERT INTO records (author, seq, item, rank, at, op, route, lane, pull_seq)
    SELECT a, 10, a * 10000 + 10, 10, 10, 1, 2, 0, 5000 + a FROM generate_series(1, 3) a;
UPDATE counters SET value = 5003 WHERE name = 'pull';
INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on)
    SELECT 1001, a, a, 0, 0, nextval('follows'), 9, true FROM generate_series(1, 1000) a;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on)
    SELECT 1002, a, a, 0, 0, nextval('follows'), 10, true FROM generate_series(1, 5) a;
INSERT INTO follower_counts SELECT author, 0, count(*) FROM edges GROUP BY author
    ON CONFLICT (author, slot) DO UPDATE SET followers = excluded.followers;
ANALYZE";

/// Four authors with twenty thousand records each, whom a reader follows nearly from their heads and another from the
/// beginning. One in two hundred is of the one feed, all others of the other: of authors 1 and 3 the main one is the
/// rare one. Those of 3 and 4 are pulled.
const FILL_FEEDS: &str = "
INSERT INTO feeds VALUES (1, 'likes');
INSERT INTO users SELECT n, 'u' || n FROM generate_series(1, 10) n;
INSERT INTO authors (author, head, last_rank, last_item, last_pull)
    SELECT n, 20000, 20000, 5, CASE n WHEN 3 THEN 39999 WHEN 4 THEN 40000 ELSE 0 END FROM generate_series(1, 10) n;
INSERT INTO readers (reader, counter, direct) SELECT n, 100, 20000 FROM generate_series(1, 10) n;
UPDATE counters SET value = 40000 WHERE name = 'pull';
INSERT INTO records (author, seq, item, rank, at, op, route, lane, feed, pull_seq)
    SELECT a, n, a * 100000 + n, n, n, 1, CASE WHEN a > 2 THEN 2 ELSE 1 END, 0,
           CASE WHEN main THEN 0 ELSE 1 END, CASE WHEN a > 2 THEN 2 * n + a - 4 END
    FROM generate_series(1, 4) a, generate_series(1, 20000) n, LATERAL (SELECT (n % 200 = 0) = (a % 2 = 1) AS main) of;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on)
    SELECT r, a, a, CASE r WHEN 7 THEN 19900 ELSE 0 END, 0, nextval('follows'), r, true
    FROM generate_series(7, 8) r, generate_series(1, 4) a;
INSERT INTO direct (reader, seq, item, rank, at, author, feed, op, deleted)
    SELECT r, n, n, n, n, 5, CASE WHEN (n % 200 = 0) = (r = 7) THEN 0 ELSE 1 END, 1, false
    FROM generate_series(7, 8) r, generate_series(1, 20000) n;
INSERT INTO follower_counts SELECT author, 0, count(*) FROM edges GROUP BY author
    ON CONFLICT (author, slot) DO UPDATE SET followers = excluded.followers";

/// What is logged so far. A process of the server's own writes the log, a moment after a statement is answered: so this
/// sets a mark of that `name`, and waits until the log has it.
async fn log(url: &str, name: &str) -> String {
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    let mark = format!("SELECT '{MARK}{name}'");
    connection.execute(AssertSqlSafe(mark.clone())).await.unwrap();
    let written = async {
        loop {
            let row = sqlx::query("SELECT pg_read_file('log/plans')").fetch_one(&mut connection).await.unwrap();
            let mut text: String = row.get(0);
            if let Some(end) = text.find(&mark) {
                text.truncate(text[..end].rfind(QUERY).unwrap_or(end));
                break text;
            }
        }
    };
    timeout(SOON, written).await.expect("the log has the mark")
}

/// Far longer than the slowest machine takes to write a line.
const SOON: Duration = Duration::from_secs(300);

/// How the marks in the log begin.
const MARK: &str = "so far: ";

/// What stands before each statement in the log.
const QUERY: &str = "Query Text:";

/// The plans of what `work` asks of an Archive over a database that was filled so.
async fn plans(name: &str, fill: &str, work: impl AsyncFn(&PostgresArchive)) -> Vec<String> {
    let arguments: Vec<&str> = SETTINGS.iter().flat_map(|setting| ["-c", setting]).collect();
    let server = Postgres::start_with(&arguments);
    let url = server.database(name);
    let archive = open(&url).await;
    execute(&url, fill).await;
    let before = log(&url, "filled").await.len();
    work(&archive).await;
    let log = log(&url, "done").await.split_off(before);
    let of_the_log = |plan: &str| plan.contains("pg_read_file") || plan.contains(MARK);
    // Each new connection asks this once.
    let of_a_connection = |plan: &str| plan.contains("pg_is_in_recovery");
    let plans = log.split(QUERY).skip(1).filter(|plan| !of_the_log(plan) && !of_a_connection(plan));
    plans.map(str::to_owned).collect()
}

fn assert_without(plans: &[String], bad: &[&str]) {
    for plan in plans {
        for bad in bad {
            assert!(!plan.contains(bad), "{bad} in a plan:\n{plan}");
        }
    }
}

fn assert_with(plans: &[String], wanted: &str) {
    assert!(plans.iter().any(|plan| plan.contains(wanted)), "no plan is {wanted}:\n{}", plans.join("\n"));
}

/// How many pages of the server's memory each of these has touched.
fn touched(plan: &str) -> u64 {
    let hits = plan.split("Buffers: shared hit=").nth(1).expect("the whole plan comes first");
    hits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// How many rows it has read to no avail.
fn passed_by(plan: &str) -> u64 {
    let counts = plan.split("Rows Removed by ").skip(1).filter_map(|line| line.split(": ").nth(1));
    counts.map(|count| count.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap()).sum()
}

/// Every page there is, often enough that the server makes up its mind.
async fn read_everything(archive: &PostgresArchive) {
    let (reader, author) = (UserNo(7), UserNo(3));
    let cuts: Vec<_> = (1..=100).map(|author| (UserNo(author), Progress::at(700))).collect();
    let cut = Cut { progress: Progress::at(700), pull: 0 };
    for n in 0..8 {
        let before = Some(DisplayKey { rank: 900 - n, item: ItemId(5) });
        assert_eq!(archive.profile(author, FeedId::MAIN, before, 20).await.unwrap().len(), 20);
        assert_eq!(
            archive.feed_below(InboxKey::main(reader), Below { before, ..Below::newest(20) }, 100).await.unwrap().len(),
            20
        );
        let built = archive.build(InboxKey::main(reader), &cuts, 100, 500).await.unwrap();
        assert_eq!(built.adds.len(), 500);
        assert!(!archive.edge_state(InboxKey::main(reader), author, cut, 100).await.unwrap().adds.is_empty());
        assert_eq!(archive.outbox(author, 400, 100).await.unwrap().records.len(), 100);
        let ahead = archive.ahead(author, 256, 4000).await.unwrap().unwrap();
        assert_eq!((ahead.outbox.records.len(), ahead.recipients.len()), (20, 100));
        let recipients = archive.recipients(UserNo(1), Bucket(3), 16, Some(UserNo(20)), 50).await.unwrap();
        assert_eq!(recipients.len(), 50);
        assert_eq!(archive.following(reader, None, 20).await.unwrap().len(), 20);
        assert_eq!(archive.followers(UserNo(1), None, 20).await.unwrap().len(), 20);
        assert_eq!(archive.mutual(reader, None, 20).await.unwrap().len(), 20);
        assert_eq!(archive.shielded(reader, Shield::Mute, None, 20).await.unwrap().len(), 20);
        assert_eq!(archive.followees(reader).await.unwrap().len(), 100);
        assert_eq!(archive.followees_among(reader, &[1, 2, 3, 1000].map(UserNo)).await.unwrap().len(), 3);
        assert_eq!(archive.followed_among(reader, &[1, 2, 3, 1000].map(UserNo)).await.unwrap().len(), 3);
        assert_eq!(archive.addressed(reader, &[ItemId(1 << 63 | 3)]).await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_walk_along_indexes_without_a_sort() {
    let plans = plans("pages", FILL, read_everything).await;
    assert!(plans.len() >= 8 * 8, "{} plans are logged", plans.len());
    assert_without(&plans, &["Sort  (", "Seq Scan", "Bitmap", "Hash", "Materialize"]);
    let backward = "Index Only Scan Backward using records_shown on records";
    for wanted in [backward, "using records_adds", "using edges_recipients", "Backward using edges_followers"] {
        assert_with(&plans, wanted);
    }
    assert_with(&plans, "Backward using edges_follows");
}

/// An author with fifty thousand records, of whom one reader sees all and another all from the middle on; a few came
/// since.
const FILL_PAST: &str = "
INSERT INTO users SELECT n, 'u' || n FROM generate_series(1, 10) n;
INSERT INTO authors (author, head, last_rank, last_item, has_aside) VALUES (1, 50010, 50010, 5, true);
INSERT INTO readers SELECT n, 100 FROM generate_series(1, 10) n;
INSERT INTO records (author, seq, item, rank, at, deleted_by, op, route, lane)
    SELECT 1, n, n, n, n, CASE WHEN n % 50 = 0 THEN 50000 END, 1, 1, n % 2 FROM generate_series(1, 50010) n;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on, past_seq)
    SELECT r, 1, 1, 50000, 0, nextval('follows'), r, true, CASE r WHEN 7 THEN 0 ELSE 25000 END
    FROM generate_series(7, 8) r;
ANALYZE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s12_a_follow_step_reads_the_newest_of_a_long_past_along_an_index() {
    let plans = plans("past", FILL_PAST, async |archive| {
        let cut = Cut { progress: Progress::at(50005), pull: 0 };
        for _ in 0..8 {
            for (reader, before) in [(7, 0), (8, 98)] {
                let key = InboxKey::main(UserNo(reader));
                let state = archive.edge_state(key, UserNo(1), cut, 100).await.unwrap();
                // Of the hundred from before the place, two were deleted since.
                assert_eq!(state.adds.len(), before + 100 + 5, "from before the place, of the past, and since");
                assert!(state.adds.is_sorted_by_key(|add| add.outbox_seq));
                assert_eq!(state.floor.map(|floor| floor.rank), Some(50000 - 102 - 1), "every fiftieth is deleted");
            }
        }
    })
    .await;
    assert_without(&plans, &["Sort  (", "Seq Scan", "Bitmap", "Hash", "Materialize"]);
    assert_with(&plans, "Index Only Scan Backward using records_shown on records");
    for plan in plans.iter().filter(|plan| plan.contains("records")) {
        assert!(touched(plan) < 300 && passed_by(plan) < 300, "a plan of fifty thousand records:\n{plan}");
    }
}

/// A hundred thousand items of a thousand authors, each tenth addressed to one of a hundred readers, who have an edge
/// to each author.
const FILL_ORIGINALS: &str = "
INSERT INTO users SELECT n, 'u' || n FROM generate_series(1, 1000) n;
INSERT INTO authors (author) SELECT n FROM generate_series(1, 1000) n;
INSERT INTO items (id, author, seq, published_at, rank, version, feed, route, fingerprint, body)
    SELECT n, 1 + n % 1000, n, n, n, 1, 0, CASE WHEN n % 10 = 0 THEN 0 ELSE 1 END, '\\x00112233445566778899aabbccddeeff', '1'
    FROM generate_series(1, 100000) n;
INSERT INTO direct (reader, seq, item, rank, at, author, feed, op, deleted)
    SELECT 1 + n / 10 % 100, n, n, n, n, 1 + n % 1000, 0, 1, false FROM generate_series(10, 100000, 10) n;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on, shields)
    SELECT r, a, a, 500, 0, nextval('follows'), r % 16, a % 7 <> 0, CASE WHEN a % 7 = 0 THEN 1 ELSE 0 END
    FROM generate_series(1, 100) r, generate_series(1, 1000) a;
ANALYZE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s8_originals_of_a_page_are_read_by_their_keys_alone() {
    let plans = plans("originals", FILL_ORIGINALS, async |archive| {
        for n in 0..8 {
            let ids: Vec<ItemId> = (1..=20).map(|nth| ItemId(1 << 63 | (nth * 4001 + n))).collect();
            let found = archive.originals(&ids, Viewer::User(Some(UserNo(7)))).await.unwrap();
            assert!((1..20).contains(&found.iter().flatten().count()), "some are behind a mute, or for others");
        }
    })
    .await;
    assert_eq!(plans.len(), 8);
    assert_without(&plans, &["Seq Scan", "Hash", "Materialize"]);
    for plan in plans {
        assert!(touched(&plan) < 20 * 15, "{} pages:\n{plan}", touched(&plan));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_what_a_user_has_sent_is_read_along_its_index() {
    let plans = plans("sent", FILL_ORIGINALS, async |archive| {
        let mut before = None;
        for _ in 0..4 {
            let page = archive.sent(UserNo(11), before, 20).await.unwrap();
            assert_eq!(page.len(), 20);
            before = page.last().copied();
        }
    })
    .await;
    assert_eq!(plans.len(), 4);
    assert_without(&plans, &["Seq Scan", "Sort", "Bitmap", "Hash"]);
    assert_with(&plans, "Backward using items_sent");
    for plan in plans {
        assert!(touched(&plan) < 40, "{} pages:\n{plan}", touched(&plan));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_only_the_first_item_of_an_author_takes_more_statements_with_own_posts() {
    let publish = Write::Publish(Publish::new("ann".parse().unwrap(), Body::parse("1".into()).unwrap()));
    let statements = async |fill: &str, items: usize| {
        let plans = plans("own", fill, async |archive| {
            for _ in 0..items {
                archive.write(vec![publish.clone()], 1).await.unwrap();
            }
        });
        let of_edges = ["direct FROM readers WHERE", "JOIN edges e ON", "INSERT INTO edges"];
        plans.await.iter().filter(|plan| of_edges.iter().any(|text| plan.contains(text))).count()
    };
    assert_eq!(statements("ANALYZE", 2).await, 0, "without the setting nobody looks for an edge");
    let told = "INSERT INTO own_posts (own_posts, at) VALUES (true, NULL)";
    assert_eq!(statements(told, 1).await, 3, "its author is locked as a reader, and an edge is read and stored");
    assert_eq!(statements(told, 3).await, 3, "the edge is there");
}

/// Three items with ten thousand reactions each, one of them of reader 7, who has a hundred friends among 20,000 users.
const FILL_REACTIONS: &str = "
INSERT INTO users SELECT n, 'u' || n FROM generate_series(1, 20000) n;
INSERT INTO items (id, author, seq, published_at, rank, version, route, fingerprint, body, feed)
    SELECT n, CASE WHEN n = 3 THEN 7 ELSE n END, 1, 1, 1, 1, 0, '\\x00', '1', 0 FROM generate_series(1, 3) n;
INSERT INTO reactions SELECT i, 'like', n, n * 2 FROM generate_series(1, 3) i, generate_series(1, 10000) n;
INSERT INTO reaction_counts SELECT i, 'like', s, 10000 / 32 FROM generate_series(1, 3) i, generate_series(0, 31) s;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on)
    SELECT 7, n * 100, 1, 0, 0, nextval('follows'), 7, true FROM generate_series(1, 100) n UNION ALL
    SELECT n * 100, 7, 1, 0, 0, nextval('follows'), 7, true FROM generate_series(1, 100) n UNION ALL
    SELECT n, 1, 1, 0, 0, nextval('follows'), 7, true FROM generate_series(8, 20000) n;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on, shields)
    SELECT 7, n * 100 + 2, 1, 0, 0, nextval('follows'), 7, false, 4 FROM generate_series(1, 20) n;
ANALYZE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_a_like_and_what_its_answer_says_take_two_statements_and_a_hundred_likes_too() {
    for likes in [1, 100] {
        let plans = plans("likes", FILL_REACTIONS, async |archive| {
            let (item, user) = (ItemId(1 << 63 | 1), |nth: u32| UserNo(11_000 + nth));
            let like = |nth| Reaction { item, kind: "like".parse().unwrap(), user: user(nth), at: 5 };
            let done = archive.react(&(0..likes).map(like).collect::<Vec<_>>()).await.unwrap();
            assert!(done.iter().all(|done| *done == Ok(true)));
            let around = archive.around(&[item], Onlooker::user(user(0))).await.unwrap();
            assert_eq!(around[0].own.len(), 1);
        });
        let plans = plans.await;
        // One more reads the item before, to see that the user may.
        assert_eq!(plans.len(), 2, "{plans:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_of_a_hot_item_the_reactions_of_friends_are_looked_up_and_all_others_left_alone() {
    let plans = plans("friends", FILL_REACTIONS, async |archive| {
        let onlooker = Onlooker { visible: Visible::Mutual, ..Onlooker::user(UserNo(7)) };
        let items = [1, 2, 3].map(|n| ItemId(1 << 63 | n));
        let around = archive.around(&items, onlooker).await.unwrap();
        let likes = around.iter().map(|around| around.counts[0].1).collect::<Vec<_>>();
        assert_eq!(
            likes,
            [102, 102, 10000 / 32 * 32 - 20],
            "friends, the reader and the author; all but who is blocked"
        );
        for item in items {
            assert_eq!(archive.reactions(item, onlooker, None, None, 20).await.unwrap().len(), 20);
        }
    })
    .await;
    assert!(plans.len() >= 4, "{plans:?}");
    for plan in &plans {
        assert_without(std::slice::from_ref(plan), &["Seq Scan on reactions", "Seq Scan on edges"]);
        assert!(touched(plan) < 3_000, "{} pages:\n{plan}", touched(plan));
    }
}

/// Fifty thousand items that all have mark 1; one in ten thousand has mark 7.
const FILL_SEARCH: &str = "
INSERT INTO search_state (recipe, stage, at) VALUES (E'1\\ntext', 0, 0);
INSERT INTO search_marks (subject, id, at, marks)
    SELECT 0, n, n, ARRAY[1, n + 100] || CASE WHEN n % 10000 = 5 THEN ARRAY[7] ELSE ARRAY[]::integer[] END
    FROM generate_series(1, 50000) n;
ANALYZE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_a_search_reads_the_newest_rows_and_then_those_of_the_rare_word_alone() {
    let text = TextFields::new(vec!["text".into()]).unwrap();
    let find = async |marks: &[u32]| {
        plans("found", FILL_SEARCH, async |archive| {
            let (since, until) = (i64::MIN, i64::MAX);
            let look = Look { subject: Subject::Items, marks: marks.to_vec(), behind: None, since, until, limit: 21 };
            let found = archive.find(&text, &look).await.unwrap();
            assert_eq!(found.places.len(), if marks.contains(&7) { 5 } else { 21 });
        })
        .await
    };
    let common = find(&[1]).await;
    assert_with(&common, "Index Scan using search_newest on search_marks");
    let rare = find(&[1, 7]).await;
    assert_with(&rare, "Bitmap Index Scan on search_found");
    for plan in common.iter().chain(&rare) {
        assert_without(std::slice::from_ref(plan), &["Seq Scan on search_marks", "Materialize"]);
        assert!(touched(plan) < 200, "{} pages:\n{plan}", touched(plan));
    }
}

/// Five items with ten thousand comments each, of two hundred authors, each tenth of whom is behind a block for reader
/// 7.
const FILL_COMMENTS: &str = "
INSERT INTO users SELECT n, 'u' || n FROM generate_series(1, 1000) n;
INSERT INTO authors (author, head) SELECT n, 10 FROM generate_series(1, 1000) n;
INSERT INTO items (id, author, seq, published_at, rank, version, route, fingerprint, body, feed)
    SELECT n, n, 1, 1, 1, 1, 1, '\\x00', '1', 0 FROM generate_series(1, 5) n;
INSERT INTO talks SELECT n, 10000, 10000, 10000 FROM generate_series(1, 5) n;
INSERT INTO comments (id, item, at, author, replies, version, fingerprint, body)
    SELECT i * 100000 + n, i, n, n % 200 + 1, 0, 1, '\\x00', '1' FROM generate_series(1, 5) i, generate_series(1, 10000) n;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on, shields)
    SELECT 7, n * 10, 1, 0, 0, nextval('follows'), 7, false, 4 FROM generate_series(1, 20) n;
INSERT INTO edges (reader, author, generation, from_seq, since, listed, bucket, is_on)
    SELECT 7, n * 2 + 1, 1, 0, 0, nextval('follows'), 7, true FROM generate_series(5, 99) n UNION ALL
    SELECT n * 2 + 1, 7, 1, 0, 0, nextval('follows'), 7, true FROM generate_series(5, 99) n;
ANALYZE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_a_page_of_comments_is_read_along_its_index_however_long_the_talk_is() {
    let plans = plans("comments", FILL_COMMENTS, async |archive| {
        let reader = Onlooker::user(UserNo(7));
        let of_friends = Onlooker { visible: Visible::Mutual, ..reader };
        for (onlooker, order) in [
            (reader, CommentOrder::Newest),
            (reader, CommentOrder::Oldest),
            (of_friends, CommentOrder::Newest),
            (of_friends, CommentOrder::Oldest),
        ] {
            for n in 0..4 {
                let from = (n > 0).then_some(CommentPlace { at: n * 2000, id: ItemId(1 << 63 | 1) });
                let page = archive.comments(ItemId(1 << 63 | 3), onlooker, order, from, 20).await.unwrap();
                assert!(page.comments.len() == 20 && page.next.is_some());
            }
        }
    })
    .await;
    assert_eq!(plans.len(), 16);
    assert_without(&plans, &["Seq Scan", "Sort", "Bitmap", "Hash"]);
    assert_with(&plans, "using comments_listed");
    for (nth, plan) in plans.iter().enumerate() {
        // Of mutual friends alone, two edges are looked up of each comment that is looked at.
        let most = if nth < 8 { 200 } else { 600 };
        assert!(touched(plan) < most, "{} pages:\n{plan}", touched(plan));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn news_touch_what_is_new_or_what_is_followed_whichever_is_less() {
    let (many, few) = (UserNo(1001), UserNo(1002));
    let plans = plans("news", FILL_NEWS, async |archive| {
        for _ in 0..8 {
            for (reader, pull, news) in [(many, 5000, 3), (few, 0, 5 * 9 + 3), (many, 5003, 0)] {
                let after = Watermarks { pull, direct: 0 };
                let found = archive.news(InboxKey::main(reader), after, 100).await.unwrap();
                assert_eq!((found.entries.len(), found.upto.pull), (news, 5003), "{reader:?} after {pull}");
            }
        }
    })
    .await;
    assert_eq!(plans.len(), 3 * 8);
    assert_without(&plans, &["Seq Scan", "Bitmap", "Hash", "Materialize"]);
    for wanted in ["using authors_pulled", "using edges_pkey", "using records_pull on", "using direct_pkey"] {
        assert_with(&plans, wanted);
    }
    for plan in plans {
        assert!(touched(&plan) < 120, "{} pages:\n{plan}", touched(&plan));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_smaller_side_drives_the_search_for_followers() {
    let everybody: Vec<UserNo> = (1..=1100).map(UserNo).collect();
    let plans = plans("among", FILL_NEWS, async |archive| {
        for _ in 0..8 {
            for (author, asked, found) in [(3, &everybody[..], 2), (3, &everybody[1001..1002], 1), (9, &[], 0)] {
                let followers = archive.followers_among(UserNo(author), asked).await.unwrap();
                assert_eq!(followers.len(), found, "of {author} among {}", asked.len());
            }
        }
    })
    .await;
    assert_eq!(plans.len(), 3 * 8);
    assert_without(&plans, &["Sort  (", "Seq Scan", "Bitmap", "Hash", "Materialize"]);
    for plan in plans {
        assert!(touched(&plan) < 40, "{} pages:\n{plan}", touched(&plan));
    }
}

/// All that is read of a feed, of authors and for readers who have much of it and of those who have little.
async fn read_both_feeds(archive: &PostgresArchive) {
    const PULL: u64 = 39_900;
    for (n, feed) in (0..8).flat_map(|n| [(n, FeedId::MAIN), (n, FeedId(1))]) {
        let cuts: Vec<_> = (1..=4).map(|author| (UserNo(author), Progress::at(20_000))).collect();
        let cut = Cut { progress: Progress::at(19_950), pull: PULL };
        let before = Some(DisplayKey { rank: 19_990 - n, item: ItemId(5) });
        for (reader, pulled) in [(UserNo(7), PULL), (UserNo(8), 0)] {
            let key = InboxKey { reader, feed };
            let built = archive.build(key, &cuts, 50, 300).await.unwrap();
            assert_eq!(built.adds.len(), 300);
            assert_eq!(archive.feed_below(key, Below { before, ..Below::newest(100) }, 50).await.unwrap().len(), 100);
            let after = Watermarks { pull: pulled, direct: 19_990 };
            assert!(archive.news(key, after, 50).await.unwrap().upto.pull > pulled);
        }
        for author in (1..=4).map(UserNo) {
            assert_eq!(archive.profile(author, feed, before, 20).await.unwrap().len(), 20);
            let state = archive.edge_state(InboxKey { reader: UserNo(7), feed }, author, cut, 50).await.unwrap();
            assert!((50..150).contains(&state.adds.len()), "{author:?}, {feed:?}: {}", state.adds.len());
        }
    }
}

/// Also on the day they are first used, when the server has not found out yet that there is more than the main one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_author_has_put_into_one_feed_slows_no_other_feed() {
    let knows = format!("{FILL_FEEDS}; ANALYZE");
    let (main, named) = FILL_FEEDS.split_once("INSERT INTO records").unwrap();
    let main_alone = "INSERT INTO records (author, seq, item, rank, at, op, route, lane)
        SELECT 5, n, n, n, n, 1, 1, 0 FROM generate_series(1, 20000) n";
    let guesses = format!("{main}; {main_alone}; ANALYZE; INSERT INTO records {named}");
    for (name, fill) in [("knows", knows), ("guesses", guesses)] {
        let plans = plans(name, &fill, read_both_feeds).await;
        assert_without(&plans, &["Seq Scan", "Bitmap", "Hash", "Materialize"]);
        for index in ["records_adds", "records_shown", "records_pull"] {
            assert_with(&plans, &format!("using {index} on records"));
        }
        assert_with(&plans, "using direct_shown on direct");
        for plan in plans {
            assert!(
                passed_by(&plan) < 400 && touched(&plan) < 1500,
                "{name}: {} rows passed by:\n{plan}",
                passed_by(&plan)
            );
        }
    }
}

/// A hundred thousand members of lists, and a reader to whom twenty thousand items are addressed.
const FILL_LISTS: &str = "
INSERT INTO users SELECT n, 'u' || n FROM generate_series(1, 2000) n;
INSERT INTO readers SELECT n, 0 FROM generate_series(1, 2000) n;
INSERT INTO lists SELECT n % 1000 + 1, 'close', n / 1000 + 1, 0 FROM generate_series(1, 100000) n;
INSERT INTO direct (reader, seq, item, rank, at, author, feed, op, deleted)
    SELECT 7, n, n, n, n, 5, 0, 1, false FROM generate_series(1, 20000) n;
ANALYZE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_stage_of_an_erasure_reads_the_rows_of_its_user_alone_and_a_page_of_those() {
    let plans = plans("rest", FILL_LISTS, async |archive| {
        let nobody = UserNo(2000);
        assert_eq!(archive.rest(nobody, 0, 100).await.unwrap(), (Removed::default(), None));
        assert!(!archive.forget_rest(nobody, 100).await.unwrap());
        let page = Removed { addressed: 100, ..Removed::default() };
        assert_eq!(archive.rest(UserNo(7), 0, 100).await.unwrap(), (page, Some(100)));
        archive.forget_addressed(UserNo(7), 100).await.unwrap();
        assert_eq!(archive.rest(UserNo(7), 100, 100).await.unwrap(), (page, Some(200)));
    })
    .await;
    assert_with(&plans, "DELETE FROM lists");
    assert_without(&plans, &["Seq Scan on lists", "Seq Scan on direct"]);
    for plan in plans {
        assert!(touched(&plan) < 1500 && passed_by(&plan) < 400, "{} rows passed by:\n{plan}", passed_by(&plan));
    }
}
