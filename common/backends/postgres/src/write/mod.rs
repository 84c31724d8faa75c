//! Writing: the operations of a call, or of several, in order and in one transaction.
//!
//! ```text
//!   names ─▶ numbers                         before, in a transaction of their own: they are never taken back
//!   BEGIN
//!     lock authors, then readers, each by number, and read them
//!     load what the operations speak of: items, keys, edges       nobody else can change it now
//!     plan: the operations in order, in memory
//!     store: what came of it, a statement per kind                items, edges, counts of followers
//!     number what is pulled                                       the one counter of all authors, locked last
//!   COMMIT
//! ```
//!
//! Invariants:
//! - A constant number of statements, however many operations there are.
//! - An author's rows change only under the lock of its row in `authors`, a reader's edges, and what is addressed to a
//!   reader, only under that of its row in `readers`.
//! - All locks of a call are taken in one order, so two calls never wait for each other: authors, readers, keys of
//!   items, edges, counts of followers, the counter of what is pulled; of a kind by number.
//! - Whoever holds that counter waits for nothing but COMMIT, and gives it back with it: so what is pulled is numbered
//!   in commit order, and a snapshot that shows a number shows all below it.
//! - Ids of items are the one thing that two authors can contend for: the unique keys of `items` settle it, and the
//!   loser starts over and finds what the winner stored.

mod edit;
mod graph;
mod import;
mod ledger;
mod load;
mod look;
mod names;
mod publish;
mod queue;
mod store;
mod sweep;

use std::collections::HashMap;

use feedgate_common::archive::{Audience, Publish, Refused, Write, Written};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::import::Import;
use feedgate_common::{Millis, UserId, UserNo};
use sqlx::PgConnection;

use crate::fault;
use crate::pool::{self, Lease, Pool};
use crate::users::Users;
use ledger::Ledger;
pub(crate) use queue::Queue;
use sweep::Sweep;

/// How often a call starts over because another one was in the way, or because its connection was lost before COMMIT.
const TRIES: usize = 10;

/// What becomes of each operation.
type Answers = Vec<std::result::Result<Written, Refused>>;

/// An operation, with what can be worked out without the store.
struct Ask {
    write: Write,
    /// What stamps it.
    now: Millis,
    /// All zero but for a publish.
    fingerprint: [u8; 16],
}

impl Ask {
    fn new(write: Write, now: Millis) -> Self {
        let fingerprint = published(&write).map_or([0; 16], Publish::fingerprint);
        Self { write, now, fingerprint }
    }

    /// About what it takes while it waits.
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.write {
                Write::Publish(publish) | Write::Import(Import::Item { publish, .. }) => {
                    publish.body.get().len() + named(&publish.audience)
                }
                Write::Edit { body, .. } => body.get().len(),
                Write::Delete { .. }
                | Write::Follow { .. }
                | Write::Unfollow { .. }
                | Write::Shield { .. }
                | Write::Import(_)
                | Write::Classify { .. } => 0,
            }
    }
}

/// What is made an item, now or of old.
fn published(write: &Write) -> Option<&Publish> {
    match write {
        Write::Publish(publish) | Write::Import(Import::Item { publish, .. }) => Some(publish),
        _ => None,
    }
}

/// About what an audience takes, with the numbers behind its names.
fn named(audience: &Audience) -> usize {
    match audience {
        Audience::Followers => 0,
        Audience::Users(users) => users.iter().map(|user| user.as_str().len() + 64).sum(),
    }
}

/// How this store is laid out and what it is set to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// By how many the index of followers divides readers.
    pub(crate) buckets: u16,
    /// Above how many followers an author of class `auto` is pulled.
    pub(crate) pull_above: u64,
}

/// Whom the operations speak of, by name.
type Numbers = HashMap<UserId, UserNo>;

/// Carries out all of them; each sees what those before it did. May take longer than a call may.
async fn write(pool: &Pool, users: &Users, settings: Settings, asks: &[Ask]) -> Result<Answers> {
    let numbers = names::numbers(pool, users, asks).await?;
    for _ in 0..TRIES {
        let mut lease = pool.lease().await?;
        if let Some(answers) = attempt(&mut lease, asks, &numbers, settings).await? {
            return Ok(answers);
        }
    }
    Err(StoreError::Overloaded { retry_after_ms: 100 })
}

/// One transaction; `None` if something was in the way and nothing happened.
async fn attempt(
    lease: &mut Lease<'_>,
    asks: &[Ask],
    numbers: &Numbers,
    settings: Settings,
) -> Result<Option<Answers>> {
    let connection = lease.connection();
    let answers = match plan(connection, asks, numbers, settings).await {
        Ok(Some(answers)) => answers,
        Ok(None) => return undo(lease).await,
        Err(error) if fault::is_conflict(&error) => return undo(lease).await,
        // Without COMMIT nothing has happened. Closing the connection ends the transaction.
        Err(error) => {
            let lost = fault::is_lost(&error);
            let judged = lease.judge::<()>(Err(error)).map_err(fault::store_error);
            return if lost { Ok(None) } else { judged.map(|()| None) };
        }
    };
    let committed = sqlx::query("COMMIT").execute(connection).await;
    match lease.judge(committed.map(drop)) {
        Ok(()) => Ok(Some(answers)),
        Err(error) if fault::is_conflict(&error) => Ok(None),
        Err(error) => Err(pool::in_doubt(error)),
    }
}

async fn undo(lease: &mut Lease<'_>) -> Result<Option<Answers>> {
    let undone = sqlx::query("ROLLBACK").execute(lease.connection()).await;
    lease.judge(undone).map_err(fault::store_error)?;
    Ok(None)
}

/// Everything between BEGIN and COMMIT.
async fn plan(
    connection: &mut PgConnection,
    asks: &[Ask],
    numbers: &Numbers,
    settings: Settings,
) -> sqlx::Result<Option<Answers>> {
    let mut ledger = Ledger { pull_above: settings.pull_above, ..Ledger::default() };
    let edited = look::edited(connection, asks).await?;
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    load::all(connection, &mut ledger, asks, numbers, edited).await?;
    let mut answers = Vec::with_capacity(asks.len());
    for ask in asks {
        match one(&mut ledger, numbers, ask) {
            Some(answer) => answers.push(answer),
            None => return Ok(None),
        }
    }
    store::all(connection, ledger, settings.buckets).await?;
    Ok(Some(answers))
}

/// `None` if it speaks of something that was not there when the locks were chosen: start over.
fn one(ledger: &mut Ledger, numbers: &Numbers, ask: &Ask) -> Option<std::result::Result<Written, Refused>> {
    ledger.now = ask.now;
    let no = |name| numbers.get(name).copied();
    match &ask.write {
        Write::Publish(wanted) => publish::publish(ledger, numbers, wanted, ask.fingerprint),
        Write::Edit { item, body, if_version } => edit::edit(ledger, *item, body, *if_version),
        Write::Delete { item, if_version } => edit::delete(ledger, *item, *if_version),
        Write::Follow { reader, author } => graph::follow(ledger, (no(reader)?, no(author)?), true),
        Write::Unfollow { reader, author } => graph::follow(ledger, (no(reader)?, no(author)?), false),
        Write::Shield { user, other, shield, up } => graph::shield(ledger, (no(user)?, no(other)?), *shield, *up),
        Write::Import(line) => import::import(ledger, numbers, line, ask),
        Write::Classify { author, class } => graph::classify(ledger, no(author)?, author, *class),
    }
}
