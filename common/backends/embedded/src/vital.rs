//! The state of a store, kept by its threads and visible to everyone.
//!
//! ```text
//!   well ◀──▶ waits   for something that comes back: room on the disk, a descriptor. It goes on by itself
//!     └──┬──────┘
//!        └──▶ dead    what the disk holds is not known, or a thread has panicked: only a new process can help
//! ```
//!
//! The reasons are shown to everyone who asks for the store, so they name no path. The log has the details, at ERROR.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use feedgate_common::StoreError;
use feedgate_common::error::Result;
use rustix::io::Errno;
use tokio::sync::watch;

/// How often an idle thread checks that its store still works, and how often a waiting thread checks whether it can go
/// on.
pub(crate) const LOOK: Duration = Duration::from_millis(250);

/// How often a task checks whether a thread is still at the same piece of work.
const TICK: Duration = Duration::from_secs(1);

/// A store is not ready when one of its threads has been at the same piece of work for this many ticks.
const SLOW_TICKS: u32 = 5;

/// A store is dead when one of its threads has been at the same piece of work for this many ticks: its disk hangs, or
/// the thread waits for a thread that has died.
const STUCK_TICKS: u32 = 30;

#[derive(Debug, Clone)]
enum State {
    Well,
    Waits(Arc<str>),
    Dead(Arc<str>),
}

/// The state of one store, or of another part that can fail by itself.
#[derive(Debug)]
pub(crate) struct Vital {
    /// The name of the store in the log and in reasons.
    name: &'static str,
    state: watch::Sender<State>,
    /// A counter that is odd while a thread is at a piece of work, and that changes with each piece.
    work: AtomicU64,
    slow: AtomicBool,
}

impl Vital {
    /// The state of a store that works, under the name `name`.
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            state: watch::Sender::new(State::Well),
            work: AtomicU64::new(0),
            slow: AtomicBool::new(false),
        })
    }

    /// # Errors
    /// `Down` with the reason, if the store cannot work now.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.state.borrow() {
            State::Waits(why) | State::Dead(why) => Err(StoreError::Down(why.clone())),
            State::Well if self.slow.load(Ordering::Relaxed) => {
                Err(StoreError::down(format_args!("{}: the disk has not answered for seconds", self.name)))
            }
            State::Well => Ok(()),
        }
    }

    /// # Errors
    /// `Down` with the reason, if the store is dead.
    pub(crate) fn check_alive(&self) -> Result<()> {
        match &*self.state.borrow() {
            State::Dead(why) => Err(StoreError::Down(why.clone())),
            State::Well | State::Waits(_) => Ok(()),
        }
    }

    /// Whether the store waits for something that can come back, such as room on the disk.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&*self.state.borrow(), State::Waits(_))
    }

    /// Notes that the store cannot work until something comes back, and logs why. A dead store stays dead.
    pub(crate) fn waits(&self, why: impl std::fmt::Display) {
        let why = format!("{}: {why}; it goes on by itself once that is over", self.name);
        self.state.send_if_modified(|state| {
            let news = matches!(state, State::Well);
            if news {
                tracing::error!("{why}");
            }
            if !matches!(state, State::Dead(_)) {
                *state = State::Waits(why.into());
            }
            news
        });
    }

    /// Notes that a store that waited works again. A dead store stays dead.
    pub(crate) fn is_well(&self) {
        self.state.send_if_modified(|state| {
            let news = matches!(state, State::Waits(_));
            if news {
                tracing::info!("{}: works again", self.name);
                *state = State::Well;
            }
            news
        });
    }

    /// Notes that the store will not work again in this process, and logs why. Later reasons are dropped.
    pub(crate) fn dies(&self, why: impl std::fmt::Display) {
        let why = format!("{}: {why}; the process has to start again", self.name);
        self.state.send_if_modified(|state| {
            let news = !matches!(state, State::Dead(_));
            if news {
                tracing::error!("{why}");
                *state = State::Dead(why.into());
            }
            news
        });
    }

    /// Notes that `what` has failed: the store waits if the reason can pass, else it is dead.
    pub(crate) fn fails(&self, what: &str, error: &io::Error) {
        if is_shortage(error) {
            self.waits(format_args!("{what}: {error}"));
        } else {
            self.dies(format_args!("{what}: {error}"));
        }
    }

    /// Notes that a thread begins a piece of work. The work ends when the answer is dropped. Only one thread at a time
    /// may call this.
    pub(crate) fn working(&self) -> Working<'_> {
        self.work.fetch_add(1, Ordering::Relaxed);
        Working(self)
    }

    /// Waits until the store is dead, and answers why. Somebody must await this future, since only this future notices
    /// a thread that hangs. The future may be dropped and made again.
    pub(crate) async fn died(&self) -> Arc<str> {
        let mut changes = self.state.subscribe();
        let (mut seen, mut ticks) = (0, 0);
        loop {
            let dead = changes.wait_for(|state| matches!(state, State::Dead(_)));
            if let Ok(Ok(state)) = tokio::time::timeout(TICK, dead).await
                && let State::Dead(why) = &*state
            {
                return why.clone();
            }
            // This counts ticks and not time, so that a process that was stopped for a while does not look like a
            // thread that hangs.
            let now = self.work.load(Ordering::Relaxed);
            ticks = if now % 2 == 1 && now == seen { ticks + 1 } else { 0 };
            seen = now;
            self.slow.store(ticks >= SLOW_TICKS, Ordering::Relaxed);
            if ticks >= STUCK_TICKS {
                self.dies(format_args!("the disk has not answered for {STUCK_TICKS} s"));
            }
        }
    }

    /// Starts a thread of the store. The store is dead if the thread panics.
    ///
    /// # Errors
    /// The system's error, if it cannot start a thread.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        thread: &'static str,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let vital = self.clone();
        std::thread::Builder::new().name(thread.into()).spawn(move || {
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                vital.dies(format_args!("its thread {thread} has panicked"));
            }
        })
    }
}

