//! Sessions, tokens, stats, health.

use feedgate_common::UserNo;
use feedgate_common::sessions::Claim;
use serde_json::{Value, json};

use crate::server::{Server, request};

#[tokio::test]
async fn a_minted_token_opens_its_readers_feed_until_it_expires() {
    let (server, _dir) = Server::start().await;
    let minted = server.post("/v1/users/bob/token", json!({"device_id": "ios-1", "ttl": 60})).await.expect(200);
    assert_eq!(minted.header("cache-control"), "no-store");
    let left = minted.json["expires_at"].as_i64().unwrap() - feedgate_gateway::clock::now();
    assert!((58_000..=60_000).contains(&left), "{left}");
    let token = minted.json["token"].as_str().unwrap();
    server.send(request("GET /v1/users/bob/feed", Some(token), None)).await.expect(200);
    // Without a body: an hour.
    let plain = server.call("POST /v1/users/bob/token", None).await.expect(200);
    assert!(plain.json["expires_at"].as_i64().unwrap() - feedgate_gateway::clock::now() > 3_590_000);
    server.close().await;
}

#[tokio::test]
async fn a_users_sessions_are_listed_and_a_device_that_is_not_there_cannot_be_kicked() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await; // bob is user 1
    let claim = Claim {
        user: UserNo(1),
        device: "ios-1".parse().unwrap(),
        durable: true,
        node: "n1".to_owned(),
        connection: 1,
        since: 5,
    };
    server.sessions().claim(claim).await.unwrap();
    let listed = server.get("/v1/users/bob/sessions").await.expect(200);
    let expected = json!([{"device": "ios-1", "node": "n1", "position": Value::Null, "since": 5}]);
    assert_eq!(listed.json["sessions"], expected);
    assert_eq!(server.get("/v1/users/nobody/sessions").await.expect(200).json, json!({"sessions": []}));
    let missing = server.call("DELETE /v1/users/bob/sessions/web-1", None).await.expect(404);
    assert!(missing.json["detail"].as_str().unwrap().contains("web-1"));
    server.call("DELETE /v1/users/nobody/sessions/web-1", None).await.expect(404);
    server.close().await;
}

#[tokio::test]
async fn stats_count_what_is_there() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    let item = server.publish("ann", "one").await;
    server.publish("ann", "two").await;
    server.call(&format!("DELETE /v1/items/{item}"), None).await.expect(204);
    server.get("/v1/users/bob/feed").await.expect(200);
    server.settled().await;
    let stats = server.get("/v1/stats").await.expect(200).json;
    let none = json!({"users": 0, "devices": 0, "sessions": 0, "connections": 0});
    assert_eq!(stats["sessions"], none);
    let archive = &stats["archive"];
    assert_eq!((&archive["users"], &archive["items"], &archive["edges"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!((&stats["inboxes"]["inboxes"], &stats["jobs"]["pending"]), (&json!(1), &json!(0)));
    assert_eq!((&stats["node"], &stats["version"]), (&json!("n1"), &json!(env!("CARGO_PKG_VERSION"))));
    server.close().await;
}

#[tokio::test]
async fn health_needs_no_credentials() {
    let (server, _dir) = Server::start().await;
    for (path, status) in [("/healthz", "alive"), ("/readyz", "ready")] {
        let answer = server.send(request(&format!("GET {path}"), None, None)).await.expect(200);
        assert_eq!(answer.json, json!({ "status": status }));
    }
    server.close().await;
}
