//! Who may do what. A reader's token opens GET on what is that reader's, and nothing else; no
//! credential is in any log line.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::Request;
use feedgate_gateway::{Keys, clock};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::document::operations;
use crate::erasures::finished;
use crate::server::{API_KEY, Server, key_of, request};

/// The routes that a reader's own token opens, with `{user}` the reader.
const READERS: [&str; 13] = [
    "feed",
    "changes",
    "seen",
    "following",
    "requests",
    "outbox",
    "sent",
    "sessions",
    "muted",
    "hidden",
    "blocked",
    "lists",
    "lists/close",
];

#[tokio::test]
async fn a_reader_who_asks_for_another_gets_403_on_every_route_and_changes_nothing() {
    let (server, _dir) = Server::start().await;
    server.publish("ann", "hers").await;
    server.follow("bob", "ann").await;
    server.settled().await;
    let before = server.everything().await;
    let token = server.token("mallory");
    let mut asked = 0;
    for (method, path, operation) in operations(&server) {
        let open = operation["security"].as_array().unwrap().is_empty();
        // Another test says who may change a comment: that of another user may not even be seen.
        let of_comment = path.ends_with("/comments/5");
        if open || path == "/connection/uni_sse" || of_comment || (method == "GET" && is_of_all(&path)) {
            continue;
        }
        let body = match path.ends_with("/comments") {
            true => r#"{"author":"ann","body":1}"#,
            false => r#"{"author":"ann","body":1,"ops":[]}"#,
        };
        let body = (method != "GET").then_some(body);
        let answer = server.send(request(&format!("{method} {path}"), Some(&token), body)).await;
        assert_eq!((answer.status, &answer.json["type"]), (403, &json!("/problems/forbidden")), "{method} {path}");
        assert!(!answer.text.contains("hers"), "{method} {path}");
        asked += 1;
    }
    assert!(asked >= 15, "the document lists the routes: {asked}");
    assert_eq!(server.everything().await, before);
    server.close().await;
}

#[tokio::test]
async fn a_reader_opens_what_is_the_readers_own_and_writes_nothing() {
    let (server, _dir) = Server::start().await;
    let before = server.everything().await;
    for (method, path, operation) in operations(&server) {
        let mut path = path.replace("/ann/", "/bob/");
        if is_reaction(&path) {
            path = path.replace("/ann", "/bob");
        }
        let named = READERS.iter().any(|last| path == format!("/v1/users/bob/{last}"));
        let sees = what_is_seen(&method, &path);
        let own = sees
            || is_reaction(&path)
            || path.starts_with("/v1/items/") && path.contains("/comments")
            || method == "GET" && (named || path == "/connection/uni_sse");
        let documented = operation["security"].as_array().unwrap().iter().any(|way| way.get("readerToken").is_some());
        let open = operation["security"].as_array().unwrap().is_empty();
        let of_all = method == "GET" && is_of_all(&path);
        assert_eq!(documented, own || of_all, "{method} {path}: the document tells who may");
        if open || of_all {
            continue;
        }
        let body = (method != "GET").then_some("{}");
        let answer = server.send(request(&format!("{method} {path}"), Some(&server.token("bob")), body)).await;
        let status = match own {
            true if is_reaction(&path) || path.ends_with("/comments") => 404, // There is no such item.
            true if method == "DELETE" => 404,                                // Nor such a comment.
            true if sees || is_of_all(&path) => 422,                          // The body says nothing.
            true => 200,
            false => 403,
        };
        assert_eq!(answer.status, status, "{method} {path}");
    }
    assert_eq!(server.everything().await, before);
    server.close().await;
}

/// Whether any reader may GET this: items, of which each reader sees some and none of what they said before, also by
/// search, and what is said of a user.
fn is_of_all(path: &str) -> bool {
    let items = path.starts_with("/v1/items") && !path.ends_with("/versions");
    items || path.starts_with("/v1/search/") || path == "/v1/users/ann"
}

/// Whether a reaction is given or taken back, which a reader may do in the reader's own name.
fn is_reaction(path: &str) -> bool {
    path.starts_with("/v1/items/") && path.contains("/reactions/")
}

/// The one thing that a reader may say of what is the reader's own.
fn what_is_seen(method: &str, path: &str) -> bool {
    method == "PUT" && path.ends_with("/seen")
}

