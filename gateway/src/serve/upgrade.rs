//! Answers `GET /connection/websocket`: makes a session task from an HTTP request.
//!
//! ```text
//!   request ──check──▶ 101 ──▶ a short-lived task awaits the upgrade ──▶ a small session task
//!              └──▶ a precise 4xx, 429 when its address has enough, 503 when the node is full
//! ```
//!
//! The session task starts from the bare connection, so that nothing of hyper stays in its memory.

use std::sync::Arc;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::door::{Door, Refused};
use crate::connection::{Arrival, Connection};
use crate::net::address::shares::Stay;
use crate::net::socket::{Frames, Socket};
use crate::net::surface::Surface;
use crate::net::timed_stream::TimedStream;
use crate::net::transport::Transport;
use crate::node::slot::Slot;
use crate::protocol::Format;

/// The path at which sessions connect.
pub(crate) const PATH: &str = "/connection/websocket";

/// Answers the request. After a 101, a task of its own begins the session.
pub(crate) fn answer(door: &Door, mut request: Request<Incoming>) -> Response<Body> {
    let counted = match door.count() {
        Ok(counted) => counted,
        Err(refused) => return refused.response(),
    };
    let key = match check(&request, &door.ports.node.settings.now().allowed_origins, door.surface) {
        Ok(key) => key,
        Err(refused) => {
            door.log(&refused);
            return refused.response();
        }
    };
    let slot = match door.slot() {
        Ok(slot) => slot,
        Err(refused) => return refused.response(),
    };
    let agreed = offered(request.headers()).find_map(Format::of);
    let format = agreed.or_else(|| named(request.uri())).unwrap_or(Format::Json);
    let upgrade = hyper::upgrade::on(&mut request);
    let stay = door.stay(counted);
    door.ports.tasks.spawn(begin(door.clone(), slot, stay, format, upgrade));

    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, key);
    if let Some(subprotocol) = agreed.and_then(Format::subprotocol) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(subprotocol));
    }
    response
}

/// Awaits the upgrade, then begins the session in a task of its own.
async fn begin(
    door: Door,
    slot: Arc<Slot>,
    stay: Option<Box<Stay>>,
    format: Format,
    upgrade: hyper::upgrade::OnUpgrade,
) {
    let Door { ports, asked_ms, .. } = door;
    let parts = match upgrade.await {
        Ok(upgraded) => upgraded.downcast::<TokioIo<TimedStream>>(),
        Err(error) => {
            tracing::debug!(%error, "an upgrade was not finished");
            return ports.node.local.pool.depart(&slot);
        }
    };
    let parts = parts.expect("the accept loop serves nothing else");
    // The parts keep kilobytes even for an empty buffer, which would stay for the life of the session.
    let early = parts.read_buf.to_vec();
    drop(parts.read_buf);
    let frames = match format {
        Format::Json | Format::OneWay => Frames::Text,
        Format::Protobuf => Frames::Binary,
    };
    let message_max = ports.node.settings.now().first_message_max();
    let socket = Socket::new(parts.io.into_inner().into_inner(), &early, message_max, frames);
    let arrival = Arrival { transport: Transport::Socket(socket), format, asked_ms, slot, stay };
    ports.tasks.spawn(Connection::new(ports.connections.clone(), arrival));
}

/// Gives the value of `Sec-WebSocket-Accept`, or what is wrong with the request.
fn check<B>(request: &Request<B>, allowed_origins: &[String], surface: Surface) -> Result<HeaderValue, Refused> {
    let headers = request.headers();
    if request.method() != Method::GET {
        return Err(
            Refused::new(StatusCode::METHOD_NOT_ALLOWED, "a WebSocket begins with GET").with(header::ALLOW, "GET")
        );
    }
    if request.version() != Version::HTTP_11 {
        return Err(Refused::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "a WebSocket begins with HTTP/1.1"));
    }
    // The upgrade would wait for the body, and keep its slot for as long as the peer likes.
    if headers.contains_key(header::TRANSFER_ENCODING) || headers.get(header::CONTENT_LENGTH).is_some_and(|n| n != "0")
    {
        return Err(Refused::new(StatusCode::BAD_REQUEST, "a WebSocket begins with a request without a body"));
    }
    if !has_token(headers, &header::UPGRADE, "websocket") || !has_token(headers, &header::CONNECTION, "upgrade") {
        return Err(Refused::new(StatusCode::UPGRADE_REQUIRED, "send Connection: Upgrade and Upgrade: websocket")
            .with(header::UPGRADE, "websocket"));
    }
    if [header::SEC_WEBSOCKET_KEY, header::SEC_WEBSOCKET_VERSION, header::ORIGIN]
        .iter()
        .any(|name| stands_twice(headers, name))
    {
        return Err(Refused::new(
            StatusCode::BAD_REQUEST,
            "send each of Sec-WebSocket-Key, Sec-WebSocket-Version and Origin once",
        ));
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(Refused::new(StatusCode::UPGRADE_REQUIRED, "send Sec-WebSocket-Version: 13")
            .with(header::SEC_WEBSOCKET_VERSION, "13"));
    }
    let key = headers
        .get(header::SEC_WEBSOCKET_KEY)
        .filter(|key| STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16))
        .ok_or(Refused::new(StatusCode::BAD_REQUEST, "send a Sec-WebSocket-Key of 16 bytes in base64"))?;
    if let Some(origin) = headers.get(header::ORIGIN)
        && !allowed_origins.is_empty()
        && !allowed_origins.iter().any(|allowed| origin == allowed.as_str())
        && !(surface == Surface::All && is_own(origin, headers))
    {
        return Err(Refused::new(StatusCode::FORBIDDEN, "this Origin is not in gateway.allowed_origins"));
    }
    let mut offers = offered(headers).peekable();
    if offers.peek().is_some() && offers.find_map(Format::of).is_none() {
        return Err(Refused::new(
            StatusCode::BAD_REQUEST,
            "the subprotocols here are centrifuge-json and centrifuge-protobuf; to offer none means centrifuge-json",
        ));
    }
    let accept = derive_accept_key(key.as_bytes());
    Ok(HeaderValue::from_str(&accept).expect("base64 is a legal header value"))
}

