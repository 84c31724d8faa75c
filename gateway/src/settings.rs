//! The limits and times of a gateway. This file holds only the values; the code that enforces each one has a test for
//! it.

mod live;

use std::time::Duration;

use hyper::Uri;
use serde::{Deserialize, Serialize};

use crate::limits::allowance::Rate;
use crate::limits::budget::NODE_MIN;
use crate::net::address::shares::Limits;
use crate::net::address::{ClientAddress, Proxies};
use crate::net::socket::READ_BUFFER;

pub(crate) use live::LiveSettings;

/// The most leeway that a token's dates may have: clocks that differ by more than an hour are wrong.
const LEEWAY_MAX_SECS: u32 = 3600;

/// The most bytes of a message before `connect` is answered: as many as the head of a request.
const FIRST_MESSAGE_MAX: usize = 16 * 1024;

/// The limits and times of a gateway. [`Settings::default`] suits a small team.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How many seconds a device has to send `connect` after it asked for the WebSocket; an HTTP connection to send the
    /// head of its first request; and a head to arrive after its first byte. A peer that receives nothing of an answer
    /// for as long is cut. Between two requests, readers may pause for 75 s and backends for 620 s.
    pub connect_within_secs: u32,
    /// Seconds between two pings of the server; at least 1.
    pub ping_interval_secs: u32,
    /// How many seconds after a ping its pong must have come.
    pub pong_within_secs: u32,
    /// How many seconds a refresh may come after the token has expired.
    pub refresh_grace_secs: u32,
    /// The largest WebSocket message, and the largest frame, that a device may send, in bytes.
    pub message_max_bytes: usize,
    /// The most bytes that the gateway buffers for one device that does not read. A single batch may exceed it once.
    pub write_buffer_max_bytes: usize,
    /// How many commands a device may send per second; twice as many in a burst. A frame without a command counts as
    /// one.
    pub commands_per_sec: u32,
    /// How many connections one user may hold on this node.
    pub connections_per_user: u32,
    /// How many WebSockets this node holds in all.
    pub connections: u32,
    /// The most bytes of memory that answers may hold until their peers have received them, over HTTP and WebSocket
    /// together; at least 80 MiB. The answers to one user may hold a sixteenth of it.
    pub responses_max_bytes: usize,
    /// How many reads by HTTP one user may have at once on this node, each until its answer is received; more get 429.
    /// Reads with the API key are not counted.
    pub reads_per_user: u32,
    /// How many reads by HTTP one user may begin per second on this node; twice as many in a burst; more get 429.
    pub reads_per_user_per_sec: u32,
    /// How many reads by HTTP one address may have at once on this node, with all users' tokens; more get 429.
    pub reads_per_address: u32,
    /// How many reads by HTTP one address may begin per second on this node; twice as many in a burst; more get 429.
    pub reads_per_address_per_sec: u32,
    /// How many connections that are not WebSockets a port holds in all: of backends, of readers, and unauthenticated
    /// ones. If there are more, those that have shown least are closed.
    pub http_connections: u32,
    /// How many connections of any kind one address may hold on this node. An IPv6 address counts by its /64 prefix.
    pub connections_per_address: u32,
    /// How many unauthenticated connections one address may hold; at most half of what the node has room for. As many
    /// may begin per second without ever authenticating; twice as many in a burst.
    pub unauthenticated_per_address: u32,
    /// How many WebSockets one address may ask for per second; twice as many in a burst.
    pub upgrades_per_sec_per_address: u32,
    /// Whether answers to reads by HTTP are compressed for callers that ask for it.
    pub compress: bool,
    /// How many changes are read and sent at a time during catch-up.
    pub batch: usize,
    /// Whether changes that the doorbell tells save sessions a read of the store. Devices get the same either way.
    pub inline_changes: bool,
    /// Every session reads the head of its log again after this many seconds, in case every wake was lost.
    pub reread_interval_secs: u32,
    /// After this many seconds at most, the readers who pull an author learn of news even if every broadcast was lost.
    pub pull_repair_interval_secs: u32,
    /// How many sessions are woken per second for an author with news, so that not all of them read at once.
    pub pull_wakes_per_sec: u32,
    /// Acknowledged positions are stored every so many seconds.
    pub save_interval_secs: u32,
    /// On shutdown, sessions are closed spread over this many milliseconds.
    pub drain_ms: u32,
    /// The origins whose pages may connect, and may read by HTTP what a reader's token opens; empty allows any. A
    /// request without `Origin` comes from a mobile app and is always allowed.
    pub allowed_origins: Vec<String>,
    /// What the `aud` of every reader's token must name; empty allows any. Tokens that the API makes name it.
    pub token_audience: String,
    /// What the `iss` of every reader's token must be; empty allows any.
    pub token_issuer: String,
    /// Where the signer of readers' tokens publishes its keys as a JWKS: an `https` URL, or `http` to this machine;
    /// empty: nowhere.
    pub jwks_url: String,
    /// How many seconds the `nbf` and `iat` of a token may lie ahead; at most an hour. `exp` has no such leeway: a
    /// connection has `refresh_grace_secs` instead.
    pub token_leeway_secs: u32,
    /// The networks, such as "10.0.0.0/8", of the operator's own proxies and backends. No limit per address holds for
    /// them; the clients that they name are counted instead, see `client_address`.
    pub trusted_proxies: Vec<String>,
    /// How trusted proxies name the client.
    pub client_address: ClientAddress,
}

