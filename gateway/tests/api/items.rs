//! Items: accepted once, read to the byte, edited, deleted.

use axum::body::Body;
use serde_json::json;

use crate::server::{API_KEY, Server, request};

#[tokio::test]
async fn i6_an_accepted_item_survives_a_reopening_and_its_retry_gets_the_same_answer() {
    let dir = tempfile::tempdir().unwrap();
    let send = |body: &str| {
        let mut request = request("POST /v1/items", Some(API_KEY), Some(body));
        request.headers_mut().insert("idempotency-key", "posts/1".parse().unwrap());
        request
    };
    let body = json!({"author": "ann", "body": {"text": "hello"}}).to_string();

    let server = Server::open(dir.path()).await;
    let first = server.send(send(&body)).await.expect(201);
    assert_eq!(first.header("location"), format!("/v1/items/{}", first.json["id"].as_str().unwrap()));
    let again = server.send(send(&body)).await.expect(200);
    assert_eq!(again.text, first.text);
    server.close().await;

    let server = Server::open(dir.path()).await;
    let later = server.send(send(&body)).await.expect(200);
    assert_eq!(later.text, first.text);
    let other = json!({"author": "ann", "body": {"text": "other"}}).to_string();
    let conflict = server.send(send(&other)).await.expect(409);
    assert!(conflict.json["detail"].as_str().unwrap().contains("use a new key"), "{}", conflict.text);
    let outbox = server.get("/v1/users/ann/outbox").await.expect(200);
    assert_eq!(outbox.json["items"].as_array().unwrap().len(), 1);
    // Keys are an author's own.
    let other_author = json!({"author": "bob", "body": {"text": "hello"}}).to_string();
    server.send(send(&other_author)).await.expect(201);
    server.close().await;
}

#[tokio::test]
async fn i6_the_same_id_or_foreign_id_is_the_same_item_and_another_payload_a_conflict() {
    let (server, _dir) = Server::start().await;
    let first = json!({"author": "ann", "body": 1, "id": "42", "foreign_id": "posts/ä 42"});
    let accepted = server.post("/v1/items", first.clone()).await.expect(201);
    assert_eq!(server.post("/v1/items", first).await.expect(200).text, accepted.text);
    for other in [
        json!({"author": "ann", "body": 2, "id": "42"}),
        json!({"author": "bob", "body": 1, "id": "42", "foreign_id": "posts/ä 42"}),
        json!({"author": "ann", "body": 2, "foreign_id": "posts/ä 42"}),
    ] {
        server.post("/v1/items", other).await.expect(409);
    }
    let by_key = server.get("/v1/items/foreign:posts%2F%C3%A4%2042").await.expect(200);
    assert_eq!(by_key.json["id"], "42");
    assert_eq!(by_key.json["foreign_id"], "posts/ä 42");
    server.close().await;
}

