//! A phone that runs the unmodified SDK for Rust, as tests/actors/foreign.js tells it to.
//!
//! ```text
//!   rust-phone ADDRESS      (CONNECT in the environment)
//! ```
//!
//! An address of `http` means HTTP streaming. It speaks Protobuf, or JSON with FEEDGATE_PROTOCOL=json. It ends when its
//! stdin does.

use std::collections::HashMap;
use std::error::Error;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use centrifuge::{
    BoxError, Client, HistoryOptions, Protocol, ServerError, StreamPosition, Subscription, SubscriptionBuilder,
    TokenError,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::oneshot;

const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_millis(200);
/// For an answer: a machine under load is slow.
const PATIENT: Duration = Duration::from_secs(60);

/// What the SDK asks the app for, until the journey has answered.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>);

impl Asked {
    /// Asks for a token, or for the position of a channel.
    async fn ask(&self, channel: Option<&str>) -> Result<Value, std::io::Error> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut waiting = self.0.lock().unwrap();
            let id = waiting.len() as u64 + 1;
            waiting.insert(id, answer);
            id
        };
        tell(json!({"event": "ask", "id": id, "channel": channel}));
        let answer = answered.await.map_err(std::io::Error::other)?;
        match answer["error"].as_str() {
            Some(error) => Err(std::io::Error::other(error.to_owned())),
            None => Ok(answer["value"].clone()),
        }
    }

    fn answer(&self, message: Value) {
        let (unused, _) = oneshot::channel();
        let id = message["id"].as_u64().unwrap();
        let waiting = self.0.lock().unwrap().insert(id, unused);
        let _ = waiting.expect("it was asked for").send(message);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (asked, address) = (Asked::default(), std::env::args().nth(1).ok_or("usage: rust-phone ADDRESS")?);
    let client = client(address, &asked)?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let message: Value = serde_json::from_str(&line)?;
        match message["do"].as_str().unwrap() {
            "connect" => client.connect()?,
            "disconnect" => client.disconnect(),
            "subscribe" => subscribe(&client, &asked, &message)?,
            "answer" => asked.answer(message),
            _ => drop(tokio::spawn(reply(client.clone(), message))),
        }
    }
    Ok(())
}

fn client(address: String, asked: &Asked) -> Result<Client, Box<dyn Error>> {
    let connect: Value = serde_json::from_str(&std::env::var("CONNECT")?)?;
    let json = std::env::var("FEEDGATE_PROTOCOL").is_ok_and(|protocol| protocol == "json");
    let builder = Client::builder(address)
        .protocol(if json { Protocol::Json } else { Protocol::Protobuf })
        .data(connect["data"].to_string())
        .min_reconnect_delay(SOON)
        .max_reconnect_delay(LATER)
        .timeout(PATIENT)
        .handshake_timeout(PATIENT)
        .on_connecting(|_, to| tell(json!({"event": "connecting", "code": to.code, "reason": to.reason})))
        .on_connected(|_, _| tell(json!({"event": "connected"})))
        .on_disconnected(|_, to| tell(json!({"event": "disconnected", "code": to.code, "reason": to.reason})))
        .on_error(|_, event| tell(failed(None, &event.error)));
    let asked = asked.clone();
    Ok(match connect["token"].as_str() {
        Some(token) => builder.token(token),
        None => builder.get_token(move |_| token(asked.clone())),
    }
    .build()?)
}

async fn token(asked: Asked) -> Result<Option<String>, TokenError> {
    Ok(Some(asked.ask(None).await?.as_str().ok_or(std::io::Error::other("a token is a text"))?.to_owned()))
}

async fn state(asked: Asked, channel: String) -> Result<StreamPosition, BoxError> {
    Ok(position(&asked.ask(Some(&channel)).await?))
}

fn position(value: &Value) -> StreamPosition {
    StreamPosition::new(value["offset"].as_u64().unwrap(), value["epoch"].as_str().unwrap())
}

fn subscribe(client: &Client, asked: &Asked, message: &Value) -> Result<(), Box<dyn Error>> {
    let channel = message["channel"].as_str().unwrap();
    let mut builder = events(client.new_subscription(channel)).data(message["data"].to_string());
    if message["since"].is_object() {
        builder = builder.since(position(&message["since"]));
    }
    if message["state"] == true {
        let asked = asked.clone();
        builder = builder.get_state(move |about| state(asked.clone(), about.channel));
    }
    builder.min_resubscribe_delay(SOON).max_resubscribe_delay(LATER).build()?.subscribe();
    Ok(())
}

/// The subscription tells of all that happens to it.
fn events(builder: SubscriptionBuilder) -> SubscriptionBuilder {
    let of = |subscription: &Subscription| subscription.channel().to_owned();
    builder
        .on_subscribed(move |to, how| {
            let data = how.data.as_deref().map(parse);
            let how = (how.recovered, how.was_recovering);
            tell(json!({"event": "subscribed", "channel": of(to), "recovered": how.0, "wasRecovering": how.1, "data": data}));
        })
        .on_publication(move |to, one| {
            tell(json!({"event": "publication", "channel": of(to), "offset": one.offset, "data": parse(&one.data)}));
        })
        .on_unsubscribed(move |to, end| {
            tell(json!({"event": "unsubscribed", "channel": of(to), "code": end.code, "reason": end.reason}));
        })
        .on_error(move |to, event| tell(failed(Some(to.channel()), &event.error)))
}

async fn reply(client: Client, message: Value) {
    let id = &message["id"];
    let answered = match message["do"].as_str() {
        Some("rpc") => rpc(&client, &message).await,
        _ => history(&client, &message).await,
    };
    tell(match answered {
        Ok(value) => json!({"event": "reply", "id": id, "value": value}),
        Err(error) => json!({"event": "reply", "id": id, "error": failure(&error)}),
    });
}

async fn rpc(client: &Client, message: &Value) -> Result<Value, centrifuge::Error> {
    let answer = client.rpc(message["method"].as_str().unwrap(), message["data"].to_string()).await?;
    Ok(json!({"data": parse(&answer.data)}))
}

async fn history(client: &Client, message: &Value) -> Result<Value, centrifuge::Error> {
    let limit = message["limit"].as_u64().unwrap().try_into().unwrap();
    let asked = HistoryOptions::new().limit(limit).since(position(&message["since"]));
    let found = client.history(message["channel"].as_str().unwrap(), asked).await?;
    let publications = found.publications.iter().map(|one| json!({"offset": one.offset, "data": parse(&one.data)}));
    Ok(json!({"offset": found.offset, "publications": publications.collect::<Value>()}))
}

/// What failed, with the code of the server's error among the causes, or 0.
fn failure(error: &(dyn Error + 'static)) -> Value {
    let (mut code, mut cause) = (0, Some(error));
    while let Some(one) = cause {
        code = one.downcast_ref::<ServerError>().map_or(code, |refused| refused.code);
        cause = one.source();
    }
    json!({"code": code, "message": error.to_string()})
}

/// The event of something that failed, on the connection or on a channel.
fn failed(channel: Option<&str>, error: &(dyn Error + 'static)) -> Value {
    let mut line = failure(error);
    line["event"] = "error".into();
    if let Some(channel) = channel {
        line["channel"] = channel.into();
    }
    line
}

fn parse(json: impl AsRef<[u8]>) -> Value {
    serde_json::from_slice(json.as_ref()).expect("what Feedgate sends as data is JSON")
}

/// Prints one line; it is written whole.
fn tell(line: Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
