//! One call of `write`: its operations in order, in one transaction.

use feedgate_common::archive::{Audience, Refused, Write, Written};
use feedgate_common::error::Result;
use feedgate_common::import::Import;
use feedgate_common::{ItemId, Millis, UserId};

use super::ledger::{Ledger, Setup};
use super::tables::Fingerprint;
use super::users::KnownUsers;
use super::{classify, edit, follow, import, publish, shield};
use crate::view::Tx;

/// What one operation becomes: an error fails the whole call, a refusal only the operation.
pub(super) type Outcome = Result<std::result::Result<Written, Refused>>;

/// An operation, with what could be worked out before it reached the writer.
pub(super) struct Ask {
    write: Write,
    /// All zero but for a publish.
    fingerprint: Fingerprint,
}

impl Ask {
    /// The item whose cached form it may make old.
    pub(super) fn changes_item(&self) -> Option<ItemId> {
        match self.write {
            Write::Edit { item, .. } | Write::Delete { item, .. } => Some(item),
            Write::Import(Import::Delete { item }) => Some(item),
            Write::Publish(_)
            | Write::Import(_)
            | Write::Follow { .. }
            | Write::Unfollow { .. }
            | Write::Shield { .. }
            | Write::Classify { .. } => None,
        }
    }
}

/// Hashes payloads on the caller's thread, not on the writer's; and how many bytes they hold.
pub(super) fn prepare(writes: Vec<Write>) -> (Vec<Ask>, usize) {
    let mut bytes = 0;
    let ask = |write| {
        bytes += size_of::<Ask>();
        let mut fingerprint = Fingerprint::default();
        match &write {
            Write::Publish(publish) | Write::Import(Import::Item { publish, .. }) => {
                fingerprint = publish.fingerprint();
                bytes += publish.body.get().len();
                if let Audience::Users(users) = &publish.audience {
                    bytes += users.len() * size_of::<UserId>();
                }
            }
            Write::Edit { body, .. } => bytes += body.get().len(),
            Write::Delete { .. }
            | Write::Import(_)
            | Write::Follow { .. }
            | Write::Unfollow { .. }
            | Write::Shield { .. }
            | Write::Classify { .. } => {}
        }
        Ask { write, fingerprint }
    };
    let asks = writes.into_iter().map(ask).collect();
    (asks, bytes)
}

/// Carries all of them out; each sees what those before it did.
pub(super) fn all(
    tx: &mut Tx<'_>,
    users: &KnownUsers,
    setup: Setup,
    asks: Vec<Ask>,
    now: Millis,
) -> Result<Vec<std::result::Result<Written, Refused>>> {
    let mut ledger = Ledger::open(tx, users, setup, now)?;
    let written = asks.into_iter().map(|ask| one(&mut ledger, ask)).collect();
    ledger.close();
    written
}

fn one(ledger: &mut Ledger<'_, '_>, ask: Ask) -> Outcome {
    match ask.write {
        Write::Publish(wanted) => publish::publish(ledger, wanted, ask.fingerprint),
        Write::Edit { item, body, if_version } => edit::edit(ledger, item, &body, if_version),
        Write::Delete { item, if_version } => edit::delete(ledger, item, if_version),
        Write::Follow { reader, author } => follow::follow(ledger, &reader, &author),
        Write::Unfollow { reader, author } => follow::unfollow(ledger, &reader, &author),
        Write::Shield { user, other, shield, up } => shield::set(ledger, &user, &other, (shield, up)),
        Write::Import(line) => import::import(ledger, line, ask.fingerprint),
        Write::Classify { author, class } => classify::classify(ledger, author, class),
    }
}