#[tokio::test]
async fn a_body_comes_back_to_the_byte() {
    let (server, _dir) = Server::start().await;
    for body in [r#"{ "b" : 1.0,"a":1e308, "a":"\u00e4\/" }"#, "null", "\"\"", "-0.0", "[ ]"] {
        let sent = format!(r#"{{"author":"ann","body":{body}}}"#);
        let accepted = server.call("POST /v1/items", Some(&sent)).await.expect(201);
        let path = format!("/v1/items/{}", accepted.json["id"].as_str().unwrap());
        // `1e308` is JSON, but no number that the test's own reader holds: look at the text.
        let text = server.get(&path).await.expect(200).text;
        assert!(text.contains(&format!(r#""body":{body},"#)), "{text}");
    }
    let largest = format!(r#"{{"author":"ann","body":"{}"}}"#, "x".repeat(64 * 1024 - 2));
    server.call("POST /v1/items", Some(&largest)).await.expect(201);
    server.close().await;
}

#[tokio::test]
async fn an_edit_makes_a_version_that_if_match_compares() {
    let (server, _dir) = Server::start().await;
    let path = format!("/v1/items/{}", server.publish("ann", "first").await);
    let read = server.get(&path).await.expect(200);
    assert_eq!((read.header("etag"), &read.json["version"]), ("\"1\"", &json!(1)));

    let edit = |body: &str, version: &str| {
        let mut edit = request(&format!("PATCH {path}"), Some(API_KEY), Some(&json!({ "body": body }).to_string()));
        edit.headers_mut().insert("if-match", version.parse().unwrap());
        edit
    };
    let edited = server.send(edit("second", "\"1\"")).await.expect(200);
    assert_eq!((edited.header("etag"), &edited.json["body"]), ("\"2\"", &json!("second")));
    let stale = server.send(edit("third", "\"1\"")).await.expect(412);
    assert!(stale.json["detail"].as_str().unwrap().contains("version 2"), "{}", stale.text);
    assert_eq!(server.get(&path).await.json, edited.json);

    let delete = |version: &str| {
        let mut delete = request(&format!("DELETE {path}"), Some(API_KEY), None);
        delete.headers_mut().insert("if-match", version.parse().unwrap());
        delete
    };
    server.send(delete("\"1\"")).await.expect(412);
    server.get(&path).await.expect(200);
    server.send(delete("\"2\"")).await.expect(204);
    server.get(&path).await.expect(404);
    server.call(&format!("DELETE {path}"), None).await.expect(204);
    server.send(edit("fourth", "*")).await.expect(404);
    server.close().await;
}

#[tokio::test]
async fn s13_a_backend_is_shown_what_an_item_said_before_and_no_reader_is() {
    let (server, _dir) = Server::start().await;
    let id = server.publish("ann", "first").await;
    let path = format!("/v1/items/{id}/versions");
    assert_eq!(server.get(&path).await.expect(200).json, json!({"id": id, "versions": []}));
    for edit in [r#"{"body":{"b" : 1.0}}"#, r#"{"rank":5}"#, r#"{"body":"third","rank":6}"#] {
        server.call(&format!("PATCH /v1/items/{id}"), Some(edit)).await.expect(200);
    }
    let answer = server.get(&path).await.expect(200);
    assert!(answer.text.contains(r#""body":{"b" : 1.0}"#), "to the byte: {}", answer.text);
    let versions = answer.json["versions"].as_array().unwrap();
    let numbers: Vec<_> = versions.iter().map(|kept| (&kept["version"], &kept["body"])).collect();
    assert_eq!(numbers, [(&json!(3), &json!({"b": 1.0})), (&json!(1), &json!("first"))]);
    assert!(versions.iter().all(|kept| kept["replaced_at"].is_i64()), "{versions:?}");
    server.get_as("ann", &path).await.expect(403);
    server.get(&format!("{path}?limit=1")).await.expect(400);
    server.call(&format!("DELETE /v1/items/{id}"), None).await.expect(204);
    server.get(&path).await.expect(404);
    server.close().await;
}

#[tokio::test]
async fn s11_a_rank_moves_an_item_and_is_a_version() {
    let (server, _dir) = Server::start().await;
    let [low, high] = [server.publish("ann", "low").await, server.publish("ann", "high").await];
    let path = format!("/v1/items/{low}");
    let order = async || {
        let page = server.get("/v1/users/ann/outbox").await.expect(200).json;
        let ids = page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(order().await, [high.clone(), low.clone()]);
    let top = 9_007_199_254_740_991_i64;
    let moved = server.call(&format!("PATCH {path}"), Some(&json!({ "rank": top }).to_string())).await.expect(200);
    assert_eq!((moved.header("etag"), &moved.json["rank"], &moved.json["body"]), ("\"2\"", &json!(top), &json!("low")));
    assert_eq!(order().await, [low.clone(), high.clone()]);
    let same = server.call(&format!("PATCH {path}"), Some(&json!({ "rank": top }).to_string())).await.expect(200);
    assert_eq!(same.json, moved.json, "the rank that it has is no new version");
    let both = json!({"rank": -1, "body": "lower"}).to_string();
    let moved = server.call(&format!("PATCH {path}"), Some(&both)).await.expect(200).json;
    assert_eq!((&moved["version"], &moved["rank"], &moved["body"]), (&json!(3), &json!(-1), &json!("lower")));
    assert_eq!(order().await, [high, low]);

    server.call("PUT /v1/authors/ann", Some(r#"{"class":"everyone"}"#)).await.expect(204);
    let refused = server.call(&format!("PATCH {path}"), Some(r#"{"rank":5}"#)).await.expect(409).json;
    assert!(refused["detail"].as_str().unwrap().contains("older than the follow of everyone"), "{refused}");
    server.call(&format!("PATCH {path}"), Some(r#"{"rank":-1,"body":"still"}"#)).await.expect(200);
    let later = server.publish("ann", "for everyone").await;
    server.call(&format!("PATCH /v1/items/{later}"), Some(r#"{"rank":5}"#)).await.expect(200);
    server.close().await;
}

#[tokio::test]
async fn a_batch_answers_each_operation_in_its_place() {
    let (server, _dir) = Server::start().await;
    let ops = json!({"ops": [
        {"author": "ann", "body": 1, "idempotency_key": "k"},
        {"author": "a n n", "body": 2},
        {"author": "ann", "body": 3, "id": "7"},
        {"author": "ann", "body": 1, "idempotency_key": "k"},
        {"author": "ann", "body": 4, "id": "7"},
        5,
        {"author": "ann", "body": 6, "audience": {"users": ["bob", "b b"]}},
    ]});
    let answer = server.post("/v1/items/batch", ops).await.expect(200);
    let results = answer.json["results"].as_array().unwrap();
    let statuses: Vec<u64> = results.iter().map(|r| r["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [201, 422, 201, 200, 409, 422, 422]);
    assert_eq!(results[0]["id"], results[3]["id"]);
    let pointers: Vec<_> = results.iter().map(|r| r["pointer"].as_str().unwrap_or("")).collect();
    assert_eq!(pointers, ["", "/ops/1/author", "", "", "/ops/4", "/ops/5", "/ops/6/audience/users/1"]);
    let outbox = server.get("/v1/users/ann/outbox").await.expect(200);
    assert_eq!(outbox.json["items"].as_array().unwrap().len(), 2);
    server.close().await;
}

#[tokio::test]
async fn several_items_come_in_the_order_asked_and_the_others_are_named() {
    let (server, _dir) = Server::start().await;
    let (a, b) = (server.publish("ann", "a").await, server.publish("bob", "b").await);
    let answer = server.get(&format!("/v1/items?ids={b},0,{a}")).await.expect(200);
    let found: Vec<_> = answer.json["items"].as_array().unwrap().iter().map(|i| i["body"].as_str().unwrap()).collect();
    assert_eq!(found, ["b", "a"]);
    assert_eq!(answer.json["missing"], json!(["0"]));
    server.close().await;
}

#[tokio::test]
async fn request_bodies_share_a_budget_and_what_does_not_fit_is_told_to_retry() {
    let (server, _dir) = Server::start().await;
    let endless = || {
        let mut request = request("POST /v1/items/batch", Some(API_KEY), Some(""));
        *request.body_mut() = Body::from_stream(futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>());
        request
    };
    let mut held: Vec<_> = (0..16).map(|_| Box::pin(server.send(endless()))).collect();
    for request in &mut held {
        assert!(futures_util::poll!(request).is_pending());
    }
    let refused = server.post("/v1/items", json!({"author": "ann", "body": 1})).await.expect(503);
    assert_eq!((refused.header("retry-after"), &refused.json["type"]), ("1", &json!("/problems/overloaded")));
    drop(held);
    server.post("/v1/items", json!({"author": "ann", "body": 1})).await.expect(201);
    server.close().await;
}

#[tokio::test]
async fn a_request_whose_body_does_not_arrive_ends_after_half_a_minute() {
    let (server, _dir) = Server::start().await;
    let mut request = request("POST /v1/items", Some(API_KEY), Some(""));
    *request.body_mut() = Body::from_stream(futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    server.send(request).await.expect(408);
    assert_eq!(started.elapsed().as_secs(), 30);
    tokio::time::resume();
    server.close().await;
}
