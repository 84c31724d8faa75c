//! Requests of this process to other servers: to fetch the keys of tokens, and to call the webhook.
//!
//! ```text
//!   request ─▶ resolve the host ─▶ may the addresses be reached? ─▶ connect to just these ─▶ answer, bounded
//! ```
//!
//! Invariants: no redirect is followed. An address is checked when it is connected to, so a name that changes its
//! addresses in between does not get around the check. Time and size of an answer are bounded.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::{Context as _, anyhow, bail};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use tower_service::Service;

/// Which addresses may be reached.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    /// Any address may be reached.
    All,
    /// Addresses of the Internet, and all addresses of these hosts.
    Public {
        /// Names or addresses, as they stand in URLs.
        but: Arc<[String]>,
    },
}

impl Reach {
    /// Whether `host` may have this address.
    fn allows(&self, host: &str, address: IpAddr) -> bool {
        match self {
            Self::All => true,
            Self::Public { but } => is_public(address) || but.iter().any(|allowed| bare(allowed) == bare(host)),
        }
    }

    /// Why the host of a URL may not be reached, if this is certain before the name of the host is resolved.
    pub(crate) fn check(&self, url: &Uri) -> Result<(), String> {
        let host = url.host().unwrap_or_default();
        match bare(host).parse() {
            Ok(address) if !self.allows(host, address) => Err(refused(host, address)),
            _ => Ok(()),
        }
    }
}

fn refused(host: &str, address: IpAddr) -> String {
    let address =
        if bare(host) == address.to_string() { String::new() } else { format!(" has the address {address}, and") };
    format!("{host}{address} is private; name the host in push.allow_private if that is right")
}

/// Whether a URL has a host, and no user.
pub(crate) fn is_without_user(url: &Uri) -> bool {
    url.authority().is_some_and(|authority| !authority.as_str().contains('@'))
}

/// A URL as an error may show it: without a user and a password.
pub(crate) fn shown(url: &str) -> &str {
    if url.contains('@') { "one with a user" } else { url }
}

/// A host without the brackets of an IPv6 address.
pub(crate) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Whether an address is public: not of a private network, this machine, a link, a group, or an example.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19));
    !(special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast())
}

/// Only 2000::/3 is assigned. The parts that lead to an IPv4 address, and the examples, are left out.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    a & 0xe000 == 0x2000 && a != 0x2002 && !(a == 0x2001 && (b < 0x0200 || b == 0x0db8)) && a != 0x3fff
}

/// Resolves names to the addresses that may be reached.
#[derive(Debug, Clone)]
pub(crate) struct Resolver(Reach);

type Addresses = std::vec::IntoIter<SocketAddr>;

impl Service<Name> for Resolver {
    type Response = Addresses;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Addresses>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = self.0.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            let allowed: Vec<SocketAddr> =
                found.iter().copied().filter(|address| reach.allows(host, address.ip())).collect();
            match (found.first(), allowed.is_empty()) {
                (Some(first), true) => Err(io::Error::new(io::ErrorKind::PermissionDenied, refused(host, first.ip()))),
                _ => Ok(allowed.into_iter()),
            }
        })
    }
}

/// A client for requests to other servers, by HTTP/1 with or without TLS.
pub(crate) struct Outbound {
    reach: Reach,
    client: legacy::Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>,
}

impl Outbound {
    /// A client that reaches what `reach` says, and keeps at most `idle` connections for later requests. Fails if the
    /// system has no certificates of authorities.
    pub(crate) fn new(reach: Reach, idle: usize) -> anyhow::Result<Self> {
        let mut http = HttpConnector::new_with_resolver(Resolver(reach.clone()));
        http.enforce_http(false);
        let roots = HttpsConnectorBuilder::new().with_native_roots();
        let connector = roots
            .context("this system has no certificates of authorities; install ca-certificates")?
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = legacy::Client::builder(TokioExecutor::new()).pool_max_idle_per_host(idle).build(connector);
        Ok(Self { reach, client })
    }

    /// Sends a request and waits for the head of the answer. The caller bounds the time.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> anyhow::Result<Response<Incoming>> {
        if let Err(why) = self.reach.check(request.uri()) {
            bail!(why);
        }
        self.client.request(request).await.map_err(|error| anyhow!(told(&error)))
    }
}

/// The body of an answer, of at most `max` bytes. The caller bounds the time.
pub(crate) async fn body(answer: Response<Incoming>, max: usize) -> anyhow::Result<Bytes> {
    let body = Limited::new(answer.into_body(), max).collect().await;
    Ok(body.map_err(|error| anyhow!("{error}, where at most {max} bytes are read"))?.to_bytes())
}

/// An error with all its causes. The errors of HTTP clients say little without them.
pub(crate) fn told(error: &(dyn Error + 'static)) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for public in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.63.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "10.0.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::7f00:1",
            "64:ff9b::a00:1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    fn public(but: &[&str]) -> Reach {
        Reach::Public { but: but.iter().map(|host| (*host).to_owned()).collect() }
    }

    #[test]
    fn a_private_address_in_a_url_is_refused_unless_it_is_named() {
        let check = |reach: Reach, url: &str| reach.check(&url.parse().unwrap());
        let error = check(public(&["elsewhere"]), "http://169.254.169.254/latest").unwrap_err();
        assert!(error.contains("169.254.169.254 is private; name the host in push.allow_private"), "{error}");
        assert!(check(public(&[]), "http://[::1]:80/").is_err());
        assert_eq!(check(public(&["127.0.0.1", "[::1]"]), "http://127.0.0.1:1/"), Ok(()));
        assert_eq!(check(public(&["::1"]), "http://[::1]:1/"), Ok(()));
        assert_eq!(check(public(&[]), "https://hooks.example/"), Ok(()), "a name is checked when it is resolved");
        assert_eq!(check(Reach::All, "http://127.0.0.1/"), Ok(()));
    }

    async fn reached(reach: Reach, url: &str) -> String {
        let request = Request::get(url).body(Full::default()).unwrap();
        format!("{:#}", Outbound::new(reach, 0).unwrap().send(request).await.unwrap_err())
    }

    #[tokio::test]
    async fn a_name_with_a_private_address_is_not_connected_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
        let error = reached(public(&["127.0.0.1"]), &url).await;
        assert!(error.contains("localhost has the address") && error.contains("is private"), "{error}");
        // The name itself is allowed, so it is connected to; the answer is cut off.
        let serving = async { drop(listener.accept().await.unwrap()) };
        let (error, ()) = tokio::join!(reached(public(&["localhost"]), &url), serving);
        assert!(!error.contains("private"), "{error}");
    }
}
