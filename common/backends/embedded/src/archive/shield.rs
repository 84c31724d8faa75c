//! Mutes, hides and blocks: up and down. Asking again changes nothing.

use feedgate_common::archive::Written;
use feedgate_common::error::Result;
use feedgate_common::graph::{Shield, Shields, listed_at};
use feedgate_common::{Millis, UserId, UserNo};

use super::accept::Outcome;
use super::held::Held;
use super::ledger::Ledger;
use super::tables::{FollowLine, ShieldList, ShieldsUp};
use crate::view::Read;

pub(super) fn set(ledger: &mut Ledger<'_, '_>, user: &UserId, other: &UserId, (shield, up): (Shield, bool)) -> Outcome {
    let since = ledger.now;
    set_as(ledger, (user, other), (shield, up), since)
}

/// The same, of a shield that went up at a time of its own.
pub(super) fn set_as(
    ledger: &mut Ledger<'_, '_>,
    (user, other): (&UserId, &UserId),
    (shield, up): (Shield, bool),
    since: Millis,
) -> Outcome {
    let (user, other) = (ledger.intern(user)?, ledger.intern(other)?);
    let fresh = list(ledger, (user, other), (shield, up), since)?;
    let mut edges = vec![];
    if fresh {
        let (as_reader, as_author) = shield.bits();
        for (bit, reader, author) in [(as_reader, user, other), (as_author, other, user)] {
            if bit != Shields::default() && change(ledger, (reader, author), (bit, up))? {
                edges.push((reader, author));
            }
        }
    }
    Ok(Ok(Written::Shielded { edges, fresh }))
}

/// Writes that it is up, or no longer; false if it already was so.
fn list(
    ledger: &mut Ledger<'_, '_>,
    (user, other): (UserNo, UserNo),
    (shield, up): (Shield, bool),
    since: Millis,
) -> Result<bool> {
    let key = (user, shield, other);
    match (ledger.tx.get::<ShieldsUp>(&key)?, up) {
        (None, true) => {
            let number = listed_at(since, ledger.new_generation());
            ledger.tx.put::<ShieldsUp>(&key, &number);
            ledger.tx.put::<ShieldList>(&(user, shield, number), &FollowLine { user: other, since });
            Ok(true)
        }
        (Some(number), false) => {
            ledger.tx.remove::<ShieldsUp>(&key);
            ledger.tx.remove::<ShieldList>(&(user, shield, number));
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// One bit of one edge; whether the edge's effect has changed.
fn change(ledger: &mut Ledger<'_, '_>, (reader, author): (UserNo, UserNo), (bit, up): (Shields, bool)) -> Result<bool> {
    let mut held = Held::of(ledger, reader, author)?;
    held.row.shields = held.row.shields.with(bit, up);
    Ok(held.keep(ledger)?.1)
}
