//! What is ahead of the push of an author: the records that are not finished, and the followers who get them.
//!
//! One statement reads both, and so one snapshot. Calls that wait at the same time share a statement, so a burst of
//! posts of many authors costs few statements. A statement begins after each of its calls was made.
//!
//! The followers of an author are kept in memory, with a state number, which grows with each change of the followers
//! and is never given twice. A later statement that finds the same number reads no followers: the kept followers are
//! also those of its snapshot. Only their counters may be older.

use std::sync::Arc;

use feedgate_common::UserNo;
use feedgate_common::archive::{Ahead, Outbox, Recipient};
use feedgate_common::change::Route;
use feedgate_common::error::Result;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sqlx::PgConnection;

use super::push;
use crate::groups::{Groups, UpTo, Weight};
use crate::pool::{self, Pool, work};
use crate::rows;

/// How many statements are under way at once.
const QUERIES: usize = 4;

/// A statement takes no further call once it has this many calls.
const AUTHORS_MAX: usize = 32;

/// How many calls may wait for a statement; further calls wait for a place.
const CALLS_MAX: usize = 16 * 1024;

/// The most bytes that kept followers take: about 800,000 followers.
const KEPT_MAX: u64 = 32 * 1024 * 1024;

/// Rows of two kinds for each author, at least one row. Rows of kind 0 are records; rows of kind 1 are followers, and
/// there are none if all of the records are pulled (route 2), or if the caller has the followers of this state. A push
/// that was reopened has no known end of what is finished.
const AHEAD: &str = "
SELECT asked.n, a.head, a.last_pull, a.finished, a.changed, r.*
FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[])
    WITH ORDINALITY AS asked(author, records, recipients, changed, n)
CROSS JOIN LATERAL (
    SELECT head, last_pull, CASE WHEN due <= 0 THEN NULL ELSE finished END AS finished,
           (SELECT coalesce(sum(changed), 0)::bigint FROM follower_counts WHERE author = asked.author) AS changed
    FROM authors WHERE author = asked.author OFFSET 0
) a
LEFT JOIN LATERAL (
    SELECT * FROM (
        SELECT 0::smallint AS kind, 0 AS reader, seq AS one, rank AS two, item AS three, op, feed, route, history AS flag
        FROM records WHERE author = asked.author AND seq > a.finished ORDER BY seq LIMIT asked.records
    ) records
    UNION ALL
    SELECT * FROM (
        SELECT 1::smallint, e.reader, e.generation, e.from_seq, r.counter, 0::smallint, 0::smallint, 0::smallint, r.listens
        FROM edges e JOIN readers r ON r.reader = e.reader
        WHERE e.is_on AND e.author = asked.author
          AND a.changed <> asked.changed
          AND EXISTS (SELECT FROM records WHERE author = asked.author AND seq > a.finished AND route <> 2)
        LIMIT asked.recipients
    ) recipients
) r ON true";

type Row = (
    i64,
    i64,
    i64,
    Option<i64>,
    i64,
    Option<i16>,
    Option<i32>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i16>,
    Option<i16>,
    Option<i16>,
    Option<bool>,
);

/// The author whose records are asked for, and how many records and recipients are wanted.
#[derive(Debug, Clone, Copy)]
struct Asked {
    author: UserNo,
    records: usize,
    recipients: usize,
}

/// The number of a state of an author's followers: no other state of the same followers has this number.
type State = i64;

/// No followers have this state.
const NO_STATE: State = -1;

/// All followers of an author.
#[derive(Debug)]
struct Kept {
    state: State,
    followers: Vec<Recipient>,
}

/// The followers that are kept, up to [`KEPT_MAX`] bytes; followers that nobody asked for lately go first.
type Followers = Cache<UserNo, Arc<Kept>, ByBytes>;

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<UserNo, Arc<Kept>> for ByBytes {
    fn weight(&self, _: &UserNo, kept: &Arc<Kept>) -> u64 {
        (size_of::<Kept>() + kept.followers.len() * size_of::<Recipient>() + 64) as u64
    }
}

impl Weight for Asked {}

/// The calls that become one statement.
type Query = UpTo<AUTHORS_MAX, Asked, Option<Ahead>>;

async fn carry_out(query: Query, pool: &Pool, followers: &Followers) {
    let asked: Vec<_> = query.asked().into_iter().map(|asked| (asked, followers.get(&asked.author))).collect();
    let asked = &asked[..];
    let found = pool.read(work!(|connection| read(connection, asked))).await;
    let whole = |(asked, found): (_, Option<Found>)| found.map(|found| with_followers(asked, found, followers));
    let found = found.map(|found| asked.iter().zip(found).map(whole).collect::<Vec<_>>());
    query.answer(found, |_, ahead| Ok(ahead));
}

