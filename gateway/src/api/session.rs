//! Sessions where WebSocket is blocked: an answer that goes on for as long as the session carries what the gateway
//! sends to the device, and the device sends each of its messages by a request of its own.
//!
//! ```text
//!   POST /connection/http_stream   commands in the body     ──▶ 200 and replies and pushes, until the session ends
//!   GET  /connection/sse           commands in `cf_connect` ──▶ the same as events
//!   GET  /connection/uni_sse       a token                 ──▶ one feed or item as events, for a client that only listens
//!   POST /emulation                session, node, commands  ──▶ 204: they are passed to the session, on whatever node
//! ```
//!
//! Nothing here knows what a command means. The answer of the first three routes only says how the session is to begin;
//! the task of the session takes the connection over.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use feedgate_common::{ItemId, Position};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::access::Access;
use super::changes::position;
use super::payload::{DeviceMemory, ONE, Payload, content_type, not_coded, read};
use super::problem::{Kind, Problem, short};
use super::query::{NoQuery, Query};
use crate::net::address::Client;
use crate::net::lobby::{Guest, Standing};
use crate::net::mailboxes::NotPut;
use crate::net::stream::{Begin, Framing};
use crate::node::{LocalSessions, Reads};
use crate::protocol::ITEM_CHANNEL;
use crate::protocol::emulation::Emulated;
use crate::settings::LiveSettings;

/// The type of a body of Protobuf.
const PROTOBUF: &str = "application/octet-stream";

/// Answers `POST /connection/http_stream` with a session, over JSON or Protobuf as the type of the body says.
pub(super) async fn http_stream(
    _: NoQuery,
    State(access): State<Arc<Access>>,
    State(DeviceMemory(memory)): State<DeviceMemory>,
    State(settings): State<Arc<LiveSettings>>,
    request: Request,
) -> Result<Response, Problem> {
    let _ticket = access.ticket(Client::of(request.extensions()))?;
    let framing = if is_protobuf(request.headers())? { Framing::Bytes } else { Framing::Lines };
    let body: Payload<ONE> = read(request, settings.now().first_message_max(), &memory).await?;
    Ok(begin(framing, body.bytes().clone()))
}

/// Answers any method but GET where a session begins with GET. An answer to HEAD would begin a session that tells
/// nothing, so `Allow` does not list HEAD, which the router would list beside GET.
pub(super) async fn only_get(method: Method) -> Response {
    let detail = format!("this path does not take {}: a session begins with GET", short(method.as_str()));
    let problem = Problem::new(Kind::MethodNotAllowed, detail);
    ([(header::ALLOW, HeaderValue::from_static("GET"))], problem).into_response()
}

/// Answers `GET /connection/sse` with a session whose replies and pushes are events.
pub(super) async fn sse(
    query: Query,
    method: Method,
    State(settings): State<Arc<LiveSettings>>,
) -> Result<Response, Problem> {
    let params = query.only(&["cf_connect"])?;
    if method == Method::HEAD {
        return Ok(only_get(method).await);
    }
    let commands = params.get("cf_connect").unwrap_or_default();
    if commands.is_empty() {
        return Err(Problem::parameter("cf_connect", "cf_connect must hold the command connect, as JSON"));
    }
    let max = settings.now().first_message_max();
    if commands.len() > max {
        return Err(Problem::parameter("cf_connect", format!("cf_connect holds at most {max} bytes")));
    }
    Ok(begin(Framing::Events, Bytes::copy_from_slice(commands.as_bytes())))
}

/// Tells what `cf_connect` must be, when it cannot be read.
const NO_LISTENER: &str = "cf_connect must be a JSON object with a token, and data if the device has an id";

/// The fields of `cf_connect` of a client that only listens: `ConnectRequest` of the schema.
#[derive(Deserialize, Default)]
struct Listener {
    token: Option<String>,
    data: Option<Box<RawValue>>,
}

