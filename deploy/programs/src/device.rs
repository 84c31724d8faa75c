//! A device as the server sees one: a connection that speaks the Centrifuge protocol in JSON and is subscribed to one
//! feed, from a position on.
//!
//! ```text
//!   connect + subscribe(recover, since) ─▶ Subscribed ─▶ Changed, Changed, …  ─▶ End
//! ```
//!
//! Pings are answered here, and a server that sends none for too long counts as lost.

use std::collections::VecDeque;
use std::time::Duration;

use feedgate_common::{Epoch, Position};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::reach::{Duplex, Reach};

/// The most time until a connection is made.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// How much later than promised a ping may arrive.
const PING_GRACE: Duration = Duration::from_secs(10);

/// Why a connection ended, with what the caller does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection was lost: connect again with the position.
    Lost(String),
    /// The server refused for good: another connection would end in the same way.
    Final(String),
}

/// What a device gets from the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The subscription has begun. If it is not `recovered`, changes after the position that was asked for are missing.
    Subscribed {
        /// The changes after this position follow.
        position: Position,
        /// Whether no change is missing.
        recovered: bool,
    },
    /// A change of the feed, as the JSON object that the server sent.
    Changed {
        /// The sequence id of the change.
        offset: u64,
        /// The JSON of the change, with `op` and what belongs to it.
        change: String,
    },
}

/// One connection of a device.
pub(crate) struct Device {
    socket: WebSocketStream<Box<dyn Duplex>>,
    received: VecDeque<Event>,
    silence_max: Duration,
}

/// Any message from the server; if all fields are absent, it is a ping.
#[derive(Deserialize)]
struct Incoming<'a> {
    error: Option<Refusal>,
    connect: Option<Connected>,
    subscribe: Option<Subscribed>,
    #[serde(borrow)]
    push: Option<Push<'a>>,
}

#[derive(Deserialize)]
struct Refusal {
    code: u32,
    message: String,
    #[serde(default)]
    temporary: bool,
}

#[derive(Deserialize)]
struct Connected {
    /// The seconds between two pings.
    ping: u64,
}

#[derive(Deserialize)]
struct Subscribed {
    epoch: Epoch,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    recovered: bool,
}

#[derive(Deserialize)]
struct Push<'a> {
    #[serde(borrow, rename = "pub")]
    publication: Option<Publication<'a>>,
    unsubscribe: Option<Unsubscribed>,
}

#[derive(Deserialize)]
struct Publication<'a> {
    offset: u64,
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct Unsubscribed {
    code: u32,
    reason: String,
}

impl Device {
    /// Connects, and asks for everything after `since` in the feed with this name.
    pub(crate) async fn connect(reach: &Reach, token: &str, feed: &str, since: Position) -> Result<Self, End> {
        let authority = reach.authority();
        let opening = async {
            let stream = reach.connect().await.map_err(|e| End::Lost(format!("{authority}: {e:#}")))?;
            let url = format!("ws://{authority}/connection/websocket");
            let (socket, _) = client_async(url, stream).await.map_err(|error| match error {
                tungstenite::Error::Http(response) if response.status().is_client_error() => {
                    End::Final(format!("the server refused the WebSocket with HTTP status {}", response.status()))
                }
                other => End::Lost(other.to_string()),
            })?;
            let mut device = Self { socket, received: VecDeque::new(), silence_max: CONNECT_WITHIN };
            let connect = json!({"id": 1, "connect": {"token": token, "name": "feedgate tail"}});
            let subscribe = json!({"id": 2, "subscribe": {
                "channel": feed, "recover": true, "offset": since.offset, "epoch": since.epoch,
                "data": {"deliver": "items"},
            }});
            device.send(format!("{connect}\n{subscribe}")).await?;
            Ok(device)
        };
        timeout(CONNECT_WITHIN, opening)
            .await
            .unwrap_or_else(|_| Err(End::Lost(format!("{authority} did not answer in time"))))
    }

