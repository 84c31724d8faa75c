//! The decisions of [`Writes::write`](crate::archive::Writes::write): pure functions over rows that say what becomes of
//! a write.
//!
//! ```text
//!                    ┌─────────────── load them, start over ◀──────────────┐
//!                    ▼                                                     │ Needs: rows that are not loaded
//!   Rows ──▶ decide(rows, ask) ──▶ Plan: the answer, and the changes ──▶ the home stores them; rows.apply(plan)
//!                    │
//!                    └──▶ Refused: nothing changes
//! ```
//!
//! An Archive ("home") keeps rows and stores changes; which changes, is decided here. The embedded one loads each row
//! when a decision asks for it. The one on PostgreSQL locks and loads all rows that a call names before it begins.
//!
//! Invariant: a decision only reads [`Rows`], so it can start over after each load.

mod announce;
mod apply;
mod edit;
mod graph;
mod import;
mod lines;
mod notify;
mod plan;
mod publish;
mod rows;

pub use announce::announcements;
pub use lines::{Gathered, gather};
pub use plan::{Ask, Change, Plan, Refusal};
pub use rows::{AuthorRow, Door, EdgeRow, ItemRow, Need, ReaderRow, RetryRow, Rows};

use crate::archive::{Refused, Write, Written};
use crate::change::DEFAULT_PULL_ABOVE;
use crate::error::StoreError;
use crate::import::Import;
use crate::{OutboxSeq, UserNo};
use plan::Draft;

/// Stands for the record that deleted an item whose delete was not imported yet: it is greater than every place in an
/// outbox.
pub const DELETED_LATER: OutboxSeq = i64::MAX.cast_unsigned();

/// The reasons why a decision gives no plan.
#[derive(Debug, Clone)]
pub enum Stop {
    /// These rows are not loaded: the caller loads them and decides again. Never empty; in the order in which the write
    /// names them.
    Needs(Vec<Need>),
    /// The write is refused. It changes nothing.
    Refused(Refused),
    /// The rows contradict each other. The write changes nothing.
    Failed(StoreError),
}

impl From<Need> for Stop {
    fn from(need: Need) -> Self {
        Self::Needs(vec![need])
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

type Decision<T> = Result<T, Stop>;

/// What an operator has decided about writes that are accepted from now on. Processes of one store may have different
/// policies: what was accepted under one stays right under another.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Authors of class `auto` with more followers than this are pulled.
    pub pull_above: u64,
    /// Whether a follow that begins shows all that its author has published before.
    pub whole_past: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { pull_above: DEFAULT_PULL_ABOVE, whole_past: false }
    }
}

/// Decides one write. The rows of earlier writes of the call must be [applied](Rows::apply) already.
pub fn decide<'a>(rows: &Rows, ask: &'a Ask, policy: Policy) -> Decision<Plan<'a>> {
    let history = matches!(ask.write, Write::Import(_));
    let mut draft = Draft { rows, now: ask.now, history, policy, changes: vec![] };
    let answer = answer(&mut draft, ask)?;
    Ok(Plan { answer, at: ask.now, history, changes: draft.changes })
}

fn answer<'a>(draft: &mut Draft<'_, 'a>, ask: &'a Ask) -> Decision<Written> {
    let now = ask.now;
    match &ask.write {
        Write::Publish(wanted) => publish::publish(draft, wanted, ask.fingerprint),
        Write::Edit { item, body, rank, mentions, if_version } => {
            let to = edit::Edit { body: body.as_ref(), rank: *rank, mentions: mentions.as_deref(), keeps: true };
            edit::edit(draft, *item, to, *if_version)
        }
        Write::Delete { item, if_version } => edit::delete(draft, *item, *if_version),
        Write::Follow { reader, author } => graph::follow(draft, (reader, author), true),
        Write::Unfollow { reader, author } => graph::follow(draft, (reader, author), false),
        Write::Answer { reader, author, answer } => graph::answer(draft, (reader, author), *answer),
        Write::Private { author, private } => graph::set_private(draft, author, *private),
        Write::Shield { user, other, shield, up } => graph::shield(draft, (user, other), (*shield, *up), now),
        Write::OwnPosts { author, on } => graph::own_posts(draft, author, *on),
        Write::Classify { author, class } => graph::classify(draft, author, *class),
        Write::Notify(wanted) => notify::notify(draft, wanted, ask.fingerprint),
        Write::Withdraw { key, .. } => notify::withdraw(draft, key),
        Write::Line(wanted) => lines::line(draft, wanted, ask.fingerprint),
        Write::Import(Import::Member(wanted)) => lines::import(draft, wanted),
        Write::Import(Import::Item { publish, version, deleted }) => {
            import::item(draft, publish, (*version, ask.fingerprint), *deleted)
        }
        Write::Import(Import::Delete { item }) => import::delete(draft, *item),
        Write::Import(Import::Follow { reader, author, since, from }) => {
            import::follow(draft, (reader, author), *since, *from)
        }
        Write::Import(Import::Unfollow { reader, author }) => import::unfollow(draft, (reader, author)),
        Write::Import(Import::Shield { user, other, shield, since }) => {
            graph::shield(draft, (user, other), (*shield, true), *since)
        }
        Write::Import(Import::Class { author, class }) => import::class(draft, author, *class),
        Write::Import(Import::Private { author }) => graph::set_private(draft, author, true),
        Write::Import(Import::Request { reader, author, since }) => import::request(draft, (reader, author), *since),
    }
}

/// All rows; if some are not loaded, all of these together, so that they can be loaded at once.
fn all<T>(found: impl Iterator<Item = Result<T, Need>>) -> Decision<Vec<T>> {
    let (mut rows, mut needs) = (vec![], vec![]);
    for row in found {
        match row {
            Ok(row) => rows.push(row),
            Err(need) => needs.push(need),
        }
    }
    if needs.is_empty() { Ok(rows) } else { Err(Stop::Needs(needs)) }
}

/// A reader and an author, in this order.
type Pair = (UserNo, UserNo);

/// Whether the edge is that of an author to itself: no list, count or mutual shows it.
fn is_own((reader, author): Pair) -> bool {
    reader == author
}

#[cfg(test)]
mod tests;
