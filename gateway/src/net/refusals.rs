//! Logs why connections are refused, for the operator.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::limits::log_limit::LogLimit;
use crate::net::address::Client;

/// The log lines about refusals of one sort. Each cause has its own limit, so that a flood of one cause hides no other
/// cause. The causes are few, since each is a text in the code.
#[derive(Debug)]
pub(crate) struct Refusals {
    what: &'static str,
    causes: Mutex<BTreeMap<&'static str, LogLimit>>,
}

impl Refusals {
    /// The refusals of `what`, such as "a token".
    pub(crate) fn of(what: &'static str) -> Self {
        Self { what, causes: Mutex::default() }
    }

    /// Logs that `client` was refused just now, unless too many lines of this cause were written. `why` must hold
    /// nothing that the client has sent: no token, no header.
    pub(crate) fn log(&self, client: Client, why: &'static str) {
        if let Some(suppressed) = self.admit(why) {
            tracing::info!(%client, why, suppressed, "{} was refused", self.what);
        }
    }

    /// Gives `None` if no more lines of this cause may be written now; otherwise how many of them were left out.
    fn admit(&self, why: &'static str) -> Option<u64> {
        self.causes.lock().entry(why).or_insert_with(LogLimit::new).admit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_one_cause_hides_no_other() {
        let refusals = Refusals::of("a token");
        assert_eq!((0..1000).filter(|_| refusals.admit("expired").is_some()).count(), 10);
        assert_eq!(refusals.admit("not yet valid"), Some(0));
    }
}
