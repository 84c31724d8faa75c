//! The names and numbers of users, kept in memory.
//!
//! ```text
//!   new names of calls that wait at the same time ──▶ one transaction, alone in the database ──▶ numbers
//! ```
//!
//! Invariant: a pair of a name and a number is remembered only once it is durable, and a pair never changes. So a
//! remembered pair is right for every caller.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use feedgate_common::error::Result;
use feedgate_common::{UserId, UserNo};
use quick_cache::sync::Cache;
use sqlx::PgConnection;

use crate::fault::{self, corrupt};
use crate::groups::{self, Groups};
use crate::pool::{self, Pool, work};
use crate::rows;

/// How many pairs are remembered in each direction; about 100 bytes each.
const REMEMBERED: usize = 100_000;

const NUMBERS: &str = "SELECT name, no FROM users WHERE name = ANY($1)";

const NAMES: &str = "SELECT no, name FROM users WHERE no = ANY($1)";

/// Begins a transaction with a lock, so that nobody else gives numbers until it ends.
const ALONE: &str = "BEGIN; SELECT value FROM counters WHERE name = 'users' FOR UPDATE";

/// Gives numbers to the names that have none. A number is taken only for a name without one, so numbers are dense.
const GIVE: &str = "
WITH nameless AS (
    SELECT name, row_number() OVER (ORDER BY n) AS n FROM unnest($1) WITH ORDINALITY AS asked(name, n)
    WHERE NOT EXISTS (SELECT FROM users WHERE users.name = asked.name)
),
given AS (
    UPDATE counters SET value = value + (SELECT count(*) FROM nameless) WHERE name = 'users'
    RETURNING value - (SELECT count(*) FROM nameless) AS before
),
fresh AS (
    INSERT INTO users (no, name) SELECT (given.before + n)::integer, nameless.name FROM given, nameless RETURNING no
),
authors AS (INSERT INTO authors (author) SELECT no FROM fresh)
INSERT INTO readers (reader) SELECT no FROM fresh";

/// A group takes no further call once it has this many names.
const GROUP_MAX: usize = 1000;

/// How many calls may wait for a group.
const CALLS_MAX: usize = 4096;

/// The numbers of all names of a group.
type Given = Arc<HashMap<String, UserNo>>;

type Call = groups::Call<Vec<UserId>, Given>;

/// The calls whose names get their numbers in one transaction. A second transaction at the same time would only wait
/// for the lock.
#[derive(Default)]
struct Group {
    /// Each name once, in the order in which the calls asked for names.
    names: Vec<UserId>,
    known: HashSet<UserId>,
    calls: Vec<Call>,
}

impl groups::Group<Vec<UserId>, Given> for Group {
    fn add(&mut self, call: Call) {
        for name in &call.asked {
            if self.known.insert(name.clone()) {
                self.names.push(name.clone());
            }
        }
        self.calls.push(call);
    }

    fn is_full(&self) -> bool {
        self.names.len() >= GROUP_MAX
    }
}

impl Group {
    async fn carry_out(self, pool: &Pool) {
        let names: Vec<&str> = self.names.iter().map(UserId::as_str).collect();
        let names = &names[..];
        let given = pool.write(work!(|connection| give_and_read(connection, names))).await.map(Arc::new);
        self.calls.into_iter().for_each(|call| call.answer(given.clone()));
    }
}

/// Remembered pairs of names and numbers, in both directions, and the task that gives new numbers.
pub(crate) struct Users {
    by_name: Cache<UserId, UserNo>,
    by_no: Cache<UserNo, UserId>,
    giving: Groups<Vec<UserId>, Given>,
}

impl Users {
    /// Starts the task on the current runtime. Nothing is remembered yet.
    pub(crate) fn start(pool: Arc<Pool>) -> Self {
        let giving = Groups::start(1, CALLS_MAX, move |group: Group| {
            let pool = pool.clone();
            async move { group.carry_out(&pool).await }
        });
        Self { by_name: Cache::new(REMEMBERED), by_no: Cache::new(REMEMBERED), giving }
    }