/// A setting of the process, as `GET /v1/settings` tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The name of the setting with dots, such as `gateway.batch`.
    pub name: String,
    /// The value that holds. What may be a password in a URL of a store is left out.
    pub value: serde_json::Value,
    /// Whether a reload takes another value; otherwise only a start does.
    pub reloads: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_within_secs: 10,
            ping_interval_secs: 25,
            pong_within_secs: 10,
            refresh_grace_secs: 25,
            message_max_bytes: 64 * 1024,
            write_buffer_max_bytes: 256 * 1024,
            commands_per_sec: 50,
            connections_per_user: 64,
            connections: 1_000_000,
            responses_max_bytes: 128 * 1024 * 1024,
            reads_per_user: 16,
            reads_per_user_per_sec: 100,
            reads_per_address: 64,
            reads_per_address_per_sec: 1000,
            http_connections: 4096,
            connections_per_address: 10_000,
            unauthenticated_per_address: 500,
            upgrades_per_sec_per_address: 200,
            compress: true,
            batch: 100,
            inline_changes: true,
            reread_interval_secs: 60,
            pull_repair_interval_secs: 5,
            pull_wakes_per_sec: 50_000,
            save_interval_secs: 1,
            drain_ms: 1000,
            allowed_origins: Vec::new(),
            token_audience: String::new(),
            token_issuer: String::new(),
            jwks_url: String::new(),
            token_leeway_secs: 60,
            trusted_proxies: ["127.0.0.0/8", "::1/128"].map(str::to_owned).to_vec(),
            client_address: ClientAddress::Connection,
        }
    }
}

impl Settings {
    /// The time between two pings of the server.
    pub fn ping_interval(&self) -> Duration {
        Duration::from_secs(self.ping_interval_secs.into())
    }

    /// The largest message of a device that is not yet authenticated, in bytes: a token, and what goes with it. An SDK
    /// that connects again sends all its subscriptions in the message of `connect`.
    pub(crate) fn first_message_max(&self) -> usize {
        self.message_max_bytes.min(FIRST_MESSAGE_MAX)
    }

    /// How often a device may be read from, up to 256 bytes at a time: four times for each command, and in a burst
    /// besides as often as the largest message needs.
    pub(crate) fn reads(&self) -> Rate {
        let Rate { per_sec, burst } = Rate::twice(self.commands_per_sec.saturating_mul(4));
        let largest = u32::try_from(self.message_max_bytes.div_ceil(READ_BUFFER)).unwrap_or(u32::MAX);
        Rate { per_sec, burst: burst.saturating_add(largest) }
    }

    /// What one address may hold. On a small node, one address can hold at most half of the room without
    /// authenticating.
    pub(crate) fn shares(&self) -> Limits {
        let half = (self.connections.min(self.http_connections) / 2).max(1);
        let unauthenticated = self.unauthenticated_per_address.min(half);
        Limits {
            connections: self.connections_per_address,
            unauthenticated,
            strangers: Rate::twice(unauthenticated),
            upgrades: Rate::twice(self.upgrades_per_sec_per_address),
        }
    }

