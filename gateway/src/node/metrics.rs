//! What this node counts of its sessions, for operators. `docs/metrics.md` explains each number.

use std::sync::Arc;

use feedgate_common::metrics::{Counter, Gauge, Histogram, Labels, Reading, Registry, Series, Unit};
use feedgate_common::{Millis, labels};
use hyper::StatusCode;

use crate::net::stream::Framing;
use crate::net::transport::Transport;
use crate::node::Node;
use crate::protocol::Close;

/// What carries a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    WebSocket,
    HttpStream,
    Sse,
    UniSse,
}

labels!(Carrier, "transport":
    WebSocket "websocket", HttpStream "http_stream", Sse "sse", UniSse "uni_sse");

impl Carrier {
    /// What carries the messages of this transport.
    pub(crate) fn of(transport: &Transport) -> Self {
        match transport {
            Transport::Socket(_) => Self::WebSocket,
            Transport::Stream(stream) => match stream.framing() {
                Framing::Lines | Framing::Bytes => Self::HttpStream,
                Framing::Events => Self::Sse,
                Framing::OneWay => Self::UniSse,
            },
        }
    }
}

/// What became of a request that was to become a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admittance {
    Accepted,
    /// The address of the client has too many connections or upgrades.
    Address,
    /// The node is full or goes away.
    Node,
    /// A web page of another origin asked.
    Origin,
    /// The request is none for a session.
    Malformed,
}

labels!(Admittance, "outcome":
    Accepted "accepted", Address "address_limit", Node "node_full", Origin "origin", Malformed "malformed");

impl Admittance {
    /// What an answer with this status says.
    pub(crate) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::SWITCHING_PROTOCOLS | StatusCode::OK => Self::Accepted,
            StatusCode::TOO_MANY_REQUESTS => Self::Address,
            StatusCode::SERVICE_UNAVAILABLE => Self::Node,
            StatusCode::FORBIDDEN => Self::Origin,
            _ => Self::Malformed,
        }
    }
}

/// Why a session has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ended {
    /// The server has closed it.
    Closed(Close),
    /// The device has said goodbye.
    Goodbye,
    /// The connection was broken.
    Gone,
}

impl Ended {
    /// How many ways to end there are.
    pub(crate) const COUNT: usize = Close::ALL.len() + 2;
}

impl Labels for Ended {
    fn all() -> Vec<Self> {
        Close::ALL.iter().copied().map(Self::Closed).chain([Self::Goodbye, Self::Gone]).collect()
    }

    fn index(self) -> usize {
        match self {
            Self::Closed(close) => Close::ALL.iter().position(|of| *of == close).expect("the list has all of them"),
            Self::Goodbye => Close::ALL.len(),
            Self::Gone => Close::ALL.len() + 1,
        }
    }

    fn pairs(self) -> Vec<(&'static str, &'static str)> {
        let reason = match self {
            Self::Goodbye => "goodbye",
            Self::Gone => "gone",
            Self::Closed(close) => match close {
                Close::Protocol => "protocol",
                Close::Unsupported => "unsupported",
                Close::NotUtf8 => "not_utf8",
                Close::TooBig => "too_big",
                Close::Shutdown => "shutdown",
                Close::ServerError => "server_error",
                Close::Expired => "expired",
                Close::Slow => "slow",
                Close::InsufficientState => "insufficient_state",
                Close::Displaced => "displaced",
                Close::NoPong => "no_pong",
                Close::TooManyRequests => "too_many_requests",
                Close::InvalidToken => "invalid_token",
                Close::BadRequest => "bad_request",
                Close::Stale => "stale",
                Close::ForceDisconnect => "force_disconnect",
                Close::ConnectionLimit => "connection_limit",
                Close::Replaced => "replaced",
            },
        };
        vec![("reason", reason)]
    }
}

/// What became of a wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The session had no such wake waiting.
    Sent,
    /// The session had one waiting, and reads once for both.
    Coalesced,
}

labels!(Woken, "outcome": Sent "sent", Coalesced "coalesced");

/// How a device came to have to load its feed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reset {
    /// The subscription of the device began at the head.
    Subscribed,
    /// The subscription of the device was refused, as the device had asked for in such a case.
    Refused,
    /// The connection of the device was closed with 3010.
    Closed,
}

labels!(Reset, "cause": Subscribed "subscribed", Refused "refused", Closed "closed");

