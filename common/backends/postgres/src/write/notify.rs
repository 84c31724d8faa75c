//! Notifications: what writes tell users, in the same transaction.
//!
//! ```text
//!   follows, reposts, deletes   Concerned: whom they may concern ─▶ locked with all others ─▶ decided behind the writes
//!   reactions, comments         have changed their own rows ─▶ follow: locks, decides and stores what they tell
//! ```
//!
//! Invariants:
//! - What is addressed to a reader changes only under the lock of its row in `readers`, here too.
//! - The ids of notifications are drawn at random ([`DrawnIds`]), so the rows of their authors are not locked: a user
//!   who reacts to many items does not wait for these locks.

use compact_str::CompactString;
use feedgate_common::accept::{Ask, Policy, Refusal, Rows, Stop, gather};
use feedgate_common::archive::{Publish, Write};
use feedgate_common::notify::lines::Then;
use feedgate_common::notify::{Known, Notification, Rules};
use feedgate_common::{InboxKey, Millis, UserId, UserNo};
use sqlx::PgConnection;

use super::batch::{Batch, DrawnIds};
use super::concerned::Concerned;
use super::{Settings, load, store};
use crate::fault::{self, retried};

/// The writes that follow from decided changes, to notify users or to take notifications back.
#[derive(Default)]
pub(super) struct Follows {
    /// The writes to be decided, each with the place of its cause. A change of a line has several causes.
    asks: Vec<(Option<usize>, Ask)>,
    /// The readers of lines, each with the place of the cause.
    told: Vec<(usize, UserNo)>,
}

impl Follows {
    /// Gathers writes that notify or take back, each with the place of its cause. Their rows must be loaded.
    fn of(rows: &mut Rows, writes: Vec<(usize, Write)>, now: Millis) -> sqlx::Result<Self> {
        let (causes, writes): (Vec<usize>, Vec<Write>) = writes.into_iter().unzip();
        expect(rows, &writes);
        let gathered = gather(rows, &writes).map_err(failed)?;
        let told = gathered.told.into_iter().map(|(nth, reader)| (causes[nth], reader)).collect();
        let mut ids = DrawnIds::begin();
        let mut writes: Vec<Option<Write>> = writes.into_iter().map(Some).collect();
        let others = gathered.others.into_iter().filter_map(|nth| Some((Some(causes[nth]), writes[nth].take()?)));
        let lines = gathered.lines.into_iter().map(|line| (None, Write::Line(Box::new(line))));
        let asks = others.chain(lines).map(|(cause, write)| (cause, asked(write, now, &mut ids))).collect();
        Ok(Self { asks, told })
    }

    /// Decides all of these writes, and answers the readers who are notified, each with the place of the cause.
    pub(super) fn take<'a>(
        &'a self,
        batch: &mut Batch<'a>,
        policy: Policy,
    ) -> sqlx::Result<impl Iterator<Item = (usize, UserNo)> + use<>> {
        let mut told = self.told.clone();
        for (cause, ask) in &self.asks {
            match batch.take(ask, policy) {
                Ok(done) => {
                    told.extend(cause.iter().flat_map(|nth| done.addressed().iter().map(|reader| (*nth, *reader))));
                }
                Err(Stop::Refused(_)) => {}
                Err(stop) => return Err(failed(stop)),
            }
        }
        Ok(told.into_iter())
    }
}

/// The error for a decision that did not end. It means that the store is corrupt, since all rows were loaded before and
/// nobody else changes them.
fn failed(stop: Stop) -> sqlx::Error {
    match stop {
        Stop::Needs(needs) => fault::corrupt(format_args!("{needs:?} was not loaded")),
        Stop::Refused(refused) => fault::corrupt(refused),
        Stop::Failed(error) => fault::corrupt(error),
    }
}

