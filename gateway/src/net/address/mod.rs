//! Finds the address for which a connection counts in the limits per address.
//!
//! ```text
//!   peer of the socket ── is not trusted ───────────────────────────────▶ its key
//!          │
//!          └── is trusted ── names a client (header, PROXY protocol) ──▶ the key of that client
//!                         └─ names nobody ─────────────────────────────▶ no limit: it is one of ours
//! ```
//!
//! The module [`shares`] counts what an address holds, and says what it may hold. The rest is pure: bytes and headers
//! in, a key out.

mod hops;
mod network;
pub(crate) mod proxy_protocol;
pub(crate) mod shares;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{Extensions, HeaderMap};
use serde::{Deserialize, Serialize};

use network::Network;

/// What limits per address count by: an IPv4 address; or the /64 prefix of an IPv6 address, since one household or one
/// phone has all addresses of that prefix.
///
/// An IPv4 address is kept as a number below 2^32, which is no prefix of a host.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AddressKey(u64);

/// The prefix of 96 bits of IPv6 addresses that stand for the IPv4 address in their last 32 bits (NAT64, RFC 6052).
const NAT64: u128 = 0x0064_ff9b << 96;

impl AddressKey {
    /// The key of `address`. An IPv4 address that is written as an IPv6 address has the key of that IPv4 address.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self(v4.to_bits().into()),
            IpAddr::V6(v6) if v6.to_bits() >> 32 == NAT64 >> 32 => Self(u64::from(v6.to_bits() as u32)),
            IpAddr::V6(v6) => Self((v6.to_bits() >> 64) as u64),
        }
    }
}

impl fmt::Display for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u32::try_from(self.0) {
            Ok(v4) if v4 != 0 => Ipv4Addr::from_bits(v4).fmt(f),
            _ => write!(f, "{}/64", Ipv6Addr::from_bits(u128::from(self.0) << 64)),
        }
    }
}

impl fmt::Debug for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The address that a request or a WebSocket counts for. `None` stands for a proxy or a backend of the operator, which
/// no limit per address holds for. Each request carries it as an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Client(pub(crate) Option<AddressKey>);

impl Client {
    /// The client of a request. A request that came by no port has no limit.
    pub(crate) fn of(request: &Extensions) -> Self {
        request.get().copied().unwrap_or_default()
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(key) => key.fmt(f),
            None => f.write_str("trusted"),
        }
    }
}

/// How trusted proxies name the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientAddress {
    /// Trusted proxies do not name the client: no limit per address holds for what they pass on.
    #[default]
    Connection,
    /// Trusted proxies name the client in the header `Forwarded` (RFC 7239).
    Forwarded,
    /// Trusted proxies name the client in the header `X-Forwarded-For`.
    XForwardedFor,
    /// Trusted proxies name the client by the PROXY protocol, version 2.
    ProxyProtocol,
}

/// The machines of the operator, and how they name the client whose requests they pass on.
#[derive(Debug, Clone)]
pub(crate) struct Proxies {
    trusted: Vec<Network>,
    told_by: ClientAddress,
}

impl Proxies {
    /// Reads `trusted`: networks such as "10.0.0.0/8", or single addresses. If one is wrong, the error names it.
    pub(crate) fn new(trusted: &[String], told_by: ClientAddress) -> Result<Self, String> {
        let trusted: Result<_, _> = trusted.iter().map(|network| network.parse()).collect();
        Ok(Self { trusted: trusted?, told_by })
    }

    /// Whether the peer of a socket is one of the trusted machines.
    pub(crate) fn trust(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.trusted.iter().any(|network| network.contains(peer))
    }

    /// Whether `peer` begins its connections with a PROXY header.
    pub(crate) fn speak_proxy_protocol(&self, peer: IpAddr) -> bool {
        self.told_by == ClientAddress::ProxyProtocol && self.trust(peer)
    }

    /// The client that a connection of `peer` counts for, as far as the address of `peer` alone tells.
    pub(crate) fn client(&self, peer: IpAddr) -> Client {
        Client((!self.trust(peer)).then(|| AddressKey::of(peer)))
    }

