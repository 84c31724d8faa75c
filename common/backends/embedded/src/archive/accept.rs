//! One call of `write`: its operations in order, in one transaction. [`feedgate_common::accept`] decides what becomes
//! of each. A row is loaded when a decision needs it, and a plan is stored at once.

use feedgate_common::accept::{Ask, Refusal, Stop, announcement, decide};
use feedgate_common::archive::Write;
use feedgate_common::error::Result;
use feedgate_common::import::Import;
use feedgate_common::{ItemId, Millis};

use super::announcements::Log;
use super::ledger::{Ledger, Setup};
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

/// Carries out all operations in order; each sees what those before it did.
pub(super) fn all(
    tx: &mut Tx<'_>,
    (users, log): (&KnownUsers, &Log),
    setup: Setup,
    asks: &[Ask],
    now: Millis,
) -> Result<Vec<Refusal>> {
    let mut ledger = Ledger::open(tx, users, setup, now)?;
    let written = asks.iter().map(|ask| one(&mut ledger, ask)).collect();
    let told = std::mem::take(&mut ledger.told);
    ledger.close();
    log.keep(tx, told, now)?;
    written
}

/// Carries out one operation. An error fails the whole call, a refusal only this operation.
fn one(ledger: &mut Ledger<'_, '_>, ask: &Ask) -> Result<Refusal> {
    loop {
        match decide(&ledger.rows, ask, ledger.setup.pull_above) {
            Ok(plan) => {
                ledger.rows.apply(&plan);
                store::all(ledger, &plan)?;
                ledger.told.extend(announcement(ask, &plan));
                return Ok(Ok(plan.answer));
            }
            Err(Stop::Refused(refused)) => return Ok(Err(refused)),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Needs(needs)) => needs.into_iter().try_for_each(|need| load::one(ledger, need))?,
        }
    }
}
