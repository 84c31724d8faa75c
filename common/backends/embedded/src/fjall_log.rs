//! What fjall logs, as events of `tracing`: only there does it tell which of its files is damaged, and why a thread of its
//! own has failed.

use std::io;

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;

/// What fjall said when one of its threads failed last, in whichever store of this process.
static THREAD_FAILED: Mutex<Option<String>> = Mutex::new(None);

/// How fjall says that one of its threads has failed. The error follows, as `Debug` shows it.
const FAILED: (&str, &str) = ("Worker #", "crashed: ");

/// Why a thread of fjall has failed since this was asked last; `None` if it is not known. The store says no more than that
/// one has.
pub(crate) fn why_a_thread_failed() -> Option<io::Error> {
    cause(&THREAD_FAILED.lock().take()?)
}

/// `Io(Os { code: 28, … })`, at whatever depth.
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
        // Under this module's name: `tracing` may hand on to `log` what nobody listens to.
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

/// From now on, unless the process logs by `log` itself.
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
