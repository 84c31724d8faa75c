//! What a gateway does besides serving, once, however many ports it serves.
//!
//! ```text
//!   keeper: lease, sessions │ prober: which stores are away │ positions: saved │ wakes that may have been lost
//!   hot: news of authors who are pulled │ touches: inboxes that are read are kept
//! ```

use std::time::Duration;

use futures_util::future::{join, join3};
use tokio::time::{Instant, sleep_until};

use crate::pool::Seat;
use crate::slot::Wake;
use crate::{Gateway, hot, keeper, positions, touches, vitals};

/// Over how long all sessions are woken when any wake may have been lost.
const REREAD: Duration = Duration::from_secs(2);

/// Woken or closed at a time.
const AT_ONCE: usize = 16;

/// Forever. Of several at a time one works, and another goes on when that one ends. Cancel it at any time.
pub(crate) async fn run(gateway: &Gateway) {
    let _alone = gateway.background.lock().await;
    join3(keeper::begin(gateway), vitals::probe(gateway), hot::begin(gateway)).await;
    gateway.begun.cancel();
    join3(
        join(keeper::keep(gateway), vitals::keep_probing(gateway)),
        join(positions::keep_saving(gateway), touches::keep_touching(gateway)),
        join(make_up_for_wakes(gateway), hot::keep_joining(gateway)),
    )
    .await;
}

/// Wakes every session, paced, each time any wake may have been lost.
async fn make_up_for_wakes(gateway: &Gateway) {
    loop {
        gateway.pool.told_missed().await;
        paced(&gateway.pool.seated(), REREAD, |Seat { slot, .. }| slot.wake(Wake::LOOK)).await;
    }
}

/// Does it to each, in order, evenly over `time` but for the last few.
pub(crate) async fn paced<T>(all: &[T], time: Duration, mut each: impl FnMut(&T)) {
    let started = Instant::now();
    for (n, chunk) in all.chunks(AT_ONCE).enumerate() {
        turn(started, time, n * AT_ONCE, all.len()).await;
        chunk.iter().for_each(&mut each);
    }
}

/// Waits for the turn of the `n`th of `all`, which are spread evenly over `time`.
pub(crate) async fn turn(started: Instant, time: Duration, n: usize, all: usize) {
    let due = time.mul_f64(n as f64 / all as f64);
    if !due.is_zero() {
        sleep_until(started + due).await;
    }
}
