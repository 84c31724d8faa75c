//! Calls that finish events at the same time share statements.
//!
//! Invariant: a call is answered with what stays outstanding of its own events. If a statement fails, each of its calls
//! gets the error, and may finish its events again.

use std::sync::Arc;

use feedgate_common::archive::Event;
use feedgate_common::error::Result;

use crate::events;
use crate::groups::{self, Groups, UpTo};
use crate::pool::{self, Pool, work};

/// How many groups are carried out at once. Two groups that finish events of the same author wait for each other.
const GROUPS: usize = 2;

/// A group takes no further call once it has this many events.
const EVENTS_MAX: usize = 256;

/// How many calls may wait for a group; further calls wait for a place.
const CALLS_MAX: usize = 16 * 1024;

type Call = groups::Call<Vec<Event>, Vec<Event>>;

/// The calls that share statements.
type Group = UpTo<EVENTS_MAX, Vec<Event>, Vec<Event>>;

async fn carry_out(pool: &Pool, calls: Vec<Call>) {
    let all: Vec<Event> = calls.iter().flat_map(|call| call.asked.iter().copied()).collect();
    let all = &all[..];
    let stay = pool.write(work!(|connection| events::finish(connection, all))).await;
    for call in calls {
        let answer = match &stay {
            Ok(stay) => Ok(stay.iter().filter(|event| is_one_of(event, &call.asked)).copied().collect()),
            Err(error) => Err(error.clone()),
        };
        call.answer(answer);
    }
}

/// Whether the outbox of an event that stays outstanding is also the outbox of an event in `asked`.
fn is_one_of(stays: &Event, asked: &[Event]) -> bool {
    let Event::Outbox { author: stays, .. } = stays else { return false };
    asked.iter().any(|event| matches!(event, Event::Outbox { author, .. } if author == stays))
}

/// The calls of this process that finish events, and the tasks that carry them out.
pub(crate) struct Finishing(Groups<Vec<Event>, Vec<Event>>);

impl Finishing {
    /// Starts the tasks on the current runtime.
    pub(crate) fn start(pool: Arc<Pool>) -> Self {
        Self(Groups::start(GROUPS, CALLS_MAX, move |group: Group| {
            let pool = pool.clone();
            async move { carry_out(&pool, group.calls).await }
        }))
    }

    /// Finishes events, as [`Events::finish`](feedgate_common::archive::Events::finish) says.
    pub(crate) async fn finish(&self, events: &[Event]) -> Result<Vec<Event>> {
        self.0.ask(events.to_vec()).await.unwrap_or_else(|| Err(pool::no_reply()))
    }
}