/// Whether a page of this very address asks, as the console does.
fn is_own(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let named = origin.as_bytes();
    host.is_some() && [&b"http://"[..], b"https://"].into_iter().any(|scheme| named.strip_prefix(scheme) == host)
}

/// Whether a header is there twice: two proxies on the way might each use another one of the values.
fn stands_twice(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(name).iter().nth(1).is_some()
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    list(headers, name).any(|value| value.eq_ignore_ascii_case(token))
}

fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    list(headers, &header::SEC_WEBSOCKET_PROTOCOL)
}

/// The format that the query names, in either of the two ways that clients without a subprotocol have.
fn named(uri: &Uri) -> Option<Format> {
    let mut pairs = uri.query()?.split('&');
    pairs.any(|pair| matches!(pair, "cf_protocol=protobuf" | "format=protobuf")).then_some(Format::Protobuf)
}

fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(change: impl FnOnce(&mut Request<()>)) -> Request<()> {
        let mut request = Request::get(PATH)
            .header("connection", "keep-alive, Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .body(())
            .unwrap();
        change(&mut request);
        request
    }

    fn status(request: &Request<()>) -> u16 {
        let origins = ["https://app.example".to_owned()];
        check(request, &origins, Surface::Readers).map_or_else(|refused| refused.status.as_u16(), |_| 101)
    }

    fn with(name: &'static str, value: &'static str) -> u16 {
        status(&request(|r| {
            r.headers_mut().insert(name, HeaderValue::from_static(value));
        }))
    }

    #[test]
    fn a_good_request_gets_the_accept_key_of_the_rfc() {
        let accept = check(&request(|_| ()), &[], Surface::Readers).ok().unwrap();
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn each_bad_upgrade_gets_its_own_status() {
        assert_eq!(status(&request(|r| *r.method_mut() = Method::POST)), 405);
        assert_eq!(status(&request(|r| *r.version_mut() = Version::HTTP_10)), 505);
        assert_eq!(with("upgrade", "h2c"), 426);
        assert_eq!(with("connection", "close"), 426);
        assert_eq!(with("sec-websocket-version", "8"), 426);
        assert_eq!(with("sec-websocket-key", "c2hvcnQ="), 400);
        assert_eq!(with("content-length", "1"), 400);
        assert_eq!(with("content-length", "0"), 101);
        assert_eq!(with("transfer-encoding", "chunked"), 400);
        assert_eq!(with("sec-websocket-protocol", "centrifuge-protobuf"), 101);
        assert_eq!(with("sec-websocket-protocol", "graphql-ws"), 400);
        assert_eq!(with("sec-websocket-protocol", "graphql-ws, centrifuge-json"), 101);
    }

    #[test]
    fn a_header_that_stands_twice_is_refused_also_if_one_of_them_is_right() {
        let twice = |name: &'static str, value: &'static str, more: &'static str| {
            status(&request(|r| {
                r.headers_mut().insert(name, HeaderValue::from_static(value));
                r.headers_mut().append(name, HeaderValue::from_static(more));
            }))
        };
        assert_eq!(twice("origin", "https://app.example", "https://evil.example"), 400);
        assert_eq!(twice("origin", "https://app.example", "https://app.example"), 400);
        assert_eq!(twice("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ="), 400);
        assert_eq!(twice("sec-websocket-version", "13", "8"), 400);
        assert_eq!(twice("sec-websocket-protocol", "centrifuge-protobuf", "centrifuge-json"), 101, "that is a list");
    }

    #[test]
    fn a_client_without_a_subprotocol_may_ask_for_protobuf_in_the_query() {
        let asked = |uri: &'static str| named(&Uri::from_static(uri));
        assert_eq!(asked("/connection/websocket?format=protobuf"), Some(Format::Protobuf));
        assert_eq!(asked("/connection/websocket?a=1&cf_protocol=protobuf"), Some(Format::Protobuf));
        assert_eq!(asked("/connection/websocket?format=json"), None);
        assert_eq!(asked("/connection/websocket"), None);
    }

    #[test]
    fn the_console_may_connect_to_its_own_port_and_no_other_page_may() {
        let status = |origin: &'static str, surface| {
            let asked = request(|r| {
                r.headers_mut().insert("host", HeaderValue::from_static("127.0.0.1:8080"));
                r.headers_mut().insert("origin", HeaderValue::from_static(origin));
            });
            check(&asked, &["https://app.example".to_owned()], surface)
                .map_or_else(|refused| refused.status.as_u16(), |_| 101)
        };
        assert_eq!(status("http://127.0.0.1:8080", Surface::All), 101);
        assert_eq!(status("https://127.0.0.1:8080", Surface::All), 101, "a proxy may have taken the TLS off");
        assert_eq!(status("http://127.0.0.1:8080", Surface::Readers), 403, "no console is there");
        assert_eq!(status("http://127.0.0.1:8081", Surface::All), 403);
        assert_eq!(status("http://evil.example", Surface::All), 403);
    }

    #[test]
    fn a_browser_of_another_origin_is_refused_and_an_app_without_one_is_not() {
        assert_eq!(with("origin", "https://evil.example"), 403);
        assert_eq!(with("origin", "https://app.example"), 101);
        assert_eq!(status(&request(|_| ())), 101);
    }
}
