//! A backend that talks to one server over HTTP, with the API key.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::time::sleep;

/// Operations in a batch, at most.
const BATCH: usize = 1000;

/// A client of the HTTP API of one server. Every answer but success is an error that quotes it.
pub struct Backend {
    address: SocketAddr,
    api_key: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Backend {
    /// One that talks to `address`. Connects when it first asks.
    pub fn new(address: SocketAddr, api_key: &str) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { address, api_key: api_key.to_owned(), client }
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Fails while the server is not ready.
    pub async fn ready(&self) -> anyhow::Result<()> {
        self.get("/readyz").await.map(|_| ())
    }

    /// Lets `users` follow `author`.
    pub async fn follow(&self, users: &[String], author: &str) -> anyhow::Result<()> {
        for chunk in users.chunks(BATCH) {
            let ops = chunk.iter().map(|user| json!({"op": "follow", "user": user, "author": author}));
            self.batch("/v1/follows/batch", ops.collect()).await?;
        }
        Ok(())
    }

    /// Registers a device of `user` for push notifications of the main feed.
    pub async fn register(&self, user: &str, device: &str) -> anyhow::Result<()> {
        let registered = json!({"platform": "fcm", "push_token": format!("token of {device} of {user}")});
        self.request(Method::PUT, &format!("/v1/users/{user}/devices/{device}"), Some(registered)).await.map(|_| ())
    }

    /// Gives an author a class, which counts from the next item on.
    pub async fn classify(&self, author: &str, class: &str) -> anyhow::Result<()> {
        self.request(Method::PUT, &format!("/v1/authors/{author}"), Some(json!({ "class": class }))).await.map(|_| ())
    }

    /// Publishes one item of `author` with a body of about `bytes` bytes.
    pub async fn publish(&self, author: &str, bytes: usize) -> anyhow::Result<()> {
        self.publish_text(author, &"x".repeat(bytes)).await
    }

    /// Publishes one item of `author` whose body is `{"text": text}`.
    pub async fn publish_text(&self, author: &str, text: &str) -> anyhow::Result<()> {
        let item = json!({"author": author, "body": {"text": text}});
        self.request(Method::POST, "/v1/items", Some(item)).await?;
        Ok(())
    }

    /// Publishes one item of `author`, and gives its id.
    pub async fn publish_item(&self, author: &str) -> anyhow::Result<u64> {
        let item = json!({"author": author, "body": {"text": "watched"}});
        let answer = self.request(Method::POST, "/v1/items", Some(item)).await?;
        answer["id"].as_str().context("an item has an id")?.parse().context("a number")
    }

    /// Lets `user` like an item.
    pub async fn like(&self, item: u64, user: &str) -> anyhow::Result<()> {
        self.request(Method::PUT, &format!("/v1/items/{item}/reactions/like/{user}"), None).await.map(|_| ())
    }

    /// Likes the item in the names of all these users, in one commit.
    pub async fn like_all(&self, item: u64, users: impl Iterator<Item = String>) -> anyhow::Result<()> {
        let like = |user| json!({"op": "add", "item": item.to_string(), "kind": "like", "user": user});
        self.batch("/v1/reactions/batch", users.map(like).collect()).await
    }

    /// Publishes `count` of them, in one commit.
    pub async fn publish_burst(&self, author: &str, bytes: usize, count: u64) -> anyhow::Result<()> {
        let item = json!({"author": author, "body": {"text": "x".repeat(bytes)}});
        self.batch("/v1/items/batch", (0..count).map(|_| item.clone()).collect()).await
    }

    async fn batch(&self, path: &str, ops: Vec<Value>) -> anyhow::Result<()> {
        let answer = self.request(Method::POST, path, Some(json!({ "ops": ops }))).await?;
        let results = answer["results"].as_array().context("a batch answers with results")?;
        match results.iter().find(|result| result["status"].as_u64().is_none_or(|status| status >= 300)) {
            Some(refused) => Err(anyhow!("{path}: {refused}")),
            None => Ok(()),
        }
    }

    /// Reads the user's feed page, which makes the inbox if there is none.
    pub async fn page(&self, user: &str) -> anyhow::Result<()> {
        self.get(&format!("/v1/users/{user}/feed")).await.map(|_| ())
    }

    /// Waits until nothing is left to do.
    pub async fn quiet(&self) -> anyhow::Result<()> {
        let (started, mut pause) = (Instant::now(), Duration::from_millis(20));
        loop {
            let stats = self.get("/v1/stats").await?;
            if stats["jobs"]["pending"] == 0 && stats["archive"]["events_outstanding"] == 0 {
                return Ok(());
            }
            ensure!(started.elapsed() < Duration::from_secs(60), "the server does not come to rest: {stats}");
            sleep(pause).await;
            // The stats count inboxes and rows: asked all the time, they would be a good part of what is measured.
            pause = (2 * pause).min(Duration::from_millis(200));
        }
    }

    /// How many sessions the server counts.
    pub async fn sessions(&self) -> anyhow::Result<u64> {
        let stats = self.get("/v1/stats").await?;
        stats["sessions"]["sessions"].as_u64().context("the stats count the sessions")
    }

    /// What a GET of `path` answers.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.request(Method::GET, path, None).await
    }

    /// Reads what a GET of `path` answers, and does not look at it.
    pub async fn read(&self, path: &str) -> anyhow::Result<()> {
        self.send(Method::GET, path, None).await.map(|_| ())
    }

    /// What a call answers; null if that is no JSON. Fails unless it succeeds.
    pub async fn request(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        let body = self.send(method, path, body).await?;
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Bytes> {
        let body = body.map(|value| value.to_string()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.api_key))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body))?;
        let (head, body) = self.client.request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        ensure!(head.status.is_success(), "{path}: {} {}", head.status, String::from_utf8_lossy(&body));
        Ok(body)
    }
}
