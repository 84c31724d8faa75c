//! A gateway without a socket: the router, the stores in a directory of their own, and a worker.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, header};
use feedgate_common::feed::{DEFAULT_BACKFILL, Feeds, Publisher};
use feedgate_common::intake;
use feedgate_common::named::{NamedFeed, NamedFeeds};
use feedgate_common::search::TextFields;
use feedgate_common::{Archive, InboxKey, Sessions};
use feedgate_embedded::Embedded;
use feedgate_gateway::{ApiKey, Gateway, Keys, Parts, Role, Roles, Settings, Surface, clock, serve};
use feedgate_timeline::{FanOut, Worker};
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use percent_encoding::percent_decode_str;
use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const API_KEY: &str = "the-api-key";
pub(crate) const TOKEN_KEY: &[u8] = b"0123456789abcdef0123456789abcdef";
const BUCKETS: u16 = 4;
const UNREAD: Duration = Duration::from_secs(3600);

/// An API key that has this role alone.
pub(crate) fn key_of(role: &str) -> String {
    format!("the key of the role {role}").replace(' ', "-")
}

/// What a request got.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The body of the answer as it came.
    pub(crate) text: String,
    /// Read as JSON; null if there was nothing, or a number that no `Value` can hold.
    pub(crate) json: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The answer itself, if it has this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

