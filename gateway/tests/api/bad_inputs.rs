//! Every bad input gets a precise 4xx, and changes nothing.
//!
//! A case is a request, the status, where the problem is (`/…` a pointer into the body, else a
//! field), and words that its detail must have.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::server::{API_KEY, Answer, Server, request};

/// `(request, body, status, where, words)`
type Case = (&'static str, &'static str, u16, &'static str, &'static str);

const ITEMS: &[Case] = &[
    ("POST /v1/items", "", 400, "", "line 1 column 0"),
    ("POST /v1/items", "{\"author\":\"ann\",\n\"body\":}", 400, "", "line 2 column 8"),
    ("POST /v1/items", "{\"author\":\"ann\",\"body\":1} x", 400, "", "trailing characters"),
    ("POST /v1/items", "{\"author\":\"ann\",\"body\":NaN}", 400, "", "line 1 column"),
    ("POST /v1/items", "[]", 422, "", "must be a JSON object"),
    ("POST /v1/items", "\"ann\"", 422, "", "must be a JSON object"),
    ("POST /v1/items", "{}", 422, "/author", "missing"),
    ("POST /v1/items", r#"{"body":1}"#, 422, "/author", "missing"),
    ("POST /v1/items", r#"{"author":"ann"}"#, 422, "/body", "missing"),
    ("POST /v1/items", r#"{"autor":"ann","body":1}"#, 422, "/autor", "known are \"author\""),
    ("POST /v1/items", r#"{"author":"ann","body":1,"idempotency_key":"k"}"#, 422, "/idempotency_key", "unknown field"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"body":2}"#, 422, "/body", "stands twice"),
    ("POST /v1/items", r#"{"author":7,"body":1}"#, 422, "/author", "must be a string, not 7"),
    ("POST /v1/items", r#"{"author":"","body":1}"#, 422, "/author", "1 to 64 characters"),
    ("POST /v1/items", r#"{"author":"a/n","body":1}"#, 422, "/author", "'/'"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"id":42}"#, 422, "/id", "must be a string, not 42"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"id":"042"}"#, 422, "/id", "decimal number"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"id":"-1"}"#, 422, "/id", "decimal number"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"id":"18446744073709551616"}"#, 422, "/id", "18446744073709551615"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"foreign_id":""}"#, 422, "/foreign_id", "1 to 128 bytes"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"foreign_id":"a\u0000"}"#, 422, "/foreign_id", "printable"),
    (
        "POST /v1/items",
        r#"{"author":"ann","body":1,"foreign_id":null}"#,
        422,
        "/foreign_id",
        "must be a string, not null",
    ),
    ("POST /v1/items", r#"{"author":"ann","body":1,"kind":""}"#, 422, "/kind", "1 to 64 characters"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"kind":["a"]}"#, 422, "/kind", "must be a string"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"published_at":-1}"#, 422, "/published_at", "1970"),
    (
        "POST /v1/items",
        r#"{"author":"ann","body":1,"published_at":1763600000}"#,
        422,
        "/published_at",
        "must be a Unix time in milliseconds, and 1763600000 is one in seconds: give 1763600000000",
    ),
    ("POST /v1/items", r#"{"author":"ann","body":1,"published_at":"now"}"#, 422, "/published_at", "integer"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"published_at":1.5}"#, 422, "/published_at", "integer"),
    (
        "POST /v1/items",
        r#"{"author":"ann","body":1,"published_at":99999999999999}"#,
        422,
        "/published_at",
        "300 s ahead",
    ),
    ("POST /v1/items", r#"{"author":"ann","body":1,"rank":9223372036854775808}"#, 422, "/rank", "64 bits"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"rank":9007199254740992}"#, 422, "/rank", "9007199254740991"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"rank":"1"}"#, 422, "/rank", "integer"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"mentions":"bob"}"#, 422, "/mentions", "must be a list"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"mentions":null}"#, 422, "/mentions", "must"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"mentions":["bob","a b"]}"#, 422, "/mentions/1", "may hold only"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"mentions":["bob",7]}"#, 422, "/mentions/1", "must be a string"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"mentions":[["bob"]]}"#, 422, "/mentions/0", "must be a string"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"audience":"all"}"#, 422, "/audience", "must be \"followers\""),
    ("POST /v1/items", r#"{"author":"ann","body":1,"audience":null}"#, 422, "/audience", "1 to 1000 readers"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"audience":["bob"]}"#, 422, "/audience", "{\"users\":[…]}"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"audience":{}}"#, 422, "/audience/users", "missing"),
    ("POST /v1/items", r#"{"author":"ann","body":1,"audience":{"user":[]}}"#, 422, "/audience/user", "unknown field"),
    (
        "POST /v1/items",
        r#"{"author":"ann","body":1,"audience":{"users":[]}}"#,
        422,
        "/audience/users",
        "1 to 1000 entries, it is empty",
    ),
    (
        "POST /v1/items",
        r#"{"author":"ann","body":1,"audience":{"users":"bob"}}"#,
        422,
        "/audience/users",
        "must be a list",
    ),
    (
        "POST /v1/items",
        r#"{"author":"ann","body":1,"audience":{"users":["bob",7]}}"#,
        422,
        "/audience/users/1",
        "must be a string, not 7",
    ),
    (
        "POST /v1/items",
        r#"{"author":"ann","body":1,"audience":{"users":["bob","b b"]}}"#,
        422,
        "/audience/users/1",
        "A-Z a-z 0-9",
    ),
    ("POST /v1/items", r#"{"author":"ann","body":[1e400]}"#, 422, "/body", "range of a double"),
    ("POST /v1/items", r#"{"author":"ann","body":"\ud800"}"#, 422, "/body", "half of a surrogate pair"),
    ("PATCH /v1/items/5", r#"{"body":{"\udc00":1}}"#, 422, "/body", "half of a surrogate pair"),
    ("POST /v1/items/batch", r#"{"ops":[]}"#, 422, "/ops", "1 to 1000 entries"),
    ("POST /v1/items/batch", r#"{"ops":{}}"#, 422, "/ops", "must be a list"),
    ("POST /v1/items/batch", r#"{}"#, 422, "/ops", "missing"),
    ("POST /v1/items/batch", r#"{"ops":[1],"x":1}"#, 422, "/x", "unknown field"),
    ("PATCH /v1/items/5", r#"{"body":2,"kind":"x"}"#, 422, "/kind", "known are \"body\""),
    ("PATCH /v1/items/5", "{}", 422, "/body", "missing"),
    ("PATCH /v1/items/5", "{}", 422, "/body", "give \"body\", \"rank\" or both"),
    ("PATCH /v1/items/5", r#"{"rank":null}"#, 422, "/rank", "an integer of 64 bits"),
    ("PATCH /v1/items/5", r#"{"rank":9007199254740992}"#, 422, "/rank", "9007199254740991"),
    ("PATCH /v1/items/5", r#"{"rank":1,"kind":"x"}"#, 422, "/kind", "known are \"body\""),
    ("PATCH /v1/items/5", r#"{"rank":1,"mentions":["bob"]}"#, 422, "/mentions", "must stand beside \"body\""),
    ("PATCH /v1/items/5", r#"{"body":1,"mentions":["a/n"]}"#, 422, "/mentions/0", "'/'"),
    ("PATCH /v1/items/6", r#"{"rank":2}"#, 404, "", "no item 6"),
    ("PATCH /v1/items/5", "{", 400, "", "line 1 column"),
    ("PATCH /v1/items/6", r#"{"body":2}"#, 404, "", "no item 6"),
    ("PATCH /v1/items/x", r#"{"body":2}"#, 400, "id", "decimal number"),
];

const URLS: &[Case] = &[
    ("GET /v1/items", "", 400, "ids", "1 to 100 item ids"),
    ("GET /v1/items?ids=", "", 400, "ids", "decimal number"),
    ("GET /v1/items?ids=5,,5", "", 400, "ids", "decimal number"),
    ("GET /v1/items?ids=foreign:a", "", 400, "ids", "decimal number"),
    ("GET /v1/items?ids=5&ids=5", "", 400, "ids", "stands twice"),
    ("GET /v1/items/6", "", 404, "", "no item 6"),
    ("GET /v1/items/foreign:%00", "", 404, "", "no item foreign:\0"),
    ("DELETE /v1/items/foreign:a%7F", "", 404, "", "no item foreign:a"),
    ("PATCH /v1/items/foreign:a%0Ab", r#"{"body":1}"#, 404, "", "no item foreign:a"),
    ("GET /v1/items/05", "", 400, "id", "decimal number"),
    ("GET /v1/items/foreign:", "", 400, "id", "must be followed by"),
    ("GET /v1/items/foreign:%FF", "", 400, "", "UTF-8"),
    ("GET /v1/items/6/reactions", "", 404, "", "no item 6"),
    ("GET /v1/items/6/reactions?kind=", "", 400, "kind", "1 to 64 bytes"),
    ("GET /v1/items/6/reactions?limit=1001", "", 400, "limit", "1 to 1000"),
    ("GET /v1/items/6/reactions?cursor=AAAA", "", 400, "cursor", "\"next\""),
    ("GET /v1/items/6/reactions?reader=bob", "", 400, "reader", "known are kind, cursor, limit, viewer"),
    ("GET /v1/items/6?viewer=a%20b", "", 400, "viewer", "A-Z a-z 0-9"),
    ("PUT /v1/items/6/reactions/like/bob", "", 404, "", "no item 6"),
    ("DELETE /v1/items/6/reactions/like/bob", "", 404, "", "no item 6"),
    ("PUT /v1/items/foreign:none/reactions/like/bob", "", 404, "", "no item foreign:none"),
    ("PUT /v1/items/06/reactions/like/bob", "", 400, "id", "decimal number"),
    ("PUT /v1/items/6/reactions/%0A/bob", "", 400, "kind", "no control character"),
    ("PUT /v1/items/6/reactions/like/a%20b", "", 400, "user", "A-Z a-z 0-9"),
    ("PUT /v1/items/6/reactions/like/bob?at=1", "", 400, "at", "takes none"),
    ("GET /v1/items/foreign:none", "", 404, "", "no item foreign:none"),
    ("DELETE /v1/items/6", "", 404, "", "no item 6"),
    ("PUT /v1/users/b%20b/following/ann", "", 400, "user", "A-Z a-z 0-9"),
    ("PUT /v1/users/bob/following/a%2Fb", "", 400, "author", "A-Z a-z 0-9"),
    ("DELETE /v1/users/bob/following/%C3%A4", "", 400, "author", "A-Z a-z 0-9"),
    ("GET /v1/users/bob/following?limit=0", "", 400, "limit", "1 to 1000"),
    ("GET /v1/users/bob/following?limit=1001", "", 400, "limit", "1 to 1000"),
    ("GET /v1/users/bob/followers?limit=+5", "", 400, "limit", "1 to 1000"),
    ("GET /v1/users/bob/followers?cursor=x", "", 400, "cursor", "\"next\""),
    ("GET /v1/users/bob/feed?limit=101", "", 400, "limit", "1 to 100"),
    ("GET /v1/users/bob/feed?limit=", "", 400, "limit", "1 to 100"),
    ("GET /v1/users/bob/feed?limit=18446744073709551617", "", 400, "limit", "1 to 100"),
    ("GET /v1/users/bob/feed?cursor=", "", 400, "cursor", "`next`"),
    ("GET /v1/users/bob/feed?cursor=AAAA", "", 400, "cursor", "`next`"),
    ("GET /v1/users/bob/feed?Limit=5", "", 400, "Limit", "known are name, limit, cursor"),
    ("GET /v1/users/bob/feed?name=likes", "", 404, "", "no feed named \"likes\"; there is \"feed\""),
    ("GET /v1/users/bob/changes?name=likes", "", 404, "", "no feed named \"likes\""),
    ("GET /v1/users/bob/changes?limit=1001", "", 400, "limit", "1 to 1000"),
    ("GET /v1/users/bob/changes?offset=1", "", 400, "epoch", "offset needs the epoch"),
    ("GET /v1/users/bob/changes?epoch=1", "", 400, "offset", "epoch needs the offset"),
    ("GET /v1/users/bob/changes?epoch=_&offset=1", "", 400, "epoch", "decimal number"),
    ("GET /v1/users/bob/changes?epoch=1&offset=-1", "", 400, "offset", "a number from 0"),
    ("GET /v1/users/bob/outbox?name=likes", "", 404, "", "no feed named \"likes\""),
    ("GET /v1/users/bob/outbox?cursor=5", "", 400, "cursor", "`next`"),
    ("GET /v1/users/bob/outbox?viewer=a%20b", "", 400, "viewer", "A-Z a-z 0-9"),
    ("GET /v1/users/bob/outbox?Viewer=ann", "", 400, "Viewer", "known are name, limit, cursor, viewer"),
    ("GET /v1/users/bob/sent?cursor=5", "", 400, "cursor", "`next`"),
    ("GET /v1/users/bob/sent?limit=101", "", 400, "limit", "1 to 100"),
    ("GET /v1/users/bob/sent?name=feed", "", 400, "name", "known are limit, cursor"),
    ("PUT /v1/users/bob/following/bob", "", 422, "", "bob cannot follow itself"),
    ("GET /v1/users/bob/requests?limit=0", "", 400, "limit", "1 to 1000"),
    ("GET /v1/users/bob/followers?cursor=7-x", "", 400, "cursor", "\"next\""),
    ("GET /v1/users/bob/requests?cursor=x", "", 400, "cursor", "\"next\""),
    ("PUT /v1/users/bob/followers/a%2Fb", "", 400, "reader", "A-Z a-z 0-9"),
    ("DELETE /v1/users/bob/sessions/d%20d", "", 400, "device", "A-Z a-z 0-9"),
    ("PUT /v1/users/bob/muted/a%2Fb", "", 400, "other", "A-Z a-z 0-9"),
    ("PUT /v1/users/b%20b/hidden/ann", "", 400, "user", "A-Z a-z 0-9"),
    ("DELETE /v1/users/bob/blocked/%C3%A4", "", 400, "other", "A-Z a-z 0-9"),
    ("PUT /v1/users/bob/muted/bob", "", 400, "other", "other must be another user"),
    ("PUT /v1/users/bob/hidden/bob", "", 400, "other", "other must be another user"),
    ("DELETE /v1/users/bob/blocked/bob", "", 400, "other", "other must be another user"),
    ("PUT /v1/users/bob/lists/close/bob", "", 400, "member", "member must be another user"),
    ("GET /v1/export?cursor=x", "", 400, "cursor", "cursor must be one that an export has given"),
    ("GET /v1/erasures/x", "", 400, "id", "the id of a receipt is a number"),
    ("PUT /v1/users/bob/lists/a%2Fb/ann", "", 400, "list", "A-Z a-z 0-9"),
    ("DELETE /v1/users/bob/lists/close/a%20b", "", 400, "member", "A-Z a-z 0-9"),
    ("GET /v1/users/bob/lists?limit=5", "", 400, "limit", "takes none"),
    ("GET /v1/users/bob/lists/close?limit=0", "", 400, "limit", "1 to 1000"),
    ("GET /v1/users/bob/lists/close?cursor=x", "", 400, "cursor", "\"next\""),
    ("GET /v1/users/bob/muted?limit=0", "", 400, "limit", "1 to 1000"),
    ("GET /v1/users/bob/hidden?cursor=-1", "", 400, "cursor", "\"next\""),
    ("GET /v1/users/bob/blocked?page=2", "", 400, "page", "known are limit, cursor"),
    ("GET /v1/users/bob/mutual?limit=1001", "", 400, "limit", "1 to 1000"),
    ("GET /v1/users/bob/mutual?cursor=", "", 400, "cursor", "\"next\""),
    ("GET /v1/authors/a%20b", "", 400, "author", "A-Z a-z 0-9"),
    ("GET /v1/authors/ann?name=x", "", 400, "name", "takes none"),
    ("GET /v1/stats?verbose=1", "", 400, "verbose", "takes none"),
    ("GET /v1/search/items?q=there%FF", "", 400, "", "the query is not UTF-8"),
    ("GET /v1/items/5/reactions?kind=lik%E9", "", 400, "", "the query is not UTF-8"),
    ("PUT /v1/users/bob/following/ann?%FF", "", 400, "", "the query is not UTF-8"),
];

const OTHERS: &[Case] = &[
    ("POST /v1/follows/batch", r#"{"ops":"follow"}"#, 422, "/ops", "must be a list"),
    ("POST /v1/follows/batch", r#"{"ops":[{}],"op":1}"#, 422, "/op", "unknown field"),
    ("PUT /v1/authors/ann", "{}", 422, "/class", "missing"),
    ("PUT /v1/authors/ann", r#"{"class":"star"}"#, 422, "/class", "\"auto\", \"push\", \"pull\" or \"everyone\""),
    ("PUT /v1/authors/ann", r#"{"class":3}"#, 422, "/class", "must be a string, not 3"),
    ("PUT /v1/authors/ann", r#"{"class":"pull","until":1}"#, 422, "/until", "known are \"class\""),
    ("PUT /v1/authors/ann", "[", 400, "", "line 1 column"),
    ("PUT /v1/authors/a%20b", r#"{"class":"pull"}"#, 400, "author", "A-Z a-z 0-9"),
    ("POST /v1/users/bob/token", r#"{"ttl":0}"#, 422, "/ttl", "1 to 2592000"),
    ("POST /v1/users/bob/token", r#"{"ttl":2592001}"#, 422, "/ttl", "1 to 2592000"),
    ("POST /v1/users/bob/token", r#"{"ttl":"1h"}"#, 422, "/ttl", "integer"),
    ("POST /v1/users/bob/token", r#"{"ttl":60.0}"#, 422, "/ttl", "written without a fraction or an exponent, not 60.0"),
    ("POST /v1/users/bob/token", r#"{"device_id":"a b"}"#, 422, "/device_id", "A-Z a-z 0-9"),
    ("POST /v1/users/bob/token", r#"{"device":"a"}"#, 422, "/device", "known are \"device_id\", \"ttl\""),
    ("POST /v1/users/b%00b/token", "{}", 400, "user", "A-Z a-z 0-9"),
];

/// Names and values, as bytes.
type Headers<'a> = &'a [(&'a str, &'a [u8])];

/// With item 5 of ann, whom bob follows.
async fn furnished() -> (Server, tempfile::TempDir) {
    let (server, dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.post("/v1/items", json!({"author": "ann", "body": "there", "id": "5"})).await.expect(201);
    server.settled().await;
    (server, dir)
}

#[track_caller]
fn check(answer: &Answer, status: u16, at: &str, words: &str) {
    assert_eq!(answer.status, status, "{}", answer.text);
    let place = answer.json["pointer"].as_str().or(answer.json["field"].as_str()).unwrap_or("");
    assert_eq!(place, at, "{}", answer.text);
    assert!(answer.json["detail"].as_str().unwrap().contains(words), "{words:?}: {}", answer.text);
}

async fn each_is_refused_and_changes_nothing(cases: &[Case]) {
    let (server, _dir) = furnished().await;
    let before = server.everything().await;
    for (what, body, status, at, words) in cases {
        let body = (!body.is_empty() || what.starts_with("POST")).then_some(*body);
        let answer = server.call(what, body).await;
        check(&answer, *status, at, words);
        assert_eq!(server.everything().await, before, "{what} {body:?}");
    }
    server.close().await;
}

#[tokio::test]
async fn a_bad_item_is_refused_and_changes_nothing() {
    each_is_refused_and_changes_nothing(ITEMS).await;
}

#[tokio::test]
async fn a_bad_path_or_query_is_refused_and_changes_nothing() {
    each_is_refused_and_changes_nothing(URLS).await;
}

#[tokio::test]
async fn bad_follows_and_token_requests_are_refused_and_change_nothing() {
    each_is_refused_and_changes_nothing(OTHERS).await;
}

#[tokio::test]
async fn what_is_too_long_is_refused_and_changes_nothing() {
    let (server, _dir) = furnished().await;
    let before = server.everything().await;
    let item = |more: serde_json::Value| {
        let mut item = json!({"author": "ann", "body": 1});
        item.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
        item
    };
    let long = |n| "x".repeat(n);
    let cases = [
        ("/v1/items", item(json!({"author": long(65)})), 422, "/author", "1 to 64"),
        ("/v1/items", item(json!({"kind": long(65)})), 422, "/kind", "1 to 64"),
        ("/v1/items", item(json!({"foreign_id": "ä".repeat(65)})), 422, "/foreign_id", "this one has 130"),
        ("/v1/items", item(json!({"body": long(64 * 1024 - 1)})), 422, "/body", "65536 bytes"),
        ("/v1/items", item(json!({"body": long(160 * 1024)})), 413, "", "163840 bytes"),
        ("/v1/items", item(json!({"audience": {"users": vec!["a"; 1001]}})), 422, "/audience/users", "has 1001"),
        ("/v1/items", item(json!({"audience": {"users": ["a", long(65)]}})), 422, "/audience/users/1", "1 to 64"),
        ("/v1/items/batch", json!({"ops": vec![1; 1001]}), 422, "/ops", "this one has 1001"),
        ("/v1/items/batch", json!({"ops": [long(8 * 1024 * 1024)]}), 413, "", "8388608 bytes"),
        ("/v1/follows/batch", json!({"ops": vec![1; 1001]}), 422, "/ops", "this one has 1001"),
        ("/v1/users/bob/token", json!({"device_id": long(65)}), 422, "/device_id", "1 to 64"),
    ];
    for (path, body, status, at, words) in cases {
        check(&server.post(path, body).await, status, at, words);
    }
    check(&server.get(&format!("/v1/items?ids={}", vec!["5"; 101].join(","))).await, 400, "ids", "there are 101");
    // A body that does not say how long it is.
    let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 4096]));
    let mut unsized_body = request("POST /v1/items", Some(API_KEY), Some(""));
    *unsized_body.body_mut() = Body::from_stream(endless);
    check(&server.send(unsized_body).await, 413, "", "163840 bytes");
    assert_eq!(server.everything().await, before);
    server.close().await;
}

#[tokio::test]
async fn a_body_that_is_coded_is_refused_and_changes_nothing() {
    let (server, _dir) = furnished().await;
    let before = server.everything().await;
    let routes = [
        ("POST /v1/items", r#"{"author":"ann","body":1}"#),
        ("POST /v1/users/bob/token", "{}"),
        ("POST /v1/import", r#"{"type":"item","id":"7","author":"ann","published_at":1,"body":1}"#),
        ("POST /connection/http_stream", r#"{"id":1,"connect":{}}"#),
        ("POST /emulation", r#"{"session":"s","node":"n","data":"{}"}"#),
    ];
    for (what, body) in routes {
        for codings in [&["gzip"][..], &["identity", "br"]] {
            let mut coded = request(what, Some(API_KEY), Some(body));
            for coding in codings {
                coded.headers_mut().append("content-encoding", coding.parse().unwrap());
            }
            check(&server.send(coded).await, 415, "", "without Content-Encoding");
        }
    }
    assert_eq!(server.everything().await, before);
    let mut plain = request("POST /v1/items", Some(API_KEY), Some(routes[0].1));
    plain.headers_mut().insert("content-encoding", "Identity".parse().unwrap());
    server.send(plain).await.expect(201);
    server.close().await;
}

#[tokio::test]
async fn a_bad_header_is_refused_and_changes_nothing() {
    let (server, _dir) = furnished().await;
    let before = server.everything().await;
    let item = r#"{"author":"ann","body":1}"#;
    let long = "k".repeat(256);
    let cases: &[(&str, Headers<'_>, u16, &str, &str)] = &[
        ("POST /v1/items", &[("content-type", b"text/plain")], 415, "", "application/json, not text/plain"),
        ("POST /v1/items", &[("content-type", b"application/x-www-form-urlencoded")], 415, "", "application/json"),
        ("POST /v1/items", &[("content-type", b"application/json; charset=latin1")], 415, "", "application/json"),
        ("POST /v1/items", &[], 415, "", "not none"),
        ("POST /v1/users/bob/token", &[], 415, "", "not none"),
        ("POST /v1/items", &[JSON, ("idempotency-key", b"")], 400, "Idempotency-Key", "1 to 255"),
        ("POST /v1/items", &[JSON, ("idempotency-key", b"a b")], 400, "Idempotency-Key", "visible ASCII"),
        ("POST /v1/items", &[JSON, ("idempotency-key", b"\xff")], 400, "Idempotency-Key", "visible ASCII"),
        ("POST /v1/items", &[JSON, ("idempotency-key", long.as_bytes())], 400, "Idempotency-Key", "1 to 255"),
        (
            "POST /v1/items",
            &[JSON, ("idempotency-key", b"a"), ("idempotency-key", b"b")],
            400,
            "Idempotency-Key",
            "once",
        ),
        ("POST /v1/items/batch", &[JSON, ("idempotency-key", b"a")], 400, "Idempotency-Key", "each operation"),
        ("PATCH /v1/items/5", &[JSON, ("if-match", b"1")], 400, "If-Match", "with its quotes"),
        ("DELETE /v1/items/5", &[("if-match", b"W/\"1\"")], 400, "If-Match", "with its quotes"),
        ("DELETE /v1/items/5", &[("if-match", b"\"2\"")], 412, "", "version 1 now"),
        ("DELETE /v1/items/5/comments/6", &[("if-match", b"2")], 400, "If-Match", "with its quotes"),
        ("GET /v1/events", &[("last-event-id", b"x")], 400, "Last-Event-ID", "the id of an event"),
    ];
    for (what, headers, status, at, words) in cases {
        let (method, path) = what.split_once(' ').unwrap();
        let mut request =
            Request::builder().method(method).uri(path).header("authorization", format!("Bearer {API_KEY}"));
        for (name, value) in *headers {
            request = request.header(*name, *value);
        }
        let answer = server.send(request.body(Body::from(item)).unwrap()).await;
        check(&answer, *status, at, words);
        assert_eq!(server.everything().await, before, "{what} {headers:?}");
    }
    server.close().await;
}

const JSON: (&str, &[u8]) = ("content-type", b"application/json");
