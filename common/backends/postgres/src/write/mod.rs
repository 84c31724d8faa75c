//! Writing: the operations of a call, or of several, in order and in one transaction.
//!
//! ```text
//!   names ─▶ numbers                         before, in a transaction of their own: they are never taken back
//!   BEGIN
//!     lock authors, then readers, each by number, and read them
//!     load what the operations speak of: items, keys, edges       nobody else can change it now
//!     plan: the operations in order, in memory
//!     store: what came of it, a statement per kind
//!   COMMIT
//! ```
//!
//! Invariants:
//! - A constant number of statements, however many operations there are.
//! - An author's rows change only under the lock of its row in `authors`, a reader's edges only under that of its row
//!   in `readers`. All locks of a call are taken in one order, so two calls never wait for each other.
//! - Ids of items are the one thing that two authors can contend for: the unique keys of `items` settle it, and the
//!   loser starts over and finds what the winner stored.

mod edit;
mod follow;
mod ledger;
mod load;
mod publish;
mod queue;
mod store;
mod sweep;

use std::collections::{BTreeSet, HashMap};

use feedgate_common::archive::{Publish, Refused, Write, Written};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::{Millis, UserId, UserNo};
use sqlx::PgConnection;

use crate::fault;
use crate::pool::{self, Lease, Pool, work};
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
        let fingerprint = if let Write::Publish(publish) = &write { publish.fingerprint() } else { [0; 16] };
        Self { write, now, fingerprint }
    }

    /// About what it takes while it waits.
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.write {
                Write::Publish(Publish { body, .. }) | Write::Edit { body, .. } => body.get().len(),
                Write::Delete { .. } | Write::Follow { .. } | Write::Unfollow { .. } => 0,
            }
    }
}

/// Whom the operations speak of, by name.
type Numbers = HashMap<UserId, UserNo>;

/// Carries out all of them; each sees what those before it did. May take longer than a call may.
async fn write(pool: &Pool, users: &Users, layout: u16, asks: &[Ask]) -> Result<Answers> {
    let numbers = numbers(pool, users, asks).await?;
    for _ in 0..TRIES {
        let mut lease = pool.lease().await?;
        if let Some(answers) = attempt(&mut lease, asks, &numbers, layout).await? {
            return Ok(answers);
        }
    }
    Err(StoreError::Overloaded { retry_after_ms: 100 })
}

/// The numbers of everybody who is spoken of. A publish that its id or foreign id already refuses gives its author none.
async fn numbers(pool: &Pool, users: &Users, asks: &[Ask]) -> Result<Numbers> {
    let mut names = BTreeSet::new();
    let mut doubtful = vec![];
    for ask in asks {
        match &ask.write {
            Write::Publish(publish) if publish.id.is_some() || publish.foreign_id.is_some() => doubtful.push(publish),
            Write::Publish(publish) => _ = names.insert(&publish.author),
            Write::Follow { reader, author } | Write::Unfollow { reader, author } => names.extend([reader, author]),
            Write::Edit { .. } | Write::Delete { .. } => {}
        }
    }
    let authors: Vec<UserId> = doubtful.iter().map(|publish| publish.author.clone()).collect();
    let known = users.numbers(pool, &authors).await?;
    let mut doubtful: Vec<_> =
        doubtful.into_iter().zip(&known).filter(|(_, no)| no.is_none()).map(|(publish, _)| publish).collect();
    if !doubtful.is_empty() {
        let ids: Vec<_> = doubtful.iter().filter_map(|publish| publish.id).collect();
        let foreign_ids: Vec<_> = doubtful.iter().filter_map(|publish| publish.foreign_id.as_deref()).collect();
        let (ids, foreign_ids) = (&ids, &foreign_ids);
        let taken = pool.read(work!(|connection| load::items(connection, ids, foreign_ids))).await?;
        let free = |publish: &&Publish| {
            let id = publish.id.is_some_and(|id| taken.iter().any(|(taken, _)| *taken == id));
            let foreign_id = publish.foreign_id.as_ref();
            !id && !foreign_id.is_some_and(|key| taken.iter().any(|(_, row)| row.foreign_id.as_ref() == Some(key)))
        };
        doubtful.retain(free);
    }
    names.extend(doubtful.iter().map(|publish| &publish.author));
    // In the order of the operations, so that numbers are given in it.
    let mut wanted: Vec<UserId> = vec![];
    for name in asks.iter().flat_map(spoken_of) {
        if names.remove(name) {
            wanted.push(name.clone());
        }
    }
    let numbers = users.intern(pool, &wanted).await?;
    let known = authors.into_iter().zip(known).filter_map(|(name, no)| Some((name, no?)));
    Ok(known.chain(wanted.into_iter().zip(numbers)).collect())
}

fn spoken_of(ask: &Ask) -> Vec<&UserId> {
    match &ask.write {
        Write::Publish(publish) => vec![&publish.author],
        Write::Follow { reader, author } | Write::Unfollow { reader, author } => vec![reader, author],
        Write::Edit { .. } | Write::Delete { .. } => vec![],
    }
}

/// One transaction; `None` if something was in the way and nothing happened.
async fn attempt(lease: &mut Lease<'_>, asks: &[Ask], numbers: &Numbers, layout: u16) -> Result<Option<Answers>> {
    let connection = lease.connection();
    let answers = match plan(connection, asks, numbers, layout).await {
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
    layout: u16,
) -> sqlx::Result<Option<Answers>> {
    let mut ledger = Ledger::default();
    let owners = load::owners(connection, asks).await?;
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    load::all(connection, &mut ledger, asks, numbers, &owners).await?;
    let mut answers = Vec::with_capacity(asks.len());
    for ask in asks {
        match one(&mut ledger, numbers, ask) {
            Some(answer) => answers.push(answer),
            None => return Ok(None),
        }
    }
    store::all(connection, ledger, layout).await?;
    Ok(Some(answers))
}

/// `None` if it speaks of something that was not there when the locks were chosen: start over.
fn one(ledger: &mut Ledger, numbers: &Numbers, ask: &Ask) -> Option<std::result::Result<Written, Refused>> {
    ledger.now = ask.now;
    let edge = |reader, author| Some((*numbers.get(reader)?, *numbers.get(author)?));
    match &ask.write {
        Write::Publish(wanted) => {
            publish::publish(ledger, numbers.get(&wanted.author).copied(), wanted, ask.fingerprint)
        }
        Write::Edit { item, body, if_version } => edit::edit(ledger, *item, body, *if_version),
        Write::Delete { item, if_version } => edit::delete(ledger, *item, *if_version),
        Write::Follow { reader, author } => edge(reader, author).map(|edge| follow::follow(ledger, edge)),
        Write::Unfollow { reader, author } => edge(reader, author).map(|edge| follow::unfollow(ledger, edge)),
    }
}
