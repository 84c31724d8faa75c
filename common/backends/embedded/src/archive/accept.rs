//! One call of `write`: its operations in order, in one transaction. [`feedgate_common::accept`] decides what becomes
//! of each. A row is loaded when a decision needs it, and a plan is stored at once. The notifications that an operation
//! makes, by [`Rules`], are stored right after it.

use feedgate_common::accept::{Ask, Refusal, Stop, announcements, decide, gather};
use feedgate_common::archive::{Write, Written};
use feedgate_common::error::Result;
use feedgate_common::import::Import;
use feedgate_common::notify::{Known, Rules};
use feedgate_common::{ItemId, Millis, StoreError, UserId, UserNo};

use super::announcements::Log;
use super::any::Any;
use super::ledger::{Ledger, Setup};
use super::search::{Indexing, Prepared};
use super::users::KnownUsers;
use super::{load, store};
use crate::view::Tx;

/// The item that an operation may change, so that its copy in memory becomes outdated.
pub(super) fn changed_item(ask: &Ask) -> Option<ItemId> {
    match ask.write() {
        Write::Edit { item, .. } | Write::Delete { item, .. } | Write::Import(Import::Delete { item }) => Some(*item),
        _ => None,
    }
}

/// The outcome of a transaction.
pub(super) struct Done<T> {
    pub(super) answers: Vec<T>,
    /// The readers to whom a notification, or its delete, was addressed, each with the place of the write that did it.
    pub(super) told: Vec<(usize, UserNo)>,
    /// The notifications that were deleted or edited, whose copies in memory are outdated.
    pub(super) withdrawn: Vec<ItemId>,
}

/// What the transactions of an Archive share.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    pub(super) users: &'a KnownUsers,
    pub(super) log: &'a Log,
    pub(super) setup: Setup,
    pub(super) rules: &'a Rules,
    /// Whether the store was ever told what to index for search.
    pub(super) search: &'a Any,
}

impl<'a> Shared<'a> {
    fn open<'tx>(self, tx: &'a mut Tx<'tx>, now: Millis) -> Result<Ledger<'a, 'tx>> {
        let indexing = Indexing::if_any(tx, self.search)?;
        let mut ledger = Ledger::open(tx, self.users, self.setup, now)?;
        ledger.indexing = indexing;
        Ok(ledger)
    }
}

/// Carries out all operations in order; each sees what those before it did.
pub(super) fn all(
    tx: &mut Tx<'_>,
    shared: Shared<'_>,
    asks: &[Ask],
    mut indexed: Prepared,
    now: Millis,
) -> Result<Done<Refusal>> {
    let mut ledger = shared.open(tx, now)?;
    let mut carried_out = |(nth, ask)| {
        ledger.marks = indexed.take(nth, ledger.indexing.as_ref());
        with_what_follows(&mut ledger, ask, shared.rules)
    };
    let written = asks.iter().enumerate().map(&mut carried_out).collect();
    close(ledger, shared.log, written)
}

/// Carries out writes that notify or take back, which follow from changes that this transaction has made already. Gives
/// `answers` back in the outcome.
pub(super) fn follow<T>(
    tx: &mut Tx<'_>,
    shared: Shared<'_>,
    answers: Vec<T>,
    writes: Vec<Write>,
    now: Millis,
) -> Result<Done<T>> {
    if writes.is_empty() {
        return Ok(Done { answers, told: vec![], withdrawn: vec![] });
    }
    let mut ledger = shared.open(tx, now)?;
    let followed = tell(&mut ledger, writes, now);
    let Done { answers: told, withdrawn, .. } = close(ledger, shared.log, followed)?;
    Ok(Done { answers, told, withdrawn })
}

/// Carries out writes that notify or take back. Answers the readers who are told, with the place of the write.
fn tell(ledger: &mut Ledger<'_, '_>, writes: Vec<Write>, now: Millis) -> Result<Vec<(usize, UserNo)>> {
    let gathered = loop {
        match gather(&ledger.rows, &writes) {
            Ok(gathered) => break gathered,
            Err(Stop::Needs(needs)) => needs.into_iter().try_for_each(|need| load::one(ledger, need))?,
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Refused(refused)) => return Err(StoreError::corrupt(refused)),
        }
    };
    let mut told = gathered.told;
    let mut others: Vec<Option<Write>> = writes.into_iter().map(Some).collect();
    for nth in gathered.others {
        let Some(write) = others[nth].take() else { continue };
        if let Ok(done) = one(ledger, &Ask::new(write, now))? {
            told.extend(done.addressed().iter().map(|reader| (nth, *reader)));
        }
    }
    for line in gathered.lines {
        if let Err(refused) = one(ledger, &Ask::new(Write::Line(Box::new(line)), now))? {
            return Err(StoreError::corrupt(refused));
        }
    }
    Ok(told)
}

fn close<T>(mut ledger: Ledger<'_, '_>, log: &Log, answers: Result<Vec<T>>) -> Result<Done<T>> {
    let (announced, withdrawn) = (std::mem::take(&mut ledger.told), std::mem::take(&mut ledger.withdrawn));
    let now = ledger.now;
    log.keep(ledger.close(), announced, now)?;
    Ok(Done { answers: answers?, told: vec![], withdrawn })
}

fn with_what_follows(ledger: &mut Ledger<'_, '_>, ask: &Ask, rules: &Rules) -> Result<Refusal> {
    let mut written = one(ledger, ask)?;
    ledger.marks = None;
    if let Ok(done) = &mut written {
        let author_of = |id| ledger.rows.items.get(&id).and_then(Option::as_ref).map(|row| row.author);
        let number = |name: &UserId| ledger.rows.users.get(name).copied().flatten();
        let editor = match done {
            Written::Edited { author, mentions, .. } if !mentions.added.is_empty() => {
                Some((*author, ledger.name(*author)?))
            }
            _ => None,
        };
        let name = |user| editor.clone().filter(|(author, _)| *author == user).map(|(_, name)| name);
        let known = Known { author_of: &author_of, number: &number, name: &name };
        let follows = rules.of_write(ask.write(), done, known);
        if !follows.is_empty() {
            let told = tell(ledger, follows, ask.now())?;
            done.add_told(&told.into_iter().map(|(_, reader)| reader).collect::<Vec<_>>());
        }
    }
    Ok(written)
}

/// Carries out one operation. An error fails the whole call, a refusal only this operation.
fn one(ledger: &mut Ledger<'_, '_>, ask: &Ask) -> Result<Refusal> {
    loop {
        match decide(&ledger.rows, ask, ledger.setup.policy) {
            Ok(plan) => {
                ledger.rows.apply(&plan);
                store::all(ledger, &plan)?;
                ledger.told.extend(announcements(ask, &plan));
                if matches!(ask.write(), Write::Withdraw { .. } | Write::Line(_)) {
                    ledger.withdrawn.extend(plan.outdated());
                }
                return Ok(Ok(plan.answer));
            }
            Err(Stop::Refused(refused)) => return Ok(Err(refused)),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Needs(needs)) => needs.into_iter().try_for_each(|need| load::one(ledger, need))?,
        }
    }
}