/// What was read of an author.
struct Found {
    state: State,
    ahead: Ahead,
}

async fn read(connection: &mut PgConnection, asked: &[(Asked, Option<Arc<Kept>>)]) -> sqlx::Result<Vec<Option<Found>>> {
    let read: Vec<Row> = sqlx::query_as(AHEAD)
        .bind(asked.iter().map(|(asked, _)| rows::user(asked.author)).collect::<Vec<_>>())
        .bind(asked.iter().map(|(asked, _)| rows::limit(asked.records)).collect::<Vec<_>>())
        .bind(asked.iter().map(|(asked, _)| rows::limit(asked.recipients)).collect::<Vec<_>>())
        .bind(asked.iter().map(|(_, kept)| kept.as_ref().map_or(NO_STATE, |kept| kept.state)).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    let mut found: Vec<Option<Found>> = asked.iter().map(|_| None).collect();
    for (n, head, last_pull, finished, state, kind, reader, one, two, three, op, feed, route, flag) in read {
        let Some(finished) = finished else { continue };
        let of = &mut found[usize::try_from(n - 1).unwrap_or_default()];
        let Found { ahead, .. } = match of {
            Some(of) => of,
            None => of.insert(Found {
                state,
                ahead: Ahead {
                    finished: rows::count_of(finished)?,
                    outbox: Outbox {
                        records: vec![],
                        head: rows::count_of(head)?,
                        last_pull: rows::count_of(last_pull)?,
                        imported: vec![],
                    },
                    recipients: vec![],
                    kept: false,
                },
            }),
        };
        if let (Some(kind), Some(reader), Some(one), Some(two), Some(three)) = (kind, reader, one, two, three)
            && let (Some(op), Some(feed), Some(route), Some(flag)) = (op, feed, route, flag)
        {
            match kind {
                0 => push::add_record(&mut ahead.outbox, (one, op, feed, route, two, three), flag)?,
                _ => ahead.recipients.push(push::recipient((reader, one, two, three, flag))?),
            }
        }
    }
    // A union keeps no order by its terms.
    for Found { ahead, .. } in found.iter_mut().flatten() {
        ahead.outbox.records.sort_unstable_by_key(|record| record.seq);
        ahead.outbox.imported.sort_unstable();
    }
    Ok(found)
}

/// Adds the kept followers to the answer, or keeps the followers that were read.
fn with_followers((asked, kept): &(Asked, Option<Arc<Kept>>), found: Found, followers: &Followers) -> Ahead {
    let Found { state, mut ahead } = found;
    if ahead.outbox.records.iter().all(|record| record.route == Route::Pull) {
        return ahead;
    }
    match kept {
        Some(kept) if kept.state == state => {
            ahead.recipients = kept.followers.iter().copied().take(asked.recipients).collect();
            ahead.kept = true;
        }
        _ if ahead.recipients.len() < asked.recipients => {
            followers.insert(asked.author, Arc::new(Kept { state, followers: ahead.recipients.clone() }));
        }
        _ => {}
    }
    ahead
}

/// The calls of this process that ask what is ahead of authors, and the tasks that carry the calls out.
pub(crate) struct SharedAhead {
    groups: Groups<Asked, Option<Ahead>>,
    followers: Arc<Followers>,
}

impl SharedAhead {
    /// Starts the tasks on the current runtime.
    pub(crate) fn start(pool: Arc<Pool>) -> Self {
        let followers = Arc::new(Cache::with_weighter(1024, KEPT_MAX, ByBytes));
        let kept = followers.clone();
        let groups = Groups::start(QUERIES, CALLS_MAX, move |query: Query| {
            let (pool, followers) = (pool.clone(), kept.clone());
            async move { carry_out(query, &pool, &followers).await }
        });
        Self { groups, followers }
    }

    /// What is ahead of an author, as [`Outboxes::ahead`](feedgate_common::archive::Outboxes::ahead) says.
    pub(crate) async fn get(&self, author: UserNo, records: usize, recipients: usize) -> Result<Option<Ahead>> {
        let asked = Asked { author, records, recipients };
        self.groups.ask(asked).await.unwrap_or_else(|| Err(pool::unanswered()))
    }

    /// Drops the kept followers of an author: a caller has found their counters too old, and reads the followers in
    /// another way.
    pub(crate) fn forget(&self, author: UserNo) {
        self.followers.remove(&author);
    }
}