    /// The client that a request of `peer` counts for: the nearest address, going back from this node, that is not
    /// trusted.
    pub(crate) fn client_of(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        if !self.trust(peer) {
            return Client(Some(AddressKey::of(peer)));
        }
        let mut nearest = peer;
        for hop in hops::nearest_first(self.told_by, headers) {
            match hop {
                Some(address) if self.trust(address) => nearest = address,
                Some(address) => return Client(Some(AddressKey::of(address))),
                // A trusted proxy does not know or does not say where the request came from, so the request counts for
                // that proxy.
                None => return Client(Some(AddressKey::of(nearest))),
            }
        }
        Client(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn key(text: &str) -> Client {
        Client(Some(AddressKey::of(ip(text))))
    }

    fn asked(told_by: ClientAddress, peer: &str, headers: &[(&'static str, &str)]) -> Client {
        let trusted = ["10.0.0.0/8", "fd00::/8", "127.0.0.1"].map(str::to_owned);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        Proxies::new(&trusted, told_by).unwrap().client_of(ip(peer), &map)
    }

    #[test]
    fn an_ipv4_address_is_a_key_and_of_ipv6_the_first_64_bits() {
        assert_eq!(AddressKey::of(ip("2001:db8:1:2::1")), AddressKey::of(ip("2001:db8:1:2:ffff::9")));
        assert_ne!(AddressKey::of(ip("2001:db8:1:2::1")), AddressKey::of(ip("2001:db8:1:3::1")));
        assert_ne!(AddressKey::of(ip("192.0.2.1")), AddressKey::of(ip("192.0.2.2")));
        for other in ["::ffff:192.0.2.1", "64:ff9b::192.0.2.1"] {
            assert_eq!(AddressKey::of(ip(other)), AddressKey::of(ip("192.0.2.1")), "{other}");
        }
        let shown = ["192.0.2.1", "2001:db8:1:2::1", "::1"].map(|text| AddressKey::of(ip(text)).to_string());
        assert_eq!(shown, ["192.0.2.1", "2001:db8:1:2::/64", "::/64"]);
    }

    #[test]
    fn only_a_trusted_peer_is_believed_whom_it_speaks_for() {
        let said = [("x-forwarded-for", "198.51.100.7")];
        let asked_by = |peer| asked(ClientAddress::XForwardedFor, peer, &said);
        assert_eq!(asked_by("10.1.2.3"), key("198.51.100.7"));
        assert_eq!(asked_by("::ffff:10.1.2.3"), key("198.51.100.7"));
        assert_eq!(asked_by("203.0.113.9"), key("203.0.113.9"));
        assert_eq!(asked(ClientAddress::Connection, "10.1.2.3", &said), Client(None), "no header was named");
        assert_eq!(asked(ClientAddress::Forwarded, "10.1.2.3", &said), Client(None), "another header was named");
    }

    #[test]
    fn the_nearest_hop_that_is_not_trusted_counts_whatever_stands_before_it() {
        let forwarded_for = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
            asked(ClientAddress::XForwardedFor, "127.0.0.1", &lines)
        };
        assert_eq!(forwarded_for(&["1.1.1.1, 198.51.100.7, 10.0.0.2"]), key("198.51.100.7"));
        assert_eq!(forwarded_for(&["1.1.1.1", "198.51.100.7:4711", "10.0.0.2"]), key("198.51.100.7"));
        assert_eq!(forwarded_for(&["1.1.1.1, nonsense, 10.0.0.2"]), key("10.0.0.2"));
        assert_eq!(forwarded_for(&["nonsense"]), key("127.0.0.1"));
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", HeaderValue::from_bytes(b"\xff, 198.51.100.7").unwrap());
        let found = hops::nearest_first(ClientAddress::XForwardedFor, &headers).collect::<Vec<_>>();
        assert_eq!(found, [Some(ip("198.51.100.7")), None], "a byte of the client hides no hop");
        assert_eq!(forwarded_for(&["10.0.0.3, 10.0.0.2"]), Client(None), "all of them are ours");
        assert_eq!(forwarded_for(&[]), Client(None));
    }

    #[test]
    fn forwarded_is_read_as_rfc_7239_writes_it_and_a_quote_left_open_hides_nobody() {
        let forwarded = |line: &str| asked(ClientAddress::Forwarded, "10.0.0.1", &[("forwarded", line)]);
        assert_eq!(forwarded("for=192.0.2.60;proto=http;by=203.0.113.43"), key("192.0.2.60"));
        assert_eq!(forwarded("proto=https; For=\"[2001:db8:cafe::17]:4711\""), key("2001:db8:cafe::17"));
        assert_eq!(forwarded("for=\"1.1.1.1, for=198.51.100.7"), key("198.51.100.7"));
        assert_eq!(forwarded("for=198.51.100.7, for=unknown"), key("10.0.0.1"));
        assert_eq!(forwarded("for=198.51.100.7, by=10.0.0.9"), key("10.0.0.1"));
    }
}
