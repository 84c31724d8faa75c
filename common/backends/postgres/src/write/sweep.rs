//! Removes idempotency keys whose time is over, and what stood around deleted items: a few at a time, after a write.
//!
//! An expired key counts as absent before it is removed. Nobody sees reactions to a deleted item or comments on it, and
//! nothing joins a line of notifications whose item was deleted. So the sweep only frees disk space, and its failure
//! does no harm.

use std::sync::atomic::{AtomicI64, Ordering};

use feedgate_common::Millis;

use crate::pool::{Pool, work};
use crate::reactions;

/// How long to wait after a sweep that found nothing more to remove, in ms.
const PAUSE_MS: i64 = 60_000;

/// The most keys that one sweep removes.
const SWEEP_MAX: u64 = 512;

/// Removes expired keys. Those that a writer has locked are left to the next sweep.
const FORGET: &str = "
WITH over AS (
    SELECT author, key FROM retries WHERE expires <= $1 ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM retries r USING over WHERE r.author = over.author AND r.key = over.key";

/// When the next sweep may run.
#[derive(Default)]
pub(crate) struct Sweep {
    not_before: AtomicI64,
}

impl Sweep {
    pub(crate) async fn run(&self, pool: &Pool, now: Millis) {
        let due = self.not_before.load(Ordering::Relaxed);
        let next = now.saturating_add(PAUSE_MS);
        if now < due || self.not_before.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        let max = SWEEP_MAX.cast_signed();
        let forget = sqlx::query(FORGET).bind(now).bind(max);
        match pool.write(work!(|connection| forget.execute(connection))).await {
            Ok(done) if done.rows_affected() == SWEEP_MAX => self.not_before.store(now, Ordering::Relaxed),
            Ok(_) => {}
            Err(error) => tracing::debug!("expired idempotency keys stay for now: {error}"),
        }
        match reactions::sweep(pool, now).await {
            Ok(true) => self.not_before.store(now, Ordering::Relaxed),
            Ok(false) => {}
            Err(error) => tracing::debug!("what stood around deleted items stays for now: {error}"),
        }
    }
}
