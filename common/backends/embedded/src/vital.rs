//! How a store is, as its own threads notice it, where everybody can see it.
//!
//! ```text
//!   well ◀──▶ waits   for something that comes back: room on the disk, a descriptor. It goes on by itself
//!     └──┬──────┘
//!        └──▶ dead    what the disk holds is not known, or a thread has panicked: only a new process can help
//! ```
//!
//! The reasons are told to whoever asks for the store, so they name no path. The log has the rest, at ERROR.

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

/// How often a thread with nothing to do looks whether its store still works, and one that waits whether it can go on.
pub(crate) const LOOK: Duration = Duration::from_millis(250);

/// How often it is counted for how long a thread has been at the same piece of work.
const TICK: Duration = Duration::from_secs(1);

/// A store whose thread has been at one piece of work for so many ticks is not ready.
const SLOW_TICKS: u32 = 5;

/// And for so many, dead: its disk hangs, or the thread waits for another that has died.
const STUCK_TICKS: u32 = 30;

#[derive(Debug, Clone)]
enum State {
    Well,
    Waits(Arc<str>),
    Dead(Arc<str>),
}

/// See the module. One for each thing that can fail by itself.
#[derive(Debug)]
pub(crate) struct Vital {
    /// What the log and the reasons call it.
    name: &'static str,
    state: watch::Sender<State>,
    /// Odd while a thread is at a piece of work; another number for each.
    work: AtomicU64,
    slow: AtomicBool,
}

impl Vital {
    /// Of a store that is well.
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

    /// Whether it waits for something that comes back.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&*self.state.borrow(), State::Waits(_))
    }

    /// It cannot work until something comes back.
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

    /// It works again.
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

    /// It will not work again in this process. The first reason counts.
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

    /// It fails for this reason: it waits if that can pass, else it is dead.
    pub(crate) fn fails(&self, what: &str, error: &io::Error) {
        if is_shortage(error) {
            self.waits(format_args!("{what}: {error}"));
        } else {
            self.dies(format_args!("{what}: {error}"));
        }
    }

    /// A piece of work begins; it ends when the answer is dropped. One thread at a time.
    pub(crate) fn working(&self) -> Working<'_> {
        self.work.fetch_add(1, Ordering::Relaxed);
        Working(self)
    }

    /// Waits until it is dead, and answers why. Somebody must, for a thread that hangs to be noticed. Cancel safe.
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
            // Ticks and not time: a process that is stopped for a while has not hung.
            let now = self.work.load(Ordering::Relaxed);
            ticks = if now % 2 == 1 && now == seen { ticks + 1 } else { 0 };
            seen = now;
            self.slow.store(ticks >= SLOW_TICKS, Ordering::Relaxed);
            if ticks >= STUCK_TICKS {
                self.dies(format_args!("the disk has not answered for {STUCK_TICKS} s"));
            }
        }
    }

    /// Starts a thread of the store. If it panics, the store is dead.
    ///
    /// # Errors
    /// The system's, if it gives no thread.
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

/// See [`Vital::working`].
pub(crate) struct Working<'a>(&'a Vital);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.work.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether what failed for this reason may succeed later, with nothing broken meanwhile.
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
