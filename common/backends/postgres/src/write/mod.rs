//! Writes the operations of one call, or of several, in order and in one transaction.
//!
//! ```text
//!   names ─▶ numbers                         before, in a transaction of their own: they are never taken back
//!   BEGIN
//!     lock authors, then readers, each by number, and read them
//!     load what the operations speak of: items, keys, edges       nobody else can change it now
//!     decide: the operations in order, in memory                  what becomes of each: `feedgate_common::accept`
//!             and then what they tell users                       by `feedgate_common::notify::Rules`
//!     store: what came of it, a statement per kind                items, edges, counts of followers, announcements,
//!                                                                 counts of reposts
//!     number what is pulled                                       the one counter of all authors, locked last
//!   COMMIT
//! ```
//!
//! Invariants:
//! - The number of statements is constant, however many operations there are.
//! - An author's rows change only under the lock of its row in `authors`. A reader's edges, and what is addressed to a
//!   reader, change only under the lock of its row in `readers`.
//! - All locks of a call are taken in one order, so that no two calls wait for each other: authors, readers, keys of
//!   items, edges, counts of followers, counts of reposts, the counter of what is pulled; within a kind by number. Only
//!   the readers of an item that took the key of a notification meanwhile are locked later. Should two calls wait for
//!   each other then, PostgreSQL ends one of them, which starts over.
//! - A call that holds the lock of that counter only has COMMIT left to do, which frees it. So what is pulled is
//!   numbered in the order of commits, and a snapshot that shows a number shows all below it.
//! - Only for ids of items can two authors compete. The unique keys of `items` decide, and the loser starts over and
//!   finds what the winner stored.

mod batch;
mod concerned;
mod lines;
mod load;
mod look;
mod names;
mod notify;
mod queue;
mod store;
mod sweep;

use std::collections::HashMap;

use feedgate_common::accept::{Ask, Need, Policy, Refusal, Stop};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::notify::Rules;
use feedgate_common::{UserId, UserNo};
use sqlx::PgConnection;

use crate::fault;
use crate::pool::{self, Lease, Pool, Verb};
use crate::users::Users;
use batch::Batch;
pub(crate) use lines::members;
use notify::Follows;
pub(crate) use notify::{follow, leave};
pub(crate) use queue::Queue;
use sweep::Sweep;

/// How often a call starts over because another call was in the way, or because its connection was lost before COMMIT.
const TRIES: usize = 10;

/// The answer to each operation.
type Answers = Vec<Refusal>;

/// The layout and the settings with which this process writes to the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// The number of buckets into which the index of followers divides readers.
    pub(crate) buckets: u16,
    /// The configured rules for writes.
    pub(crate) policy: Policy,
}

/// The numbers of the users whom the operations name; `None` if the name has no number yet.
type Numbers = HashMap<UserId, Option<UserNo>>;

/// Carries out all operations in order; each operation sees what the earlier ones did. May take longer than
/// [`pool::CALL`].
async fn write(pool: &Pool, users: &Users, (settings, rules): (Settings, &Rules), asks: &[Ask]) -> Result<Answers> {
    let mut numbers = names::numbers(pool, users, asks).await?;
    for _ in 0..TRIES {
        let mut lease = pool.lease().await?;
        let call = pool.call(Verb::Batch);
        match call.ended(attempt(&mut lease, asks, &numbers, (settings, rules)).await)? {
            Ok(answers) => return Ok(answers),
            Err(needs) => {
                drop(lease);
                names::give(pool, users, &mut numbers, needs).await?;
            }
        }
    }
    Err(StoreError::Overloaded { retry_after_ms: 100 })
}

/// The answers, or what must exist before the call starts over: nothing if another call was in the way.
type Attempt = std::result::Result<Answers, Vec<Need>>;

/// Tries the operations in one transaction. If the call has to start over, nothing has happened.
async fn attempt(lease: &mut Lease<'_>, asks: &[Ask], numbers: &Numbers, by: (Settings, &Rules)) -> Result<Attempt> {
    let connection = lease.connection();
    let answers = match carry_out(connection, asks, numbers, by).await {
        Ok(Ok(answers)) => answers,
        Ok(Err(needs)) => return undo(lease, needs).await,
        Err(error) if fault::is_conflict(&error) => return undo(lease, vec![]).await,
        // Nothing has happened without COMMIT. Closing the connection ends the transaction.
        Err(error) => {
            let lost = fault::is_lost(&error);
            let judged = lease.judge::<()>(Err(error)).map_err(fault::store_error);
            return if lost { Ok(Err(vec![])) } else { judged.map(|()| Err(vec![])) };
        }
    };
    let committed = sqlx::query("COMMIT").execute(connection).await;
    match lease.judge(committed.map(drop)) {
        Ok(()) => Ok(Ok(answers)),
        Err(error) if fault::is_conflict(&error) => Ok(Err(vec![])),
        Err(error) => Err(pool::in_doubt(error)),
    }
}

async fn undo(lease: &mut Lease<'_>, needs: Vec<Need>) -> Result<Attempt> {
    let undone = sqlx::query("ROLLBACK").execute(lease.connection()).await;
    lease.judge(undone).map_err(fault::store_error)?;
    Ok(Err(needs))
}

/// All work between BEGIN and COMMIT. What is missing is collected over all operations, so that the call starts over
/// only once.
async fn carry_out(
    connection: &mut PgConnection,
    asks: &[Ask],
    numbers: &Numbers,
    (settings, rules): (Settings, &Rules),
) -> sqlx::Result<Attempt> {
    let follows: Follows;
    let mut batch = Batch::default();
    batch.rows.users.clone_from(numbers);
    let edited = look::edited(connection, asks).await?;
    let concerned = concerned::Concerned::of(connection, asks, numbers, rules).await?;
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    load::all(connection, &mut batch, asks, edited, &concerned).await?;
    let (mut answers, mut needed): (Answers, _) = (Vec::with_capacity(asks.len()), vec![]);
    for ask in asks {
        match batch.take(ask, settings.policy) {
            Ok(answer) => answers.push(Ok(answer)),
            Err(Stop::Needs(needs)) => needed.extend(needs),
            Err(Stop::Refused(refused)) => answers.push(Err(refused)),
            Err(Stop::Failed(error)) => return Err(fault::corrupt(error)),
        }
    }
    if answers.len() < asks.len() {
        return Ok(Err(needed));
    }
    let Some(following) = notify::what_follows(&mut batch, asks, &answers, &concerned, rules)? else {
        return Ok(Err(vec![]));
    };
    follows = following;
    for (nth, reader) in follows.take(&mut batch, settings.policy)? {
        answers[nth].iter_mut().for_each(|answer| answer.add_told(&[reader]));
    }
    store::all(connection, &batch, settings.buckets).await?;
    Ok(Ok(answers))
}
