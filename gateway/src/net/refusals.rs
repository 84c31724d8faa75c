//! Logs why connections are refused, so that an operator sees it.

use crate::limits::log_limit::LogLimit;
use crate::net::address::Client;

/// The log lines about refusals of one sort.
#[derive(Debug)]
pub(crate) struct Refusals {
    what: &'static str,
    limit: LogLimit,
}

impl Refusals {
    /// The refusals of `what`, such as "a token".
    pub(crate) fn of(what: &'static str) -> Self {
        Self { what, limit: LogLimit::new() }
    }

    /// Logs that `client` was refused just now, unless too many lines were written. `why` must hold nothing that the
    /// client has sent: no token, no header.
    pub(crate) fn log(&self, client: Client, why: &'static str) {
        if let Some(suppressed) = self.limit.admit() {
            tracing::info!(%client, why, suppressed, "{} was refused", self.what);
        }
    }
}