/// From where the changes of a read came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// From what the doorbell told.
    Doorbell,
    /// From the log of the inbox.
    Log,
}

labels!(Source, "source": Doorbell "doorbell", Log "log");

/// The numbers of a node. Each is a handle, so that to count is one atomic addition or two.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) connections: Series<Carrier, Gauge>,
    pub(crate) requests: Series<Admittance, Counter>,
    pub(crate) ends: Series<Ended, Counter>,
    pub(crate) resets: Series<Reset, Counter>,
    pub(crate) reads: Series<Source, Histogram>,
    /// From the time of publication to the encoding of the push.
    pub(crate) publish_to_push: Histogram,
    /// How often wakes may have been lost.
    pub(crate) missed: Counter,
    /// How often sessions have found a store damaged.
    pub(crate) damage: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            connections: Series::default(),
            requests: Series::default(),
            ends: Series::default(),
            resets: Series::default(),
            reads: Series::new(Histogram::of_counts),
            publish_to_push: Histogram::of_times(),
            missed: Counter::default(),
            damage: Counter::default(),
        }
    }
}

impl Metrics {
    /// Adds an item that was published at `published_at` and is pushed at `now`. Clocks of two machines may differ: a
    /// time before 0 counts as 0.
    pub(crate) fn pushed(&self, published_at: Millis, now: Millis) {
        let ms = now.saturating_sub(published_at).max(0);
        self.publish_to_push.took(std::time::Duration::from_millis(ms.unsigned_abs()));
    }
}

/// Registers the numbers of this node.
pub(crate) fn register(node: &Arc<Node>, registry: &mut Registry) {
    let Metrics { connections, requests, ends, resets, reads, publish_to_push, missed, damage } = &*node.metrics;
    registry.register("connections", "Connections of devices, by what carries them", connections.clone());
    registry.register("session_requests", "Requests that were to become a session", requests.clone());
    registry.register("session_ends", "Sessions that have ended", ends.clone());
    registry.register("resets", "Devices that had to load their feed again", resets.clone());
    registry.register("read_entries", "Changes that one read for a device has brought", reads.clone());
    let help = "From the publication of an item to its push to a device that was woken for it";
    registry.register_with_unit("publish_to_push", help, Unit::Seconds, publish_to_push.clone());
    registry.register("wakes_missed", "Times that wakes may have been lost, so that all logs are read", missed.clone());
    registry.register("session_damage", "Times that a session found a store damaged", damage.clone());
    registry.register("wakes", "Wakes of sessions for growth of an inbox", node.local.pool.wakes.clone());
    let read = |of: fn(&Node) -> f64| {
        let node = node.clone();
        Reading::new(move || of(&node))
    };
    registry.register(
        "sessions",
        "Sessions that are authenticated",
        read(|node| node.local.pool.counts().sessions as f64),
    );
    registry.register("users_online", "Users with a session", read(|node| node.local.pool.counts().users as f64));
    registry.register("devices_online", "Devices with a session", read(|node| node.local.pool.counts().devices as f64));
    registry.register("items_watched", "Items that devices watch", read(|node| node.watches.items() as f64));
    registry.register("item_watches", "Subscriptions to items", read(|node| node.watches.count() as f64));
    registry.register(
        "lease_valid",
        "Whether the sessions of this node count",
        read(|node| f64::from(node.lease.may_push())),
    );
    let uptime = read(|node| node.uptime.elapsed_ms() as f64 / 1000.0);
    registry.register_with_unit("uptime", "Since the start of the gateway", Unit::Seconds, uptime);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_way_to_end_has_a_series_of_its_own() {
        let all = Ended::all();
        assert!(all.iter().enumerate().all(|(n, ended)| ended.index() == n));
        let reasons: BTreeSet<_> = all.iter().map(|ended| ended.pairs()).collect();
        assert_eq!(reasons.len(), all.len());
    }

    #[test]
    fn an_item_from_a_clock_that_is_ahead_took_no_time() {
        let (metrics, mut registry) = (Metrics::default(), feedgate_common::metrics::registry());
        metrics.pushed(5_000, 4_000);
        registry.register("wait", "Wait", metrics.publish_to_push.clone());
        assert!(feedgate_common::metrics::text(&[&registry]).contains("feedgate_wait_sum 0.0\n"));
    }
}