    /// All values that are wrong, each with what would be right.
    pub fn problems(&self) -> Vec<String> {
        let at_least_one: [(&str, u64); 21] = [
            ("connect_within_secs", self.connect_within_secs.into()),
            ("ping_interval_secs", self.ping_interval_secs.into()),
            ("pong_within_secs", self.pong_within_secs.into()),
            ("message_max_bytes", self.message_max_bytes as u64),
            ("write_buffer_max_bytes", self.write_buffer_max_bytes as u64),
            ("commands_per_sec", self.commands_per_sec.into()),
            ("connections_per_user", self.connections_per_user.into()),
            ("connections", self.connections.into()),
            ("reads_per_user", self.reads_per_user.into()),
            ("reads_per_user_per_sec", self.reads_per_user_per_sec.into()),
            ("reads_per_address", self.reads_per_address.into()),
            ("reads_per_address_per_sec", self.reads_per_address_per_sec.into()),
            ("http_connections", self.http_connections.into()),
            ("connections_per_address", self.connections_per_address.into()),
            ("unauthenticated_per_address", self.unauthenticated_per_address.into()),
            ("upgrades_per_sec_per_address", self.upgrades_per_sec_per_address.into()),
            ("batch", self.batch as u64),
            ("reread_interval_secs", self.reread_interval_secs.into()),
            ("pull_repair_interval_secs", self.pull_repair_interval_secs.into()),
            ("pull_wakes_per_sec", self.pull_wakes_per_sec.into()),
            ("save_interval_secs", self.save_interval_secs.into()),
        ];
        let zeros = at_least_one.iter().filter(|(_, value)| *value == 0);
        let mut problems: Vec<String> =
            zeros.map(|(name, _)| format!("gateway.{name} must be at least 1, it is 0")).collect();
        if self.batch > 1000 {
            problems.push(format!("gateway.batch must be at most 1000, it is {}", self.batch));
        }
        if self.token_leeway_secs > LEEWAY_MAX_SECS {
            let is = self.token_leeway_secs;
            problems.push(format!("gateway.token_leeway_secs must be at most {LEEWAY_MAX_SECS}, it is {is}"));
        }
        if self.responses_max_bytes < NODE_MIN {
            let is = self.responses_max_bytes;
            problems.push(format!("gateway.responses_max_bytes must be at least {NODE_MIN}, it is {is}"));
        }
        problems.extend(self.allowed_origins.iter().find(|origin| !is_origin(origin)).map(|origin| {
            format!(
                "gateway.allowed_origins must be origins as browsers send them, such as \"https://app.example\" or \
                 \"http://127.0.0.1:8000\": a scheme, a host in lower case and perhaps a port, and no path; {origin:?} is \
                 none"
            )
        }));
        problems.extend(self.jwks().err());
        problems.extend(self.proxies().err());
        problems
    }

    /// Where the keys of readers' tokens are published; `None` if nowhere. Over the network only TLS tells who answers.
    pub fn jwks(&self) -> Result<Option<Uri>, String> {
        if self.jwks_url.is_empty() {
            return Ok(None);
        }
        let url: Option<Uri> = self.jwks_url.parse().ok();
        let safe = |url: &Uri| match (url.scheme_str(), url.host()) {
            (Some("https"), Some(host)) => !host.is_empty(),
            (Some("http"), Some(host)) => ["localhost", "127.0.0.1", "[::1]"].contains(&host),
            _ => false,
        };
        let plain = |url: &Uri| url.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        let wrong = "gateway.jwks_url must be an https URL without a user, such as \
                     https://login.example/.well-known/jwks.json; http is for this machine alone";
        url.filter(|url| safe(url) && plain(url)).map(Some).ok_or_else(|| wrong.to_owned())
    }

    /// Reads the trusted proxies from the settings; fails if one of the networks is wrong.
    pub(crate) fn proxies(&self) -> Result<Proxies, String> {
        let proxies = Proxies::new(&self.trusted_proxies, self.client_address);
        proxies.map_err(|wrong| format!("gateway.trusted_proxies must be a list of networks, {wrong}"))
    }
}

