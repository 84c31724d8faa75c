//! Mutes, hides and blocks: up and down. Asking again changes nothing.

use feedgate_common::archive::Written;
use feedgate_common::error::Result;
use feedgate_common::graph::{Shield, Shields};
use feedgate_common::{UserId, UserNo};

use super::accept::Outcome;
use super::held::Held;
use super::ledger::Ledger;
use super::tables::{FollowLine, ShieldList, ShieldsUp};
use crate::view::Read;

pub(super) fn set(ledger: &mut Ledger<'_, '_>, user: &UserId, other: &UserId, (shield, up): (Shield, bool)) -> Outcome {
    let (user, other) = (ledger.intern(user)?, ledger.intern(other)?);
    let fresh = list(ledger, user, other, (shield, up))?;
    let mut edges = vec![];
    if fresh {
        let (as_reader, as_author) = shield.bits();
        for (bit, reader, author) in [(as_reader, user, other), (as_author, other, user)] {
            if bit != Shields::default() && change(ledger, reader, author, (bit, up))? {
                edges.push((reader, author));
            }
        }
    }
    Ok(Ok(Written::Shielded { edges, fresh }))
}

/// Writes that it is up, or no longer; false if it already was so.
fn list(ledger: &mut Ledger<'_, '_>, user: UserNo, other: UserNo, (shield, up): (Shield, bool)) -> Result<bool> {
    let key = (user, shield, other);
    match (ledger.tx.get::<ShieldsUp>(&key)?, up) {
        (None, true) => {
            let number = ledger.new_generation();
            ledger.tx.put::<ShieldsUp>(&key, &number);
            ledger.tx.put::<ShieldList>(&(user, shield, number), &FollowLine { user: other, since: ledger.now });
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
fn change(ledger: &mut Ledger<'_, '_>, reader: UserNo, author: UserNo, (bit, up): (Shields, bool)) -> Result<bool> {
    let mut held = Held::of(ledger, reader, author)?;
    held.row.shields = held.row.shields.with(bit, up);
    Ok(held.keep(ledger)?.1)
}