/// Answers `GET /connection/uni_sse` with the changes of one feed as events, or with what happens around one item. The
/// token is in the header, or in `cf_connect`; a client that connects again goes on from `Last-Event-ID`.
pub(super) async fn uni_sse(
    query: Query,
    State(access): State<Arc<Access>>,
    State(reads): State<Arc<Reads>>,
    request: Request,
) -> Result<Response, Problem> {
    let params = query.only(&["cf_connect", "name", "offset", "epoch", "item"])?;
    let (request, _) = request.into_parts();
    let listener: Listener = match params.get("cf_connect") {
        // The error of serde might quote the token.
        Some(json) => serde_json::from_str(json).map_err(|_| Problem::parameter("cf_connect", NO_LISTENER))?,
        None => Listener::default(),
    };
    let token = access.token(&request, listener.token.as_deref())?;
    if request.method == Method::HEAD {
        return Ok(only_get(request.method).await);
    }
    let item: Option<ItemId> = params.parse("item")?;
    if item.is_some()
        && let Some(other) = ["name", "offset", "epoch"].into_iter().find(|other| params.get(other).is_some())
    {
        let detail = format!("{other} is of a feed; leave it out to listen to an item, or leave out item");
        return Err(Problem::parameter(other, detail));
    }
    let connect = json!({"id": 1, "connect": {"token": token, "data": listener.data}});
    let subscribe = match item {
        Some(item) => json!({"channel": format!("{ITEM_CHANNEL}{item}")}),
        None => {
            let channel = reads.channel(params.feed(&reads.feeds.named())?);
            let mut subscribe = json!({"channel": channel, "data": {"deliver": "items"}});
            if let Some(Position { epoch, offset }) = last_event(&request.headers)?.or(position(&params)?) {
                subscribe["recover"] = true.into();
                subscribe["epoch"] = epoch.to_string().into();
                subscribe["offset"] = offset.into();
            }
            subscribe
        }
    };
    let subscribe = json!({"id": 2, "subscribe": subscribe});
    Ok(begin(Framing::OneWay, format!("{connect}\n{subscribe}").into()))
}

/// The position in `Last-Event-ID`, as the ids of events are written.
fn last_event(headers: &HeaderMap) -> Result<Option<Position>, Problem> {
    let Some(id) = headers.get("last-event-id").filter(|id| !id.is_empty()) else { return Ok(None) };
    let position = id
        .to_str()
        .ok()
        .and_then(|id| id.split_once(':'))
        .and_then(|(epoch, offset)| Some(Position { epoch: epoch.parse().ok()?, offset: offset.parse().ok()? }));
    let wrong = || Problem::header("Last-Event-ID", "Last-Event-ID must be the id of an event that was sent from here");
    position.ok_or_else(wrong).map(Some)
}

/// Answers `POST /emulation`: passes commands to the session that the reply to `connect` has named.
pub(super) async fn emulation(
    _: NoQuery,
    State(access): State<Arc<Access>>,
    State(DeviceMemory(memory)): State<DeviceMemory>,
    State(local): State<Arc<LocalSessions>>,
    State(settings): State<Arc<LiveSettings>>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let _ticket = access.ticket(Client::of(request.extensions()))?;
    let guest = Guest::of(request.extensions()).cloned();
    let is_protobuf = is_protobuf(request.headers())?;
    let body: Payload<ONE> = read(request, ONE, &memory).await?;
    let Emulated { node: named, session, data } = emulated(body.bytes(), is_protobuf)?;
    let no_session = || Problem::new(Kind::NotFound, "there is no such session; connect again");
    let number = access.verifier.keys().session_number(&named, &session).ok_or_else(no_session)?;
    if let Some(guest) = guest {
        guest.shows(Standing::Reader);
    }
    let max = settings.now().message_max_bytes;
    if data.len() > max {
        return Err(Problem::new(Kind::TooLarge, format!("a device sends at most {max} bytes at a time")));
    }
    match local.pass(&named, number, data.into()).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(NotPut::NoSession) => Err(no_session()),
        Err(NotPut::Full) => {
            let detail = "the session has not taken in what it was sent before; wait for replies, then send again";
            Err(Problem::new(Kind::TooManyRequests, detail))
        }
    }
}

fn emulated(body: &[u8], is_protobuf: bool) -> Result<Emulated, Problem> {
    if is_protobuf {
        Emulated::of_protobuf(body)
            .map_err(|_| Problem::new(Kind::MalformedJson, "the request body is no EmulationRequest of the schema"))
    } else {
        Emulated::of_json(body).map_err(|error| Problem::new(Kind::MalformedJson, format!("the request body: {error}")))
    }
}

/// Whether the body is Protobuf; 415 if it is not JSON either.
fn is_protobuf(headers: &HeaderMap) -> Result<bool, Problem> {
    not_coded(headers)?;
    let is_protobuf = headers.get(header::CONTENT_TYPE).is_some_and(|value| value == PROTOBUF);
    if is_protobuf { Ok(true) } else { content_type(headers).map(|()| false) }
}

/// The answer that begins a session. Its headers tell proxies and browsers not to keep it and not to hold its bytes
/// back.
fn begin(framing: Framing, first: Bytes) -> Response {
    let content_type = match framing {
        Framing::Lines => "application/json",
        Framing::Bytes => PROTOBUF,
        Framing::Events | Framing::OneWay => "text/event-stream; charset=utf-8",
    };
    let mut answer = Body::empty().into_response();
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer.extensions_mut().insert(Begin { framing, first });
    answer
}