/// Whether a browser may send this text as `Origin`. Apps in a shell of their own have other schemes than `https`, and
/// a page without an origin sends `null`.
fn is_origin(text: &str) -> bool {
    let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@', '*', ' ']);
    let is_scheme = |scheme: &str| !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let parts = text.split_once("://");
    text == "null"
        || (parts.is_some_and(|(scheme, host)| is_scheme(scheme) && is_host(host)) && *text == text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fetched_over_tls_or_from_this_machine() {
        let checked = |url: &str| Settings { jwks_url: url.to_owned(), ..Settings::default() }.problems();
        for right in
            ["", "https://login.example/jwks.json", "http://127.0.0.1:9000/jwks", "http://[::1]/", "http://localhost"]
        {
            assert_eq!(checked(right), Vec::<String>::new(), "{right}");
        }
        for wrong in [
            "http://login.example/",
            "login.example",
            "ftp://login.example/",
            "https://",
            "/jwks.json",
            "http://10.0.0.1/",
            "https://feed:secret@login.example/",
        ] {
            let problems = checked(wrong);
            assert!(problems[0].contains("gateway.jwks_url must be an https URL"), "{wrong}: {problems:?}");
        }
    }

    #[test]
    fn an_allowed_origin_is_one_that_a_browser_sends() {
        let checked =
            |origin: &str| Settings { allowed_origins: vec![origin.to_owned()], ..Settings::default() }.problems();
        for right in
            ["https://app.example", "http://127.0.0.1:8000", "http://[::1]:8000", "capacitor://localhost", "null"]
        {
            assert_eq!(checked(right), Vec::<String>::new(), "{right}");
        }
        for wrong in [
            "app.example",
            "https://app.example/",
            "https://App.example",
            "https://*.example",
            "https://ann@app.example",
            "://app.example",
            "https://",
            "*",
            "",
        ] {
            let problems = checked(wrong);
            assert!(problems[0].contains(&format!("and no path; {wrong:?} is none")), "{wrong}: {problems:?}");
        }
    }

    #[test]
    fn every_wrong_value_is_named_in_one_go() {
        let wrong = Settings {
            connections: 0,
            commands_per_sec: 0,
            batch: 1001,
            token_leeway_secs: LEEWAY_MAX_SECS + 1,
            responses_max_bytes: 1,
            allowed_origins: vec!["app.example".to_owned()],
            jwks_url: "/".to_owned(),
            trusted_proxies: vec!["here".to_owned()],
            ..Settings::default()
        };
        let names = [
            "commands_per_sec",
            "connections",
            "batch",
            "token_leeway_secs",
            "responses_max_bytes",
            "allowed_origins",
            "jwks_url",
            "trusted_proxies",
        ];
        let problems = wrong.problems();
        assert_eq!(problems.len(), names.len(), "{problems:?}");
        for (problem, name) in problems.iter().zip(names) {
            assert!(problem.starts_with(&format!("gateway.{name} must be ")), "{problem}");
        }
    }

    #[test]
    fn the_greatest_and_the_least_value_that_is_right_is_taken() {
        let right = Settings {
            batch: 1000,
            token_leeway_secs: LEEWAY_MAX_SECS,
            responses_max_bytes: NODE_MIN,
            ..Settings::default()
        };
        assert_eq!(right.problems(), Vec::<String>::new());
    }

    #[test]
    fn an_address_may_take_half_of_a_small_node_without_authenticating() {
        let shares = |connections, http_connections| {
            Settings { connections, http_connections, unauthenticated_per_address: 500, ..Settings::default() }.shares()
        };
        let of = |connections, http| shares(connections, http).unauthenticated;
        assert_eq!([of(100, 5000), of(5000, 40), of(5000, 5000), of(1, 1)], [50, 20, 500, 1]);
    }

    #[test]
    fn the_first_message_is_as_large_as_a_head_and_no_larger_than_any_other() {
        let max = |message_max_bytes| Settings { message_max_bytes, ..Settings::default() }.first_message_max();
        assert_eq!([max(64 * 1024), max(100)], [16_384, 100]);
    }
}