#[tokio::test]
async fn a_reader_sees_own_items_and_those_of_followed_authors_and_others_look_like_none() {
    let (server, _dir) = Server::start().await;
    let (own, followed) = (server.publish("bob", "own").await, server.publish("ann", "followed").await);
    let hidden = json!({"author": "eve", "body": "hidden", "id": "666", "foreign_id": "secret"});
    server.post("/v1/items", hidden).await.expect(201);
    server.follow("bob", "ann").await;
    for id in [&own, &followed] {
        server.get_as("bob", &format!("/v1/items/{id}")).await.expect(200);
    }
    let (unseen, never) = (server.get_as("bob", "/v1/items/666").await, server.get_as("bob", "/v1/items/667").await);
    assert_eq!((unseen.status, never.status), (404, 404));
    assert_eq!(unseen.text.replace("666", "667"), never.text, "nothing tells that the item exists");
    let by_key = server.get_as("bob", "/v1/items/foreign:secret").await.expect(404);
    assert_eq!(by_key.text.replace("secret", "other"), server.get_as("bob", "/v1/items/foreign:other").await.text);
    let several = server.get_as("bob", &format!("/v1/items?ids=666,{own},{followed}")).await.expect(200);
    assert_eq!((several.json["items"].as_array().unwrap().len(), &several.json["missing"]), (2, &json!(["666"])));

    server.call("DELETE /v1/users/bob/following/ann", None).await.expect(204);
    server.get_as("bob", &format!("/v1/items/{followed}")).await.expect(404);
    server.get_as("nobody", &format!("/v1/items/{followed}")).await.expect(404);
    server.close().await;
}

#[tokio::test]
async fn a_reader_sees_what_is_addressed_and_nothing_beyond_a_shield() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    let posted = server.publish("ann", "to all").await;
    let direct = json!({"author": "ann", "body": "psst", "audience": {"users": ["bob", "eve"]}});
    let direct = server.post("/v1/items", direct).await.expect(201).json["id"].as_str().unwrap().to_owned();
    let sees = async |user: &str| {
        let both = server.get_as(user, &format!("/v1/items?ids={posted},{direct}")).await.expect(200).json;
        for id in both["missing"].as_array().unwrap() {
            server.get_as(user, &format!("/v1/items/{}", id.as_str().unwrap())).await.expect(404);
        }
        let shown: Vec<String> =
            both["items"].as_array().unwrap().iter().map(|i| i["body"].as_str().unwrap().to_owned()).collect();
        shown.join(", ")
    };
    assert_eq!((&*sees("ann").await, &*sees("bob").await), ("to all, psst", "to all, psst"));
    assert_eq!((&*sees("eve").await, &*sees("mallory").await), ("psst", ""), "not a follower");
    for (what, shown) in [
        ("PUT /v1/users/bob/muted/ann", "psst"),
        ("DELETE /v1/users/bob/muted/ann", "to all, psst"),
        ("PUT /v1/users/ann/hidden/bob", "psst"),
        ("DELETE /v1/users/ann/hidden/bob", "to all, psst"),
        ("PUT /v1/users/ann/blocked/bob", ""),
        ("DELETE /v1/users/ann/blocked/bob", "to all, psst"),
        ("PUT /v1/users/bob/blocked/ann", ""),
    ] {
        server.call(what, None).await.expect(204);
        assert_eq!(sees("bob").await, shown, "{what}");
    }
    server.close().await;
}

#[tokio::test]
async fn an_api_key_opens_what_its_roles_allow_and_nothing_else() {
    let (server, _dir) = Server::start().await;
    server.publish("ann", "hers").await;
    server.settled().await;
    let mut refused = 0;
    for (method, path, operation) in operations(&server) {
        let Some(takes) = operation["security"][0]["apiKey"][0].as_str() else { continue };
        for role in ["read", "publish", "admin"] {
            server.settled().await;
            let before = server.everything().await;
            let body = (method != "GET").then_some("{");
            let answer = server.send(request(&format!("{method} {path}"), Some(&key_of(role)), body)).await;
            let open = role == takes || role == "admin";
            // An erasure goes on behind its answer.
            if open && path.ends_with("/erase") {
                finished(&server, answer.json["id"].as_str().unwrap()).await;
            }
            assert_eq!(answer.status != 403, open, "{method} {path} with the role {role}: {}", answer.text);
            if !open {
                let or_admin = if takes == "admin" { "" } else { ", or admin" };
                assert!(answer.text.contains(&format!("takes the role {takes}{or_admin}\"")), "{}", answer.text);
                assert_eq!(server.everything().await, before, "{method} {path}");
                refused += 1;
            }
        }
    }
    assert!(refused >= 30, "the document names the roles: {refused}");
    server.close().await;
}

