//! Follows on and off. Asking again changes nothing.

use feedgate_common::UserId;
use feedgate_common::archive::Written;

use super::accept::Outcome;
use super::held::Held;
use super::ledger::Ledger;

pub(super) fn follow(ledger: &mut Ledger<'_, '_>, reader: &UserId, author: &UserId) -> Outcome {
    set(ledger, reader, author, true)
}

pub(super) fn unfollow(ledger: &mut Ledger<'_, '_>, reader: &UserId, author: &UserId) -> Outcome {
    set(ledger, reader, author, false)
}

fn set(ledger: &mut Ledger<'_, '_>, reader: &UserId, author: &UserId, follows: bool) -> Outcome {
    let (reader, author) = (ledger.intern(reader)?, ledger.intern(author)?);
    let mut held = Held::of(ledger, reader, author)?;
    // Whoever follows with everyone may ask to be listed, too.
    let fresh = held.row.follows != follows || (follows && held.row.listed == 0);
    held.row.follows = follows;
    let edge = if fresh { held.keep(ledger)?.0 } else { held.before };
    Ok(Ok(Written::Edge { reader, author, edge, fresh }))
}
