//! An author's class. It counts from the next item on; what stands in the outbox keeps its route.

use feedgate_common::UserId;
use feedgate_common::archive::{Refused, Written};
use feedgate_common::change::Class;

use super::accept::Outcome;
use super::ledger::Ledger;
use super::tables::{Authors, Everyones};

pub(super) fn classify(ledger: &mut Ledger<'_, '_>, name: UserId, class: Class) -> Outcome {
    let author = ledger.intern(&name)?;
    let mut row = ledger.author(author)?;
    let fresh = row.class != class;
    if fresh && row.class == Class::Everyone {
        return Ok(Err(Refused::StaysEveryones(name)));
    }
    if fresh {
        row.class = class;
        ledger.tx.put::<Authors>(&author, &row);
        if class == Class::Everyone {
            ledger.tx.put::<Everyones>(&author, &row.head);
        }
    }
    Ok(Ok(Written::Classified { author, fresh }))
}
