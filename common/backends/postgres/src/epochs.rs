//! Epochs: one counter for all nodes.
//!
//! ```text
//!   asked while a round is under way ─▶ wait ─▶ the next round takes a number for each of them at once
//! ```
//!
//! Invariant: a number is taken from the store after it was asked for and is durable before it is given, so it is greater
//! than every one that any node had given by then. A node must not keep a block in reserve: another may have gone on.

use feedgate_common::Epoch;
use feedgate_common::error::Result;
use parking_lot::Mutex;
use sqlx::PgConnection;
use tokio::sync::oneshot;

use crate::pool::{Pool, work};
use crate::rows;

const TAKE: &str = "UPDATE counters SET value = value + $1 WHERE name = 'epoch' RETURNING value";

/// See the module.
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
                // Whoever has gone away leaves a gap.
                _ = asker.send(taken.clone().map(|first| Epoch(first + nth)));
            }
            drop(round);
            // Only if a round that had this asker in it was cancelled is there no answer yet.
            if let Ok(given) = answer.try_recv() {
                return given;
            }
        }
    }
}

/// The first of as many numbers.
async fn take(connection: &mut PgConnection, askers: usize) -> sqlx::Result<u64> {
    let many = rows::limit(askers);
    let last: i64 = sqlx::query_scalar(TAKE).bind(many).fetch_one(connection).await?;
    rows::count_of(last - many + 1)
}
