//! Notifications: what writes tell users, in the same transaction.
//!
//! ```text
//!   follows, reposts, deletes   Concerned: whom they may concern ─▶ locked with all others ─▶ decided behind the writes
//!   reactions, comments         have changed their own rows ─▶ follow: locks, decides and stores what they tell
//! ```
//!
//! Invariants:
//! - What is addressed to a reader changes only under the lock of its row in `readers`, here too.
//! - Notifications draw their ids by chance ([`DrawnIds`]), so the rows of their authors are not locked: who reacts to
//!   many items does not wait.

use feedgate_common::accept::{Ask, Refusal, Rows, Stop};
use feedgate_common::archive::{Publish, Write, Written};
use feedgate_common::notify::{Notification, Rules};
use feedgate_common::{InboxKey, Millis, UserNo};
use sqlx::PgConnection;

use super::batch::{Batch, DrawnIds};
use super::concerned::Concerned;
use super::{Settings, load, store};
use crate::fault;

/// What follows from writes that are decided: for each the place of its cause.
pub(super) fn what_follows(
    batch: &mut Batch<'_>,
    asks: &[Ask],
    answers: &[Refusal],
    rules: &Rules,
) -> Vec<(usize, Ask)> {
    if rules.is_empty() {
        return vec![];
    }
    let items = &batch.rows.items;
    let mut ids = DrawnIds::begin();
    let author_of = |id| items.get(&id).and_then(Option::as_ref).map(|row| row.author);
    let follows = asks.iter().zip(answers).enumerate().filter_map(|(nth, (ask, answer))| {
        let follows = rules.of_write(ask.write(), answer.as_ref().ok()?, author_of)?;
        Some((nth, asked(follows, ask.now(), &mut ids)))
    });
    let follows: Vec<(usize, Ask)> = follows.collect();
    expect(&mut batch.rows, follows.iter().map(|(_, ask)| ask));
    follows
}

/// Completes rows for what is told. A repost of this call is told of for the first time, so nothing has its key; and nobody
/// has seen what is told and taken back in one call.
fn expect<'a>(rows: &mut Rows, asks: impl Iterator<Item = &'a Ask>) {
    for ask in asks {
        let Write::Notify(told) = ask.write() else { continue };
        let Notification { reader, publish, .. } = &**told;
        rows.sights.entry(InboxKey { reader: *reader, feed: publish.feed }).or_insert(None);
        if let Some(key) = &publish.foreign_id {
            rows.foreign_ids.entry(key.clone()).or_insert(None);
        }
    }
}

/// The write to be decided, with an id if it makes an item.
fn asked(write: Write, now: Millis, ids: &mut DrawnIds) -> Ask {
    let write = match write {
        Write::Notify(told) => {
            let publish = Publish { id: Some(ids.next(now)), ..told.publish };
            Write::Notify(Box::new(Notification { publish, ..*told }))
        }
        write => write,
    };
    Ask::new(write, now)
}

/// Carries out what follows from changes that this transaction has made already, and answers who was told by each. The locks that
/// it takes come behind all others of such a transaction.
pub(crate) async fn follow(
    connection: &mut PgConnection,
    writes: Vec<Write>,
    now: Millis,
    settings: Settings,
) -> sqlx::Result<Vec<Vec<UserNo>>> {
    if writes.is_empty() {
        return Ok(vec![]);
    }
    let mut ids = DrawnIds::begin();
    let asks: Vec<Ask> = writes.into_iter().map(|write| asked(write, now, &mut ids)).collect();
    let concerned = Concerned::by(connection, &asks).await?;
    let mut batch = Batch::default();
    load::notifications(connection, &mut batch, &concerned).await?;
    expect(&mut batch.rows, asks.iter());
    let mut told = vec![];
    for ask in &asks {
        match batch.take(ask, settings.pull_above) {
            Ok(Written::Published { readers, .. } | Written::Deleted { readers, .. }) => told.push(readers),
            Ok(_) | Err(Stop::Refused(_)) => told.push(vec![]),
            Err(Stop::Needs(needs)) => return Err(fault::corrupt(format_args!("{needs:?} was not loaded"))),
            Err(Stop::Failed(error)) => return Err(fault::corrupt(error)),
        }
    }
    store::all(connection, &batch, settings.buckets).await?;
    Ok(told)
}
