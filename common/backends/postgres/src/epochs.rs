//! Epochs are drawn from one counter for all nodes.
//!
//! ```text
//!   asked while a round is under way ─▶ wait ─▶ the next round takes a number for each of them at once
//! ```
//!
//! Invariant: a number is taken from the store after it was asked for, and is durable before it is given. So it is
//! greater than every number that any node had given by then. A node must not keep numbers in reserve, since another
//! node may have given greater ones.

use std::sync::Arc;

use feedgate_common::Epoch;
use feedgate_common::error::Result;
use sqlx::PgConnection;

use crate::groups::{Groups, UpTo, Weight};
use crate::pool::{self, Pool, work};
use crate::rows;

const TAKE: &str = "UPDATE counters SET value = value + $1 WHERE name = 'epoch' RETURNING value";

/// How many callers may wait for a round.
const CALLS_MAX: usize = 4096;

/// How many callers one round serves.
const ROUND_MAX: usize = 1000;

type Round = UpTo<ROUND_MAX, (), Epoch>;

impl Weight for () {}

/// Callers that wait for an epoch, and the task that takes the numbers. Callers that wait together share one write.
pub(crate) struct Epochs(Groups<(), Epoch>);

impl Epochs {
    /// Starts the task on the current runtime.
    pub(crate) fn start(pool: Arc<Pool>) -> Self {
        Self(Groups::start(1, CALLS_MAX, move |round: Round| {
            let pool = pool.clone();
            async move {
                let askers = round.calls.len();
                let first = pool.write(work!(|connection| take(connection, askers))).await;
                let numbers = first.map(|first| (first..).take(askers).map(Epoch).collect());
                round.answer(numbers, |(), epoch| Ok(epoch));
            }
        }))
    }

    /// Takes the next number. Fails if the server does, or does not answer in time.
    pub(crate) async fn next(&self) -> Result<Epoch> {
        self.0.ask(()).await.unwrap_or_else(|| Err(pool::no_reply()))
    }
}

/// Takes as many numbers as there are askers, in one durable write. Answers the first of them.
async fn take(connection: &mut PgConnection, askers: usize) -> sqlx::Result<u64> {
    let many = rows::limit(askers);
    let last: i64 = sqlx::query_scalar(TAKE).bind(many).fetch_one(connection).await?;
    rows::count_of(last - many + 1)
}
