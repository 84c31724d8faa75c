//! Revocations: a row for each user, and a list of the users by the number of their newest revocation.

use std::ops::Bound::{Excluded, Unbounded};

use feedgate_common::archive::Revocation;
use feedgate_common::error::Result;
use feedgate_common::{Millis, UserNo};

use super::tables::{RevocationList, Revoked, RevokedRow};
use crate::view::{Read, Tx, View};

/// Puts the user at the end of the list, with the later of `before` and the time that is stored.
pub(super) fn revoke(tx: &mut Tx<'_>, user: UserNo, before: Millis) -> Result<()> {
    let number = last(tx)? + 1;
    let older = tx.get::<Revoked>(&user)?;
    if let Some(older) = older {
        tx.remove::<RevocationList>(&older.number);
    }
    let before = older.map_or(before, |older| older.before.max(before));
    tx.put::<Revoked>(&user, &RevokedRow { number, before });
    tx.put::<RevocationList>(&number, &user);
    Ok(())
}

/// The number of the newest revocation; 0 if there is none.
pub(super) fn last(from: &impl Read) -> Result<u64> {
    let newest = from.scan::<RevocationList>(..).next_back();
    Ok(newest.transpose()?.map_or(0, |(number, _)| number))
}

/// The revocations beyond `after`, by number, at most `limit`.
pub(super) fn beyond(view: &View, after: u64, limit: usize) -> Result<Vec<Revocation>> {
    let lines = view.scan::<RevocationList>((Excluded(after), Unbounded)).take(limit);
    let lines = lines.map(|line| {
        let (number, user) = line?;
        Ok(view.get::<Revoked>(&user)?.map(|row| Revocation { number, user, before: row.before }))
    });
    lines.filter_map(Result::transpose).collect()
}
