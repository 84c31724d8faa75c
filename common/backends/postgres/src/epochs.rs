//! Epochs are drawn from one counter for all nodes.
//!
//! ```text
//!   asked while a round is under way ─▶ wait ─▶ the next round takes a number for each of them at once
//! ```
//!
//! Invariant: a number is taken from the store after it was asked for, and is durable before it is given. So it is
//! greater than every number that any node had given by then. A node must not keep numbers in reserve, since another
//! node may have given greater ones.

use feedgate_common::Epoch;
use feedgate_common::error::Result;
use parking_lot::Mutex;
use sqlx::PgConnection;
use tokio::sync::oneshot;

use crate::pool::{Pool, work};
use crate::rows;

const TAKE: &str = "UPDATE counters SET value = value + $1 WHERE name = 'epoch' RETURNING value";

/// Callers that wait for an epoch. Those that wait together share one write.
#[derive(Default)]
pub(crate) struct Epochs {
    waiting: Mutex<Vec<oneshot::Sender<Result<Epoch>>>>,
    round: tokio::sync::Mutex<()>,
}

impl Epochs {
    pub(crate) async fn next(&self, pool: &Pool) -> Result<Epoch> {
        loop {
            let (asker, mut answer) = oneshot::channel();
            self.waiting.lock().push(asker);
            let round = self.round.lock().await;
            if let Ok(given) = answer.try_recv() {
                return given;
            }
            let askers = std::mem::take(&mut *self.waiting.lock());
            let many = askers.len();
            let taken = pool.write(work!(|connection| take(connection, many))).await;
            for (asker, nth) in askers.into_iter().zip(0..) {
                // If the caller has gone away, its number is never used.
                _ = asker.send(taken.clone().map(|first| Epoch(first + nth)));
            }
            drop(round);
            // There is no answer yet only if the round that had taken this call was cancelled. Then the call is made
            // again.
            if let Ok(given) = answer.try_recv() {
                return given;
            }
        }
    }
}

/// Takes as many numbers as there are askers, in one durable write. Answers the first of them.
async fn take(connection: &mut PgConnection, askers: usize) -> sqlx::Result<u64> {
    let many = rows::limit(askers);
    let last: i64 = sqlx::query_scalar(TAKE).bind(many).fetch_one(connection).await?;
    rows::count_of(last - many + 1)
}