/// A piece of work of a thread, which ends when this is dropped.
pub(crate) struct Working<'a>(&'a Vital);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.work.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether a failure with this error may pass by itself: the disk is full, or memory or file descriptors have run out.
fn is_shortage(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::OutOfMemory];
    kinds.contains(&error.kind()) || [Errno::MFILE, Errno::NFILE].map(Some).contains(&Errno::from_io_error(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(vital: &Vital) -> String {
        vital.check().unwrap_err().to_string()
    }

    #[test]
    fn a_shortage_passes_and_any_other_failure_is_the_end() {
        let vital = Vital::new("the log");
        vital.fails("it cannot be written", &Errno::NOSPC.into());
        assert!(why(&vital).starts_with("the log: it cannot be written: No space left on device"), "{}", why(&vital));
        assert!(vital.is_waiting() && vital.check_alive().is_ok());
        vital.is_well();
        assert!(vital.check().is_ok());
        for shortage in [Errno::MFILE, Errno::NFILE, Errno::DQUOT, Errno::NOMEM] {
            vital.fails("it cannot be written", &shortage.into());
            assert!(vital.check_alive().is_ok(), "{shortage}");
        }
        vital.fails("it cannot be synced", &Errno::IO.into());
        vital.is_well();
        vital.waits("a moment");
        assert!(why(&vital).contains("cannot be synced") && vital.check_alive().is_err(), "{}", why(&vital));
    }

    #[tokio::test]
    async fn a_thread_that_panics_is_the_end() {
        let vital = Vital::new("the log");
        vital.spawn("writer", || panic!("as this test wants it")).unwrap();
        assert!(vital.died().await.contains("its thread writer has panicked"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_hangs_is_the_end_and_one_that_goes_on_slowly_is_not() {
        let vital = Vital::new("the log");
        let slow = async {
            for _ in 0..10 {
                let _working = vital.working();
                tokio::time::sleep(TICK * (STUCK_TICKS - 5)).await;
            }
        };
        tokio::select! {
            why = vital.died() => panic!("{why}"),
            () = slow => {}
        }
        let _working = vital.working();
        let (seen, died) = tokio::join!(
            async {
                tokio::time::sleep(TICK * (SLOW_TICKS + 5)).await;
                vital.check()
            },
            vital.died()
        );
        assert!(seen.unwrap_err().to_string().contains("has not answered for seconds"));
        assert!(died.contains("for 30 s"), "{died}");
    }
}
