//! The limits and times of a gateway. Values only; each has an owner that enforces it and a test.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::allowance::Rate;
use crate::limits::budget::NODE_MIN;
use crate::net::address::shares::Limits;
use crate::net::address::{ClientAddress, Proxies};
use crate::net::socket::READ_BUFFER;

/// See the fields. [`Settings::default`] is what a small team runs with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// A device must have sent `connect` this many seconds after it asked for the WebSocket, an HTTP connection the head
    /// of its first request, and any request its head this many seconds after its first byte; and who takes nothing of an
    /// answer for as long is cut. Between two requests, readers may pause for 75 s and backends for 620 s.
    pub connect_within_secs: u32,
    /// The server pings this often; at least 1.
    pub ping_interval_secs: u32,
    /// A pong must have come this long after a ping.
    pub pong_within_secs: u32,
    /// After a token has expired, how long a refresh may take.
    pub refresh_grace_secs: u32,
    /// The largest WebSocket message (and frame) a device may send, in bytes.
    pub message_max_bytes: usize,
    /// The most the gateway buffers for one device that does not read, in bytes. A single batch may
    /// exceed it once.
    pub write_buffer_max_bytes: usize,
    /// Commands a device may send per second, with as many again in a burst. A frame without a command counts as one.
    pub commands_per_sec: u32,
    /// Connections one user may hold on this node.
    pub connections_per_user: u32,
    /// WebSockets this node holds in all.
    pub connections: u32,
    /// The most memory that answers may hold until their peers have taken them, over HTTP and WebSocket together, in bytes;
    /// those of one user a sixteenth of it. At least 64 MiB.
    pub responses_max_bytes: usize,
    /// Reads by HTTP that one user may have at once on this node, each until its answer is taken; more get 429. Those with
    /// the API key are not counted.
    pub reads_per_user: u32,
    /// Reads by HTTP that one user may begin per second on this node, with as many again in a burst; more get 429.
    pub reads_per_user_per_sec: u32,
    /// Reads by HTTP that one address may have in flight on this node, whoever's tokens come from it; more get 429.
    pub reads_per_address: u32,
    /// Reads by HTTP that one address may begin per second on this node, with as many again in a burst; more get 429.
    pub reads_per_address_per_sec: u32,
    /// Connections a port holds in all that are no WebSockets: of backends, of readers, and of those who have not
    /// said anything. If there are more, those go that have said least.
    pub http_connections: u32,
    /// Connections one address may hold on this node, whatever they are. An IPv6 address counts by its /64.
    pub connections_per_address: u32,
    /// Connections one address may hold that have not said who they are; at most half of what the node has room for. As
    /// many may come and go in a second and never say so, with as many again in a burst.
    pub unauthenticated_per_address: u32,
    /// WebSockets that one address may ask for per second, with as many again in a burst.
    pub upgrades_per_sec_per_address: u32,
    /// Changes read and sent at a time during catch-up.
    pub batch: usize,
    /// Whether what the doorbell tells of changes spares sessions a read of the store. Changes nothing of what
    /// devices are told.
    pub inline_changes: bool,
    /// Every session re-reads its head this often, should every wake have been lost.
    pub reread_interval_secs: u32,
    /// Should every broadcast of an author with news have been lost, those who pull the author hear of it this soon.
    pub pull_repair_interval_secs: u32,
    /// Sessions woken per second for an author with news, so that not all of them read at once.
    pub pull_wakes_per_sec: u32,
    /// Acknowledged positions are stored this often.
    pub save_interval_secs: u32,
    /// On shutdown, closes are spread over this long, in milliseconds.
    pub drain_ms: u32,
    /// Origins whose pages may connect, and read by HTTP what a reader's token opens; empty: any. A request without
    /// `Origin` is a mobile app and always allowed.
    pub allowed_origins: Vec<String>,
    /// What the `aud` of every reader's token must name; empty: whatever. Tokens from the API name it.
    pub token_audience: String,
    /// Networks, such as "10.0.0.0/8", of the operator's own proxies and backends. No limit per address holds for
    /// them; those for whom they speak are counted instead, see `client_address`.
    pub trusted_proxies: Vec<String>,
    /// How trusted proxies name the client.
    pub client_address: ClientAddress,
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
            batch: 100,
            inline_changes: true,
            reread_interval_secs: 60,
            pull_repair_interval_secs: 5,
            pull_wakes_per_sec: 50_000,
            save_interval_secs: 1,
            drain_ms: 1000,
            allowed_origins: Vec::new(),
            token_audience: String::new(),
            trusted_proxies: ["127.0.0.0/8", "::1/128"].map(str::to_owned).to_vec(),
            client_address: ClientAddress::Connection,
        }
    }
}

impl Settings {
    /// How often the server pings.
    pub fn ping_interval(&self) -> Duration {
        Duration::from_secs(self.ping_interval_secs.into())
    }

    /// How often a device may be read from, up to 256 bytes at a time: four times for each command, and once more for
    /// the largest message.
    pub(crate) fn reads(&self) -> Rate {
        let Rate { per_sec, burst } = Rate::twice(self.commands_per_sec.saturating_mul(4));
        let largest = u32::try_from(self.message_max_bytes.div_ceil(READ_BUFFER)).unwrap_or(u32::MAX);
        Rate { per_sec, burst: burst.saturating_add(largest) }
    }

    /// What one address may hold. On a small node nobody keeps half of it busy without having said who they are.
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

    /// What is wrong with these values, if anything: the name, the value, and what would be right.
    pub fn check(&self) -> Result<(), String> {
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
        match at_least_one.iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(format!("gateway.{name} must be at least 1, it is 0")),
            None if self.batch > 1000 => Err(format!("gateway.batch must be at most 1000, it is {}", self.batch)),
            None if self.responses_max_bytes < NODE_MIN => {
                let is = self.responses_max_bytes;
                Err(format!("gateway.responses_max_bytes must be at least {NODE_MIN}, it is {is}"))
            }
            None => self.proxies().map(drop),
        }
    }

    /// The proxies that are trusted.
    pub(crate) fn proxies(&self) -> Result<Proxies, String> {
        let proxies = Proxies::new(&self.trusted_proxies, self.client_address);
        proxies.map_err(|wrong| format!("gateway.trusted_proxies must be a list of networks, {wrong}"))
    }
}