    /// The number of each name, in the order asked; `None` for a name that has none.
    pub(crate) async fn numbers(&self, pool: &Pool, names: &[UserId]) -> Result<Vec<Option<UserNo>>> {
        let mut found: Vec<_> = names.iter().map(|name| self.by_name.get(name)).collect();
        let unknown: Vec<&str> =
            names.iter().zip(&found).filter(|(_, no)| no.is_none()).map(|(name, _)| name.as_str()).collect();
        if unknown.is_empty() {
            return Ok(found);
        }
        let unknown = &unknown;
        let read = pool.read(work!(|connection| numbers_of(connection, unknown))).await?;
        for (name, found) in names.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            *found = read.get(name.as_str()).copied();
            if let Some(no) = *found {
                self.by_name.insert(name.clone(), no);
            }
        }
        Ok(found)
    }

    /// The number of each name, in the order asked. A name that was never seen gets a new number.
    pub(crate) async fn intern(&self, pool: &Pool, names: &[UserId]) -> Result<Vec<UserNo>> {
        loop {
            let found = self.numbers(pool, names).await?;
            let unknown = names.iter().zip(&found).filter(|(_, no)| no.is_none()).map(|(name, _)| name.clone());
            let unknown: Vec<UserId> = unknown.collect();
            if unknown.is_empty() {
                return Ok(found.into_iter().flatten().collect());
            }
            let given = self.giving.ask(unknown.clone()).await.unwrap_or_else(|| Err(pool::no_reply()))?;
            for name in unknown {
                if let Some(no) = given.get(name.as_str()) {
                    self.by_name.insert(name, *no);
                }
            }
        }
    }

    /// The name of each number. `Corrupt` if a number was never given, since only stored rows hold numbers.
    pub(crate) async fn names(&self, pool: &Pool, users: &[UserNo]) -> Result<Vec<UserId>> {
        let known: Vec<_> = users.iter().map(|no| self.by_no.get(no)).collect();
        let unknown = users.iter().zip(&known).filter(|(_, name)| name.is_none());
        let unknown: Vec<i32> = unknown.map(|(no, _)| rows::user(*no)).collect();
        let mut read = HashMap::new();
        if !unknown.is_empty() {
            let unknown = &unknown;
            read = pool.read(work!(|connection| names_of(connection, unknown))).await?;
        }
        let name = |(no, known): (&UserNo, Option<UserId>)| match known {
            Some(name) => Ok(name),
            None => match read.get(no) {
                Some(name) => {
                    self.by_no.insert(*no, name.clone());
                    Ok(name.clone())
                }
                None => Err(fault::store_error(corrupt(format_args!("user {} has no name", no.0)))),
            },
        };
        users.iter().zip(known).map(name).collect()
    }
}

/// Gives a number to each of these names that has none, and answers the numbers of all names that have a number then.
async fn give_and_read(connection: &mut PgConnection, names: &[&str]) -> sqlx::Result<HashMap<String, UserNo>> {
    give(connection, names).await?;
    numbers_of(connection, names).await
}

/// Gives a number to each of these names that has none. After an error the connection is closed, which ends the
/// transaction.
async fn give(connection: &mut PgConnection, names: &[&str]) -> sqlx::Result<()> {
    sqlx::raw_sql(ALONE).execute(&mut *connection).await?;
    match sqlx::query(GIVE).bind(names).execute(&mut *connection).await {
        // Another process has given one of these names a number without this lock.
        Err(error) if fault::is_conflict(&error) => sqlx::query("ROLLBACK").execute(connection).await.map(drop),
        given => {
            given?;
            sqlx::query("COMMIT").execute(connection).await.map(drop)
        }
    }
}

async fn numbers_of(connection: &mut PgConnection, names: &[&str]) -> sqlx::Result<HashMap<String, UserNo>> {
    let read: Vec<(String, i32)> = sqlx::query_as(NUMBERS).bind(names).fetch_all(connection).await?;
    read.into_iter().map(|(name, no)| Ok((name, rows::user_of(no)?))).collect()
}

async fn names_of(connection: &mut PgConnection, users: &[i32]) -> sqlx::Result<HashMap<UserNo, UserId>> {
    let read: Vec<(i32, String)> = sqlx::query_as(NAMES).bind(users).fetch_all(connection).await?;
    read.into_iter().map(|(no, name)| Ok((rows::user_of(no)?, user_id(&name)?))).collect()
}

/// The user id of a stored name; `Corrupt` if it is no valid one.
pub(crate) fn user_id(name: &str) -> sqlx::Result<UserId> {
    name.parse().map_err(|error| corrupt(format_args!("the name {name:?} of a user: {error}")))
}
