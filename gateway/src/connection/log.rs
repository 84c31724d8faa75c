//! The log lines about devices that come and go.
//!
//! Invariants: a session stores nothing for its log lines, since all that the lines say is stored for other purposes. A
//! line that the filter leaves out costs no lock. An ordinary end is logged at `debug`: a hundred thousand devices come
//! and go all the time, and `/metrics` counts them.

use feedgate_common::metrics::Labels;
use tracing::Level;
use tracing::field::display;

use super::Connection;
use crate::clock;
use crate::limits::log_limit::LogLimit;
use crate::node::identity::Identity;
use crate::node::metrics::{Carrier, Ended};
use crate::protocol::Close;

/// The log lines about devices that have connected.
static CONNECTED: LogLimit = LogLimit::new();

/// The log lines about ends of sessions, for each way to end.
static ENDS: [LogLimit; Ended::COUNT] = [const { LogLimit::new() }; Ended::COUNT];

/// Whether an operator should look at such an end: the server or the device did something that it should not, or
/// somebody has ended the session on purpose.
fn is_strange(ended: Ended) -> bool {
    match ended {
        Ended::Goodbye | Ended::Gone => false,
        Ended::Closed(close) => match close {
            Close::Protocol
            | Close::Unsupported
            | Close::NotUtf8
            | Close::TooBig
            | Close::ServerError
            | Close::Slow
            | Close::TooManyRequests
            | Close::BadRequest
            | Close::ForceDisconnect
            | Close::ConnectionLimit => true,
            // Networks break, tokens expire, and devices come back. A bad token has a line of its own.
            Close::Shutdown
            | Close::Expired
            | Close::InsufficientState
            | Close::Displaced
            | Close::NoPong
            | Close::InvalidToken
            | Close::Stale
            | Close::Replaced => false,
        },
    }
}

impl Connection {
    /// Logs that the device `who` has connected.
    pub(super) fn log_connected(&self, who: &Identity) {
        if tracing::enabled!(Level::DEBUG)
            && let Some(suppressed) = CONNECTED.admit()
        {
            let (connection, client) = (self.slot.connection, self.client());
            let transport = Carrier::of(&self.transport).pairs()[0].1;
            let (user, device) = (&who.user.id, &who.device);
            tracing::debug!(connection, %user, %device, %client, transport, suppressed, "a device has connected");
        }
    }

    /// Logs how the connection ends. To be called before parts of the connection are taken out.
    pub(super) fn log_end(&self, ended: Ended) {
        let strange = is_strange(ended);
        let wanted = if strange { tracing::enabled!(Level::INFO) } else { tracing::enabled!(Level::DEBUG) };
        let Some(suppressed) = wanted.then(|| ENDS[ended.index()].admit()).flatten() else { return };
        let (connection, client) = (self.slot.connection, self.client());
        let user = self.who.as_ref().map(|who| display(&who.user.id));
        let device = self.who.as_ref().map(|who| display(&who.device));
        let seconds = self.who.as_ref().map(|who| (clock::now() - who.since).max(0) / 1000);
        let reason = ended.pairs()[0].1;
        let code = match ended {
            Ended::Closed(close) => Some(close.code()),
            Ended::Goodbye | Ended::Gone => None,
        };
        if strange {
            tracing::info!(connection, user, device, %client, code, reason, seconds, suppressed, "a connection was closed");
        } else {
            tracing::debug!(connection, user, device, %client, code, reason, seconds, suppressed, "a connection has ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_devices_do_all_day_is_not_strange_and_what_breaks_the_rules_is() {
        let strange: Vec<&str> =
            Ended::all().into_iter().filter(|ended| is_strange(*ended)).map(|ended| ended.pairs()[0].1).collect();
        let rightly = [
            "protocol",
            "unsupported",
            "not_utf8",
            "too_big",
            "server_error",
            "slow",
            "too_many_requests",
            "bad_request",
            "force_disconnect",
            "connection_limit",
        ];
        assert_eq!(strange, rightly);
    }
}