#[tokio::test]
async fn without_good_credentials_every_route_is_401_with_a_challenge() {
    let (server, _dir) = Server::start().await;
    let now = u64::try_from(clock::now()).unwrap() / 1000;
    let expired = format!("Bearer {}", server.token_until("ann", now - 1));
    let forged = format!("Bearer {}", Keys::new("x", b"another key").mint(&"ann".parse().unwrap(), None, 0, now + 60));
    let bad = [
        (None, "Bearer realm=\"feedgate\""),
        (Some("Bearer"), "invalid_token"),
        (Some("Bearer "), "invalid_token"),
        (Some("Basic YTpi"), "invalid_token"),
        (Some(API_KEY), "invalid_token"),
        (Some("Bearer the-api-kez"), "invalid_token"),
        (Some("Bearer the-api-key x"), "invalid_token"),
        (Some(&*expired), "invalid_token"),
        (Some(&*forged), "invalid_token"),
    ];
    for (method, path, operation) in operations(&server) {
        if operation["security"].as_array().unwrap().is_empty() {
            continue;
        }
        for (authorization, challenge) in bad {
            let mut request = Request::builder().method(&*method).uri(&*path);
            if let Some(authorization) = authorization {
                request = request.header("authorization", authorization);
            }
            // Neither type nor body are looked at before the credentials.
            let answer = server.send(request.body(Body::from("{")).unwrap()).await.expect(401);
            assert!(answer.header("www-authenticate").contains(challenge), "{method} {path} {authorization:?}");
        }
    }
    let two = Request::get("/v1/stats").header("authorization", format!("Bearer {API_KEY}"));
    let two = two.header("authorization", format!("Bearer {API_KEY}")).body(Body::empty()).unwrap();
    server.send(two).await.expect(401);
    let in_the_url = Request::get(format!("/v1/stats?api_key={API_KEY}")).body(Body::empty()).unwrap();
    server.send(in_the_url).await.expect(401);
    let any_case = Request::get("/v1/stats").header("authorization", format!("bEARER {API_KEY}"));
    server.send(any_case.body(Body::empty()).unwrap()).await.expect(200);
    server.close().await;
}

#[tokio::test]
async fn on_a_readers_port_the_api_key_opens_nothing_and_its_routes_are_not_there() {
    let (server, _dir) = Server::start().await;
    server.get("/v1/users/ann/feed").await.expect(200); // A first look names a user.
    let before = server.everything().await;
    for (method, path, operation) in operations(&server) {
        let ways = operation["security"].as_array().unwrap();
        let body = (method != "GET").then_some(r#"{"author":"ann","body":1}"#);
        let what = format!("{method} {path}");
        let with_key = server.on_a_readers_port(request(&what, Some(API_KEY), body)).await;
        let with_token = server.on_a_readers_port(request(&what, Some(&server.token("ann")), body)).await;
        if ways.is_empty() {
            assert!(with_key == with_token && [200, 400].contains(&with_key), "{what}: {with_key}, {with_token}");
        } else if ways.iter().any(|way| way.get("readerToken").is_some()) {
            assert_eq!(with_key, 401, "{what}");
            // What is seen, or a comment is to say, is not in the body.
            let says_nothing = what_is_seen(&method, &path) || method == "PATCH";
            let well = if says_nothing { [422; 3] } else { [200, 400, 404] };
            assert!(well.contains(&with_token), "{what}: {with_token}");
        } else {
            assert_eq!((with_key, with_token), (404, 404), "{what}");
        }
    }
    let mut said = vec![];
    for bearer in [API_KEY, "no key"] {
        said.push(server.text_on_a_readers_port(request("GET /v1/users/ann/feed", Some(bearer), None)).await);
    }
    assert!(
        said[0].contains("this port takes no API key, the one that the server's admin_listen names does"),
        "{said:?}"
    );
    assert_eq!(said[0], said[1], "nobody learns here whether a key is right");
    assert_eq!(server.everything().await, before);
    server.close().await;
}

#[tokio::test]
async fn no_credential_is_in_a_log_line() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let (server, _dir) = Server::start().await;
    let token = server.token("bob");
    let broken = format!("{token}x");
    for (method, path, _) in operations(&server) {
        for credential in [API_KEY, &token, &broken] {
            let body = (method != "GET").then_some(r#"{"author":"ann","body":1}"#);
            server.send(request(&format!("{method} {path}"), Some(credential), body)).await;
        }
    }
    let minted = server.call("POST /v1/users/bob/token", None).await.expect(200).json["token"].clone();
    server.settled().await;
    tracing::error!("the log is listened to");
    let log = log.text.lock().unwrap().clone();
    assert!(log.contains("the log is listened to"));
    let signature = token.rsplit('.').next().unwrap();
    for secret in [API_KEY, &*token, &*broken, signature, minted.as_str().unwrap()] {
        assert!(!log.contains(secret), "{log}");
    }
    server.close().await;
}

/// Every event and span, of every level, as text.
#[derive(Clone, Default)]
struct Log {
    text: Arc<Mutex<String>>,
}

impl Log {
    fn note(&self, record: impl FnOnce(&mut dyn Visit)) {
        struct Text<'a>(&'a mut String);
        impl Visit for Text<'_> {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                writeln!(self.0, "{field}={value:?}").unwrap();
            }
        }
        record(&mut Text(&mut self.text.lock().unwrap()));
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.note(|text| span.record(text));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        self.note(|text| values.record(text));
    }
    fn event(&self, event: &Event<'_>) {
        self.note(|text| event.record(text));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
