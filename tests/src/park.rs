//! The smallest executor: polls one future on this thread and sleeps until it is woken.
//!
//! A simulation that decides itself who runs next must not share its futures with a runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls `future` until it is ready or `stop` says so after a poll that left it pending.
pub fn poll_until<F: Future + ?Sized>(mut future: Pin<&mut F>, stop: impl Fn() -> bool) -> Poll<F::Output> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Poll::Ready(output);
        }
        if stop() {
            return Poll::Pending;
        }
        thread::park();
    }
}

/// Runs `future` to its end.
pub fn block_on<F: Future>(future: F) -> F::Output {
    match poll_until(std::pin::pin!(future), || false) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("polled until it was ready"),
    }
}
