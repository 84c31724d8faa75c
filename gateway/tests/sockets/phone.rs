//! A device at the wire: it sends lines and gets lines, and sees why a connection was closed.

use std::collections::VecDeque;
use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;

use super::rig::within;

pub(crate) struct Phone {
    pub(crate) ws: WebSocketStream<TcpStream>,
    lines: VecDeque<Value>,
    /// Frames of text so far.
    pub(crate) frames: usize,
    /// Every line to the byte, if somebody wants them.
    pub(crate) raw: Option<Vec<String>>,
    /// Answers pings by itself.
    pub(crate) polite: bool,
    id: u32,
}

/// What a socket receives next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Line(Value),
    Closed(u16),
    /// Without a close frame.
    Cut,
}

impl Phone {
    pub(crate) async fn open(addr: SocketAddr) -> Self {
        Self::over(TcpStream::connect(addr).await.unwrap()).await
    }

    /// Over a connection that stands already.
    pub(crate) async fn over(tcp: TcpStream) -> Self {
        let url = format!("ws://{}/connection/websocket", tcp.peer_addr().unwrap());
        Self::upgraded(url.into_client_request().unwrap(), tcp).await
    }

    /// A device that has agreed on Protobuf. Its frames are not read as lines.
    pub(crate) async fn of_protobuf(addr: SocketAddr) -> Self {
        let mut request = format!("ws://{addr}/connection/websocket").into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("centrifuge-protobuf"));
        Self::upgraded(request, TcpStream::connect(addr).await.unwrap()).await
    }

    async fn upgraded(request: Request, tcp: TcpStream) -> Self {
        let (ws, _) = within(tokio_tungstenite::client_async(request, tcp)).await.unwrap();
        Self { ws, lines: VecDeque::new(), frames: 0, raw: None, polite: true, id: 1000 }
    }

    pub(crate) async fn send(&mut self, text: impl Into<String>) {
        self.ws.send(Message::text(text.into())).await.unwrap();
    }

    #[track_caller]
    pub(crate) fn next(&mut self) -> impl Future<Output = Next> {
        within(self.next_now())
    }

    async fn next_now(&mut self) -> Next {
        loop {
            if let Some(line) = self.lines.pop_front() {
                if line == json!({}) && self.polite {
                    self.send("{}").await;
                    continue;
                }
                return Next::Line(line);
            }
            match self.ws.next().await {
                Some(Ok(Message::Text(text))) => {
                    self.frames += 1;
                    self.raw.iter_mut().for_each(|raw| raw.extend(text.lines().map(str::to_owned)));
                    self.lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
                }
                Some(Ok(Message::Close(Some(frame)))) => return Next::Closed(frame.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Next::Cut,
            }
        }
    }

    #[track_caller]
    pub(crate) fn line(&mut self) -> impl Future<Output = Value> {
        let next = self.next();
        async move {
            match next.await {
                Next::Line(line) => line,
                other => panic!("a line was expected, not {other:?}"),
            }
        }
    }

    /// Reads on until the connection ends; why it did.
    pub(crate) async fn closed(&mut self) -> Next {
        loop {
            match self.next().await {
                Next::Line(_) => {}
                end => return end,
            }
        }
    }

    /// Ends only if the connection does; lines so far are kept.
    pub(crate) async fn outlives(&mut self) -> Next {
        let mut kept = VecDeque::new();
        loop {
            match self.next().await {
                Next::Line(line) => kept.push_back(line),
                end => return end,
            }
        }
    }

    /// Sends a command and returns its reply; pushes before it are kept for later.
    pub(crate) async fn ask(&mut self, verb: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(json!({"id": id, verb: params}).to_string()).await;
        let mut kept = VecDeque::new();
        loop {
            let line = self.line().await;
            if line["id"] == id {
                kept.append(&mut self.lines);
                self.lines = kept;
                return line;
            }
            kept.push_back(line);
        }
    }

    /// The error code of a command that must be refused.
    pub(crate) async fn refused(&mut self, verb: &str, params: Value) -> u64 {
        let reply = self.ask(verb, params).await;
        reply["error"]["code"].as_u64().unwrap_or_else(|| panic!("an error was expected: {reply}"))
    }

    pub(crate) async fn connect(&mut self, token: &str) -> Value {
        let reply = self.ask("connect", json!({ "token": token })).await;
        assert!(reply["connect"]["client"].is_string(), "{reply}");
        reply
    }

    pub(crate) async fn subscribe(&mut self, more: Value) -> Value {
        let mut params = json!({"channel": "feed", "data": {"deliver": "items"}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask("subscribe", params).await
    }

    /// The next publication, of the main feed: its offset and data.
    pub(crate) async fn publication(&mut self) -> (u64, Value) {
        let (channel, offset, data) = self.pushed().await;
        assert_eq!(channel, "feed", "{offset}: {data}");
        (offset, data)
    }

    /// The next publication: its channel, offset and data.
    pub(crate) async fn pushed(&mut self) -> (String, u64, Value) {
        let mut line = self.line().await;
        let mut publication = line["push"]["pub"].take();
        let offset = publication["offset"].as_u64().unwrap_or_else(|| panic!("a push was expected: {line}"));
        (line["push"]["channel"].as_str().unwrap().to_owned(), offset, publication["data"].take())
    }
}
