//! Passes what fjall logs on to `tracing`. Only in its log does fjall tell which of its files is damaged, and why one
//! of its threads has failed.

use std::io;

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;

/// What fjall logged last about a failed thread of its own, of any store in this process.
static THREAD_FAILED: Mutex<Option<String>> = Mutex::new(None);

/// The two parts of the line in which fjall reports a failed thread. The error follows them, in its `Debug` form.
const FAILED: (&str, &str) = ("Worker #", "crashed: ");

/// Why a thread of fjall has failed since the last call of this function; `None` if no reason is known. The store
/// itself only answers that a thread has failed.
pub(crate) fn why_a_thread_failed() -> Option<io::Error> {
    cause(&THREAD_FAILED.lock().take()?)
}

/// The system's error in a text such as `Io(Os { code: 28, … })`, however deep the number is nested.
fn cause(said: &str) -> Option<io::Error> {
    let (_, code) = said.split_once("Os { code: ")?;
    let digits = code.find(|c: char| !c.is_ascii_digit())?;
    code[..digits].parse().ok().map(io::Error::from_raw_os_error)
}

struct Bridge;

impl Log for Bridge {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        metadata.level() <= Level::Warn && (target.starts_with("fjall") || target.starts_with("lsm_tree"))
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let said = record.args().to_string();
        // The event has the name of this module as its target. With the target of fjall, `tracing` could hand an event
        // that nobody listens to back to `log`.
        match record.level() {
            Level::Error => tracing::error!("{said}"),
            _ => tracing::warn!("{said}"),
        }
        if said.starts_with(FAILED.0) && said.contains(FAILED.1) {
            *THREAD_FAILED.lock() = Some(said);
        }
    }

    fn flush(&self) {}
}

/// Starts to pass log lines on. Does nothing if the process already has a logger of the crate `log`.
pub(crate) fn listen() {
    if log::set_logger(&Bridge).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_read_from_what_fjall_prints() {
        for wrapped in [fjall::Error::from, |error| fjall::Error::Storage(fjall::LsmError::Io(error))] {
            let said = format!("Worker #1 crashed: {:?}", wrapped(io::Error::from_raw_os_error(28)));
            assert_eq!(cause(&said).unwrap().kind(), io::ErrorKind::StorageFull, "{said}");
        }
        assert!(cause("Worker #1 crashed: Poisoned").is_none());
    }
}