    /// Waits for the next event. Events come in the server's order. Not cancel safe: if the future is dropped while it
    /// answers a ping, the changes behind the ping are lost.
    pub(crate) async fn next(&mut self) -> Result<Event, End> {
        loop {
            if let Some(event) = self.received.pop_front() {
                return Ok(event);
            }
            let received = timeout(self.silence_max, self.socket.next()).await;
            let message = received.map_err(|_| End::Lost("the server has fallen silent".to_owned()))?;
            match message {
                Some(Ok(Message::Text(frame))) => self.take_in(frame.as_str()).await?,
                Some(Ok(Message::Close(frame))) => return Err(closed(frame)),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(End::Lost(format!("the connection broke: {error}"))),
                None => return Err(closed(None)),
            }
        }
    }

    async fn take_in(&mut self, frame: &str) -> Result<(), End> {
        for line in frame.lines() {
            let incoming = serde_json::from_str(line);
            let strange = |error| End::Final(format!("the server sent what is not the protocol: {error}"));
            match incoming.map_err(strange)? {
                Incoming { error: Some(refusal), .. } => return Err(refused(refusal)),
                Incoming { connect: Some(connected), .. } => {
                    self.silence_max = Duration::from_secs(connected.ping) + PING_GRACE;
                }
                Incoming { subscribe: Some(Subscribed { epoch, offset, recovered }), .. } => {
                    self.received.push_back(Event::Subscribed { position: Position { epoch, offset }, recovered });
                }
                Incoming { push: Some(push), .. } => self.pushed(push)?,
                Incoming { error: None, connect: None, subscribe: None, push: None } => {
                    self.send("{}".to_owned()).await?;
                }
            }
        }
        Ok(())
    }

    fn pushed(&mut self, push: Push<'_>) -> Result<(), End> {
        if let Some(Unsubscribed { code, reason }) = push.unsubscribe {
            return Err(End::Lost(format!("the server ended the subscription: {reason} ({code})")));
        }
        let event = push.publication.map(|publication| Event::Changed {
            offset: publication.offset,
            change: publication.data.get().to_owned(),
        });
        self.received.extend(event);
        Ok(())
    }

    async fn send(&mut self, text: String) -> Result<(), End> {
        let sent = timeout(PING_GRACE, self.socket.send(Message::text(text))).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(End::Lost(format!("the connection broke: {error}"))),
            Err(_) => Err(End::Lost("the server takes nothing in".to_owned())),
        }
    }
}

fn refused(refusal: Refusal) -> End {
    /// The code for a token that has expired, so another connection with a new one will succeed.
    const TOKEN_EXPIRED: u32 = 109;
    let Refusal { code, message, temporary } = refusal;
    let why = format!("the server refused: {message} ({code})");
    if temporary || code == TOKEN_EXPIRED { End::Lost(why) } else { End::Final(why) }
}

/// The protocol says by ranges of codes whether to connect again: a client does so after codes below 3000 (except
/// 1009), 3000-3499 and 4000-4499.
fn closed(frame: Option<CloseFrame>) -> End {
    let Some(CloseFrame { code, reason }) = frame else {
        return End::Lost("the connection was cut".to_owned());
    };
    let code = u16::from(code);
    let why = format!("the server closed the connection: {} ({code})", reason.as_str());
    match code {
        1009 | 3500..=3999 | 4500..=4999 => End::Final(why),
        _ => End::Lost(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_code_says_whether_to_come_back() {
        let close = |code: u16| closed(Some(CloseFrame { code: code.into(), reason: "why".into() }));
        for code in [1000, 1001, 1006, 3000, 3001, 3005, 3499, 4000, 4499] {
            assert!(matches!(close(code), End::Lost(_)), "{code}");
        }
        for code in [1009, 3500, 3501, 3999, 4500, 4999] {
            assert!(matches!(close(code), End::Final(_)), "{code}");
        }
        assert!(matches!(closed(None), End::Lost(_)));
    }

    #[test]
    fn only_a_temporary_refusal_or_an_expired_token_is_tried_again() {
        let refusal = |code, temporary| refused(Refusal { code, message: "why".to_owned(), temporary });
        assert!(matches!(refusal(111, true), End::Lost(_)));
        assert!(matches!(refusal(109, false), End::Lost(_)));
        assert_eq!(refusal(101, false), End::Final("the server refused: why (101)".to_owned()));
    }
}
