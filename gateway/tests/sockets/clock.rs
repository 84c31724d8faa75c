//! Time that goes only as told to, while sockets and stores work as ever.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// The clock stands until this is dropped. Only for a runtime of one thread.
pub(crate) struct Clock(Option<Sender<()>>);

impl Clock {
    pub(crate) fn stop() -> Self {
        let (stays, gone) = channel::<()>();
        // As long as a blocking task runs, the clock of an idle runtime does not go on by itself.
        tokio::task::spawn_blocking(move || gone.recv());
        tokio::time::pause();
        Self(Some(stays))
    }

    /// Moves the clock by `secs` and 4 ms, a second at a time, so that whatever is due in between happens in between.
    ///
    /// The 4 ms are there because a timer fires in the first whole millisecond after it is due. Without the two at the
    /// beginning, a timer of one second that was set within the last millisecond fires only after the second step.
    pub(crate) async fn advance(&self, secs: u64) {
        let seconds = std::iter::repeat_n(1000, secs as usize);
        for step in std::iter::once(2).chain(seconds).chain([2]) {
            tokio::time::advance(Duration::from_millis(step)).await;
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            // This thread rests until another has run, so that the threads of the stores run too.
            tokio::task::spawn_blocking(|| ()).await.unwrap();
        }
    }

    /// Moves the clock until `work` is done, and gives what it gives. For what comes by a look now and then: on a busy
    /// machine a store answers one look too late, as the clock sees it, and only a later look succeeds.
    ///
    /// # Panics
    /// If `work` is not done after an hour by this clock.
    #[track_caller]
    pub(crate) fn until<T>(&self, work: impl Future<Output = T>) -> impl Future<Output = T> {
        let caller = std::panic::Location::caller();
        async move {
            tokio::select! {
                biased;
                done = work => done,
                () = self.advance(3600) => panic!("{caller}: did not happen within an hour"),
            }
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        tokio::time::resume();
        self.0 = None;
    }
}