/// What follows from writes that are decided; `None` if somebody whom they concern was not locked, so that the call has
/// to start over.
pub(super) fn what_follows(
    batch: &mut Batch<'_>,
    asks: &[Ask],
    answers: &[Refusal],
    concerned: &Concerned,
    rules: &Rules,
) -> sqlx::Result<Option<Follows>> {
    if rules.is_empty() {
        return Ok(Some(Follows::default()));
    }
    let (items, users) = (&batch.rows.items, &batch.rows.users);
    let author_of = |id| items.get(&id).and_then(Option::as_ref).map(|row| row.author);
    let number = |name: &UserId| users.get(name).copied().flatten();
    let name = |user| concerned.names.get(&user).cloned();
    let known = Known { author_of: &author_of, number: &number, name: &name };
    let mut follows: Vec<(usize, Write)> = vec![];
    for (nth, (ask, answer)) in asks.iter().zip(answers).enumerate() {
        let Ok(written) = answer else { continue };
        follows.extend(rules.of_write(ask.write(), written, known).into_iter().map(|write| (nth, write)));
    }
    if !concerned.covers(&follows) {
        return Ok(None);
    }
    let now = asks.iter().map(Ask::now).max().unwrap_or_default();
    Follows::of(&mut batch.rows, follows, now).map(Some)
}

/// Completes rows for what is told. A repost that this call makes is told for the first time, so no item has its key. A
/// notification that one call makes and takes back was seen by nobody.
fn expect(rows: &mut Rows, writes: &[Write]) {
    for write in writes {
        let Write::Notify(told) = write else { continue };
        let Notification { reader, publish, group, .. } = &**told;
        rows.sights.entry(InboxKey { reader: *reader, feed: publish.feed }).or_insert(None);
        if let Some(key) = &publish.foreign_id {
            rows.foreign_ids.entry(key.clone()).or_insert(None);
            rows.members.entry(key.clone()).or_insert(None);
        }
        if let Some(group) = group {
            rows.groups.entry((*reader, group.clone())).or_insert(None);
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
        Write::Line(mut line) => {
            if let Then::Replaced(_, publish) = &mut line.then {
                publish.id = Some(ids.next(now));
            }
            Write::Line(line)
        }
        write => write,
    };
    Ask::new(write, now)
}

/// Carries out what follows from changes that this transaction has made already, and answers who was told by each. The
/// locks that it takes come behind all others of such a transaction.
pub(crate) async fn follow(
    connection: &mut PgConnection,
    writes: Vec<Write>,
    now: Millis,
    settings: Settings,
) -> sqlx::Result<Vec<Vec<UserNo>>> {
    if writes.is_empty() {
        return Ok(vec![]);
    }
    let concerned = Concerned::by(connection, &writes).await?;
    let mut told = vec![vec![]; writes.len()];
    let follows: Follows;
    let mut batch = Batch::default();
    load::notifications(connection, &mut batch, &concerned).await?;
    follows = Follows::of(&mut batch.rows, writes.into_iter().enumerate().collect(), now)?;
    for (nth, reader) in follows.take(&mut batch, settings.policy)? {
        told[nth].push(reader);
    }
    store::all(connection, &batch, settings.buckets).await?;
    Ok(told)
}

/// Lets deeds leave the lines that tell of them, seen or not. After an error the connection is closed, which ends the
/// transaction.
pub(crate) async fn leave(
    connection: &mut PgConnection,
    keys: &[CompactString],
    now: Millis,
    settings: Settings,
) -> sqlx::Result<Vec<UserNo>> {
    retried!(connection, try_to_leave(connection, keys, now, settings))
}

async fn try_to_leave(
    connection: &mut PgConnection,
    keys: &[CompactString],
    now: Millis,
    settings: Settings,
) -> sqlx::Result<Vec<UserNo>> {
    let writes = keys.iter().map(|key| Write::Withdraw { key: key.clone(), even_seen: true }).collect();
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    let told = follow(connection, writes, now, settings).await?;
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(told.concat())
}
