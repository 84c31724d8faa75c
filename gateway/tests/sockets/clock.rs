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
            settle().await;
        }
    }
}

/// Lets the tasks of this runtime work, and the threads on which it reads stores. A call to a store may take two
/// seconds of the clock. Without a rest, the clock would pass these before a thread of a busy machine had its turn.
async fn settle() {
    for _ in 0..10 {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        // This thread sleeps until another thread of the runtime has run.
        tokio::task::spawn_blocking(|| ()).await.unwrap();
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        tokio::time::resume();
        self.0 = None;
    }
}