pub(crate) struct Server {
    stores: Embedded,
    router: axum::Router,
    pub(crate) messages: Arc<dyn intake::Backend>,
    keys: Keys,
    document: Value,
    stop: CancellationToken,
    worker: JoinHandle<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Server {
    /// On a directory that goes with the returned guard.
    pub(crate) async fn start() -> (Self, TempDir) {
        let dir = tempfile::tempdir().unwrap();
        (Self::open(dir.path()).await, dir)
    }

    pub(crate) async fn open(dir: &Path) -> Self {
        Self::open_with(dir, vec![]).await
    }

    /// Starts a server with these named feeds. The Archive gives them their numbers.
    pub(crate) async fn open_with(dir: &Path, named: Vec<NamedFeed>) -> Self {
        Self::open_searching(dir, named, None).await
    }

    /// Starts a server with these named feeds that searches the text of these fields.
    pub(crate) async fn open_searching(dir: &Path, named: Vec<NamedFeed>, search: Option<TextFields>) -> Self {
        Self::open_as(dir, named, search, false).await
    }

    /// Starts a server that lets the items of authors stand in their own feeds.
    pub(crate) async fn open_with_own_posts(dir: &Path) -> Self {
        Self::open_as(dir, vec![], None, true).await
    }

    async fn open_as(dir: &Path, mut named: Vec<NamedFeed>, search: Option<TextFields>, own_posts: bool) -> Self {
        let stores = Embedded::open(dir, BUCKETS).unwrap();
        let names: Vec<_> = named.iter().map(|feed| feed.name.clone()).collect();
        for (feed, id) in named.iter_mut().zip(stores.archive.intern_feeds(&names).await.unwrap()) {
            feed.id = id;
        }
        let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), DEFAULT_BACKFILL);
        let feeds = feeds.with_retention(UNREAD, Arc::new(clock::now)).with_named(NamedFeeds::new(named).unwrap());
        let feeds = Arc::new(feeds.with_search(search).with_own_posts(own_posts));
        // The worker does so too, a little later.
        stores.archive.set_own_posts(own_posts).await.unwrap();
        let stop = CancellationToken::new();
        let worker =
            Worker::new(FanOut::new(feeds.clone()), stores.jobs.clone(), stores.doorbell.clone(), Default::default());
        let stopping = stop.clone();
        let worker = tokio::spawn(async move { worker.run(stopping).await });
        let keys = Role::ALL.iter().fold(Keys::new(API_KEY, TOKEN_KEY), |keys, role| {
            let key = ApiKey::new(role.name(), Roles::from_iter([*role]), &key_of(role.name())).unwrap();
            keys.with_api_key(key).unwrap()
        });
        let gateway = Gateway::new(Parts {
            feeds,
            publisher: Arc::new(Publisher::new(stores.archive.clone(), stores.jobs.clone())),
            sessions: stores.sessions.clone(),
            doorbell: stores.doorbell.clone(),
            jobs: stores.jobs.clone(),
            keys: keys.clone(),
            settings: Settings::default(),
            node: "n1".to_owned(),
            registry: feedgate_common::metrics::registry(),
            shown: Arc::new(Vec::new),
        });
        let document = serde_json::from_str(include_str!("../../../docs/openapi.json")).unwrap();
        let (router, messages) = (gateway.api(), gateway.messages());
        // Requests go to the router; the port is there for what a gateway does besides.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let served = tokio::spawn(serve(gateway, listener, Surface::All, None, stop.clone().cancelled_owned()));
        let server = Self { stores, router, messages, keys, document, stop, worker, served };
        server.begun().await;
        server
    }

    async fn begun(&self) {
        let ready = async {
            while self.send(request("GET /readyz", None, None)).await.status != 200 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(300), ready).await.expect("the gateway begins");
    }

    pub(crate) fn sessions(&self) -> &dyn Sessions {
        &*self.stores.sessions
    }

    /// Lets the store lose this user's inbox of the main feed, as it does when nobody reads it for long.
    pub(crate) async fn forget_inbox(&self, user: &str) {
        let numbers = self.stores.archive.intern(&[user.parse().unwrap()]).await.unwrap();
        self.stores.inboxes.discard(InboxKey::main(numbers[0])).await.unwrap();
    }

    pub(crate) fn archive(&self) -> &dyn Archive {
        &*self.stores.archive
    }

    /// Ends the worker and lets go of the directory.
    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.worker.await.unwrap();
        self.served.await.unwrap().unwrap();
        drop((self.router, self.messages));
        self.stores.close().await.unwrap();
    }

    /// A reader's token that is good for a minute.
    pub(crate) fn token(&self, user: &str) -> String {
        self.token_until(user, u64::try_from(clock::now()).unwrap() / 1000 + 60)
    }

    /// A reader's token that expires at this Unix second.
    pub(crate) fn token_until(&self, user: &str, exp: u64) -> String {
        self.keys.mint(&user.parse().unwrap(), None, clock::now(), exp)
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// Any request, as it is.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().as_str().to_lowercase(), request.uri().path().to_owned());
        let query = request.uri().query().unwrap_or_default().to_owned();
        let response = self.begin(request).await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let is_endless =
            headers.get("content-type").is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        let mut body = response.into_body();
        let bytes = if is_endless {
            let first = body.frame().await;
            first.map(|frame| frame.unwrap().into_data().unwrap()).unwrap_or_default()
        } else {
            body.collect().await.unwrap().to_bytes()
        };
        // What is no text, such as a backup, is text as far as it can be.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        let answer = Answer { status, headers, text, json };
        self.hold_against_the_document(&method, &path, &answer);
        if answer.status < 300 {
            self.hold_what_was_taken(&method, &path, &query);
        }
        answer
    }

    /// An answer whose body is still to come.
    pub(crate) async fn begin(&self, request: Request<Body>) -> Response<Body> {
        TowerToHyperService::new(self.router.clone()).call(request).await.unwrap()
    }

    /// The status that a port of readers answers with.
    pub(crate) async fn on_a_readers_port(&self, request: Request<Body>) -> u16 {
        self.begin_on_a_readers_port(request).await.status().as_u16()
    }

    /// The text that a port of readers answers with.
    pub(crate) async fn text_on_a_readers_port(&self, request: Request<Body>) -> String {
        let body = self.begin_on_a_readers_port(request).await.into_body().collect().await.unwrap();
        String::from_utf8(body.to_bytes().into()).unwrap()
    }

    async fn begin_on_a_readers_port(&self, request: Request<Body>) -> Response<Body> {
        let router = self.router.clone().layer(axum::Extension(Surface::Readers));
        TowerToHyperService::new(router).call(request).await.unwrap()
    }

    /// What a backend gets for a message with this subject, without its root.
    pub(crate) async fn message(&self, subject: &str, headers: &[(&str, &str)], body: &str) -> intake::Answer {
        let header =
            |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        match intake::read(subject, header, body.into()) {
            Ok(call) => self.messages.carry_out(call).await,
            Err(wrong) => self.messages.refuse(wrong),
        }
    }

    /// With the API key. `what` is `"METHOD /path"`.
    pub(crate) async fn call(&self, what: &str, body: Option<&str>) -> Answer {
        self.send(request(what, Some(API_KEY), body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(&format!("GET {path}"), None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(&format!("POST {path}"), Some(&body.to_string())).await
    }

    /// With a reader's token.
    pub(crate) async fn get_as(&self, user: &str, path: &str) -> Answer {
        self.send(request(&format!("GET {path}"), Some(&self.token(user)), None)).await
    }

    /// Publishes; the new item's id.
    pub(crate) async fn publish(&self, author: &str, body: &str) -> String {
        let accepted = self.post("/v1/items", json!({"author": author, "body": body})).await.expect(201);
        accepted.json["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn follow(&self, user: &str, author: &str) {
        self.call(&format!("PUT /v1/users/{user}/following/{author}"), None).await.expect(204);
    }

    /// Every page of a list, from the first to the one without `next`.
    pub(crate) async fn pages(&self, path: &str, limit: usize) -> Vec<Value> {
        self.pages_of(path, limit, "").await
    }

    /// The ids of all pages of a list that `more`, such as `&name=likes`, chooses.
    pub(crate) async fn whole(&self, path: &str, more: &str) -> Vec<u64> {
        self.pages_of(path, 2, more).await.iter().flat_map(ids).collect()
    }

    async fn pages_of(&self, path: &str, limit: usize, more: &str) -> Vec<Value> {
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}?limit={limit}{more}{cursor}")).await.expect(200).json;
            let next = page["next"].as_str().map(|next| format!("&cursor={next}"));
            pages.push(page);
            match next {
                Some(next) => cursor = next,
                None => return pages,
            }
        }
    }

    /// Waits until the worker has nothing left to do.
    pub(crate) async fn settled(&self) {
        let idle = async {
            while self.get("/v1/stats").await.expect(200).json["jobs"]["pending"] != 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(300), idle).await.expect("the worker comes to rest");
    }

    /// Everything that a request could have changed, as text.
    pub(crate) async fn everything(&self) -> String {
        let mut all = String::new();
        for path in [
            "/v1/users/ann/outbox",
            "/v1/users/ann/followers",
            "/v1/users/bob/following",
            "/v1/users/bob/feed",
            "/v1/users/bob/changes",
            "/v1/users/bob/sessions",
        ] {
            all += &self.get(path).await.expect(200).text;
        }
        let stats = self.get("/v1/stats").await.expect(200).json;
        format!("{all}{}{}", stats["archive"], stats["inboxes"])
    }

    /// The path of the document that `path` is one of.
    fn documented(&self, path: &str) -> Option<&Value> {
        let fits = |template: &str| {
            let (mut ours, mut theirs) = (template.split('/'), path.split('/'));
            ours.by_ref().zip(theirs.by_ref()).all(|(t, p)| t == p || (t.starts_with('{') && !p.is_empty()))
                && template.split('/').count() == path.split('/').count()
        };
        let paths = self.document["paths"].as_object().unwrap();
        // A literal path comes before one with open segments.
        paths.get(path).or_else(|| paths.iter().find(|(template, _)| fits(template)).map(|(_, item)| item))
    }

    #[track_caller]
    fn hold_against_the_document(&self, method: &str, path: &str, answer: &Answer) {
        if let Some(operation) = self.documented(path).and_then(|item| item.get(method)) {
            let statuses = operation["responses"].as_object().unwrap();
            let status = answer.status.to_string();
            assert!(statuses.contains_key(&status), "{method} {path}: {status} is not documented");
        }
        if answer.status >= 400 {
            assert_eq!(answer.header("content-type"), "application/problem+json", "{method} {path}");
            assert_eq!(answer.json["status"], answer.status, "{method} {path}");
        }
    }

    /// The document has each parameter of a query that was taken, and a pattern there lets its value through.
    #[track_caller]
    fn hold_what_was_taken(&self, method: &str, path: &str, query: &str) {
        let Some(item) = self.documented(path) else { return };
        let lists = [&item["parameters"], &item[method]["parameters"]].map(|list| list.as_array());
        let documented: Vec<&Value> = lists.into_iter().flatten().flatten().map(|entry| self.resolved(entry)).collect();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let parameter = documented.iter().find(|entry| entry["in"] == "query" && entry["name"] == name);
            let parameter = parameter.unwrap_or_else(|| panic!("{method} {path}: {name} is not documented"));
            let value = percent_decode_str(value).decode_utf8_lossy();
            if let Some(pattern) = self.resolved(&parameter["schema"])["pattern"].as_str() {
                let fits = Regex::new(pattern).unwrap().is_match(&value);
                assert!(fits, "{method} {path}: the document has {pattern} for {name}, and {value} was taken");
            }
        }
    }

    /// A part of the document, or what it refers to.
    fn resolved<'a>(&'a self, part: &'a Value) -> &'a Value {
        let reference = part["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        reference.map_or(part, |reference| self.document.pointer(reference).unwrap())
    }
}

/// `what` is `"METHOD /path"`; a body is JSON.
pub(crate) fn request(what: &str, bearer: Option<&str>, body: Option<&str>) -> Request<Body> {
    let (method, uri) = what.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(uri);
    if let Some(bearer) = bearer {
        request = request.header(header::AUTHORIZATION, format!("Bearer {bearer}"));
    }
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_owned()))).unwrap()
}

/// The ids of `{"items":[…]}`, in order.
pub(crate) fn ids(page: &Value) -> Vec<u64> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_str().unwrap().parse().unwrap()).collect()
}
