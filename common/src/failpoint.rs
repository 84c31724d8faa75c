//! Named points where a test kills the process.
//!
//! In a build with debug assertions, `FEEDGATE_FAILPOINT=name` or `name:3` makes the process send SIGKILL to itself
//! when it passes that point for the first or third time. This is a real crash: no destructor runs, and no buffer is
//! flushed. In a release [`hit`] does nothing.

/// The names of all failpoints, in the order in which a post passes them.
pub const NAMES: &[&str] = &[
    "archive-committed",
    "job-taken",
    "step-decided",
    "push-noted",
    "step-logged",
    "step-answered",
    "bucket-finished",
    "event-finished",
    "edge-step-done",
    "news-read",
    "news-taken",
    "build-begun",
    "build-swapped",
    "inbox-snapshot-written",
    "catch-up-batch",
    "push-taken",
    "push-called",
    "erasure-planned",
    "erasure-carried-out",
];

/// Kills this process if the environment variable names this point and its count is reached.
#[cfg(debug_assertions)]
pub fn hit(name: &'static str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static ARMED: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();
    let armed = ARMED.get_or_init(|| {
        let spec = std::env::var("FEEDGATE_FAILPOINT").ok()?;
        let (name, count) = spec.split_once(':').unwrap_or((&spec, "1"));
        assert!(NAMES.contains(&name), "no failpoint {name:?}; there are {NAMES:?}");
        let count = count.parse().unwrap_or_else(|_| panic!("FEEDGATE_FAILPOINT: {count:?} is not a count"));
        Some((name.to_owned(), AtomicU64::new(count)))
    });
    if let Some((target, left)) = armed
        && target == name
        && left.fetch_sub(1, Ordering::SeqCst) == 1
    {
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::KILL).expect("a process may kill itself");
        loop {
            std::thread::park();
        }
    }
}

/// Does nothing: a release has no failpoints.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn hit(_name: &'static str) {}
