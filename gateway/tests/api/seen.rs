//! What a reader has seen, and how much is unread: counted when somebody asks, and right whatever became of the log.

use feedgate_common::FeedId;
use feedgate_common::named::NamedFeed;
use feedgate_gateway::clock;
use serde_json::{Value, json};

use crate::server::{Answer, Server, key_of, request};

const SEEN: &str = "/v1/users/bob/seen";

/// bob, who follows ann and has an inbox with nothing in it.
async fn start() -> (Server, tempfile::TempDir) {
    let (server, dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.settled().await;
    assert_eq!(server.get(SEEN).await.expect(200).json["position"]["offset"], 0);
    (server, dir)
}

async fn post(server: &Server, count: usize) -> Vec<String> {
    let mut ids = vec![];
    for _ in 0..count {
        ids.push(server.publish("ann", "x").await);
    }
    server.settled().await;
    ids
}

/// What bob has not seen, the same by both ways.
async fn unread(server: &Server) -> u64 {
    let [page, seen] = [server.get("/v1/users/bob/feed?limit=1").await, server.get(SEEN).await];
    let [page, seen] = [page, seen].map(|answer| answer.expect(200).json);
    assert_eq!((&page["unread"], &page["position"]), (&seen["unread"], &seen["position"]));
    page["unread"].as_u64().unwrap()
}

async fn position(server: &Server) -> Value {
    server.get(SEEN).await.expect(200).json["position"].clone()
}

async fn see(server: &Server, position: &Value) -> Answer {
    server.call(&format!("PUT {SEEN}"), Some(&json!({"position": position}).to_string())).await
}

fn at(position: &Value, offset: u64) -> Value {
    json!({"epoch": position["epoch"], "offset": offset})
}

#[tokio::test]
async fn what_comes_after_what_was_seen_is_unread_until_it_is_seen_or_gone() {
    let (server, _dir) = start().await;
    let ids = post(&server, 5).await;
    assert_eq!(server.get(SEEN).await.json["seen"], Value::Null);
    assert_eq!(unread(&server).await, 5, "nothing was ever seen");
    let head = position(&server).await;
    let seen = see(&server, &at(&head, 2)).await.expect(200).json;
    assert_eq!(seen, json!({"seen": at(&head, 2), "unread": 3, "position": head}));
    server.call(&format!("DELETE /v1/items/{}", ids[3]), None).await.expect(204);
    server.call(&format!("PATCH /v1/items/{}", ids[0]), Some(r#"{"body":"edited"}"#)).await.expect(200);
    server.settled().await;
    assert_eq!(unread(&server).await, 2, "a delete takes one away, an edit adds none");
    server.call("PUT /v1/users/bob/muted/ann", None).await.expect(204);
    server.settled().await;
    assert_eq!(unread(&server).await, 0, "a mute takes away all of the author");
    server.close().await;
}

#[tokio::test]
async fn what_is_seen_only_moves_forward_and_is_the_same_after_a_restart() {
    let (server, dir) = start().await;
    post(&server, 4).await;
    let head = position(&server).await;
    for (offset, stands, unread) in [(3, 3, 1), (1, 3, 1), (3, 3, 1), (0, 3, 1), (4, 4, 0)] {
        let seen = see(&server, &at(&head, offset)).await.expect(200).json;
        assert_eq!((&seen["seen"], &seen["unread"]), (&at(&head, stands), &json!(unread)), "{offset}");
    }
    server.close().await;
    let server = Server::open(dir.path()).await;
    assert_eq!(server.get(SEEN).await.expect(200).json["seen"], at(&head, 4));
    assert_eq!(unread(&server).await, 0);
    server.close().await;
}

#[tokio::test]
async fn a_position_that_cannot_be_is_refused_and_changes_nothing() {
    let (server, _dir) = start().await;
    post(&server, 2).await;
    let head = position(&server).await;
    see(&server, &at(&head, 1)).await.expect(200);
    let before = server.get(SEEN).await.text;
    let ahead = see(&server, &at(&head, 3)).await.expect(422);
    assert_eq!(ahead.json["pointer"], "/position/offset");
    assert!(ahead.text.contains("offset 3 is beyond the head, which is 2"), "{}", ahead.text);
    let gone = see(&server, &json!({"epoch": "999999", "offset": 1})).await.expect(410);
    assert_eq!(gone.json["position"], head, "it says where the log is");
    let cases = [
        (r#"{}"#, "/position", "is missing"),
        (r#"{"position":7}"#, "/position", "must be a position"),
        (r#"{"position":{"epoch":"1"}}"#, "/position/offset", "is missing"),
        (r#"{"position":{"epoch":1,"offset":1}}"#, "/position/epoch", "must be a string"),
        (r#"{"position":{"epoch":"01","offset":1}}"#, "/position/epoch", "decimal number that the server gave"),
        (r#"{"position":{"epoch":"1","offset":-1}}"#, "/position/offset", "an integer from 0"),
        (
            r#"{"position":{"epoch":"1","offset":1.0}}"#,
            "/position/offset",
            "without a fraction or an exponent, not 1.0",
        ),
        (r#"{"position":{"epoch":"1","offset":1,"at":2}}"#, "/position/at", "unknown field"),
        (r#"{"feed":"likes","position":{"epoch":"1","offset":1}}"#, "/feed", r#"there is \"feed\""#),
        (r#"{"name":"feed","position":{"epoch":"1","offset":1}}"#, "/name", "unknown field"),
    ];
    for (body, pointer, why) in cases {
        let refused = server.call(&format!("PUT {SEEN}"), Some(body)).await.expect(422);
        assert_eq!(refused.json["pointer"], pointer, "{body}: {}", refused.text);
        assert!(refused.text.contains(why), "{body}: {}", refused.text);
    }
    assert_eq!(server.get(SEEN).await.text, before);
    server.close().await;
}

#[tokio::test]
async fn a_reader_says_it_of_that_reader_alone_and_a_backend_that_may_publish_of_anybody() {
    let (server, _dir) = start().await;
    post(&server, 3).await;
    let head = position(&server).await;
    let body = |offset| json!({"position": at(&head, offset)}).to_string();
    let put = async |bearer: &str, offset| {
        let request = request(&format!("PUT {SEEN}"), Some(bearer), Some(&body(offset)));
        server.send(request).await
    };
    for bearer in [&server.token("eve"), &key_of("read")] {
        put(bearer, 3).await.expect(403);
    }
    server.send(request(&format!("PUT {SEEN}"), None, Some(&body(3)))).await.expect(401);
    assert_eq!(unread(&server).await, 3, "nothing has changed");
    assert_eq!(put(&server.token("bob"), 1).await.expect(200).json["unread"], 2);
    assert_eq!(put(&key_of("publish"), 2).await.expect(200).json["unread"], 1);
    server.get_as("bob", SEEN).await.expect(200);
    server.get_as("eve", SEEN).await.expect(403);
    assert_eq!(
        server.on_a_readers_port(request(&format!("PUT {SEEN}"), Some(&server.token("bob")), Some(&body(3)))).await,
        200
    );
    assert_eq!(unread(&server).await, 0);
    server.close().await;
}

#[tokio::test]
async fn each_feed_has_its_own_and_counts_only_what_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    let likes = NamedFeed {
        id: FeedId::MAIN,
        name: "likes".into(),
        kinds: vec!["like".into()],
        ranked: false,
        cap: 3,
        ttl: Some(3_600_000),
    };
    let server = Server::open_with(dir.path(), vec![likes]).await;
    server.follow("bob", "ann").await;
    server.settled().await;
    server.get(&format!("{SEEN}?name=likes")).await.expect(200);
    let like = async |ago_ms: i64| {
        let published_at = clock::now() - ago_ms;
        let item = json!({"author": "ann", "kind": "like", "body": 1, "published_at": published_at});
        server.post("/v1/items", item).await.expect(201);
        server.settled().await;
    };
    post(&server, 2).await;
    like(7_200_000).await;
    like(0).await;
    let of_likes = async || server.get(&format!("{SEEN}?name=likes")).await.expect(200).json;
    assert_eq!(of_likes().await["unread"], 1, "the other is too old to be shown");
    for _ in 0..4 {
        like(0).await;
    }
    assert_eq!(of_likes().await["unread"], 3, "no more than the feed shows");
    assert_eq!(server.get("/v1/users/bob/feed?name=likes&limit=1").await.expect(200).json["unread"], 3);
    let head = of_likes().await["position"].clone();
    let body = json!({"feed": "likes", "position": at(&head, 5)}).to_string();
    assert_eq!(server.call(&format!("PUT {SEEN}"), Some(&body)).await.expect(200).json["unread"], 1);
    assert_eq!(unread(&server).await, 2, "that of the other feed");
    server.close().await;
}

#[tokio::test]
async fn a_log_that_was_built_anew_has_the_same_unread() {
    let (server, _dir) = start().await;
    post(&server, 3).await;
    let head = position(&server).await;
    see(&server, &head).await.expect(200);
    // What is published in the same millisecond as what was seen counts as seen in another log.
    while clock::now()
        <= server.get("/v1/users/bob/feed?limit=1").await.json["items"][0]["published_at"].as_i64().unwrap()
    {
        tokio::task::yield_now().await;
    }
    let fresh = post(&server, 2).await;
    assert_eq!(unread(&server).await, 2);
    server.forget_inbox("bob").await;
    assert_eq!(unread(&server).await, 2, "by when they were published");
    let seen = server.get(SEEN).await.expect(200).json;
    assert_eq!(seen["seen"], head, "it is of an earlier epoch");
    assert_ne!(seen["position"]["epoch"], head["epoch"]);
    see(&server, &head).await.expect(410);
    let first = see(&server, &at(&seen["position"], 1)).await.expect(200).json;
    assert_eq!(first["unread"], 2, "what was seen in the other log stays seen");
    server.call(&format!("DELETE /v1/items/{}", fresh[0]), None).await.expect(204);
    // An old item that comes into this log is new to the reader.
    let old = json!({"author": "eve", "body": 1, "published_at": 5, "audience": {"users": ["bob"]}});
    server.post("/v1/items", old).await.expect(201);
    server.settled().await;
    assert_eq!(unread(&server).await, 2);
    server.close().await;
}

#[tokio::test]
async fn more_than_999_are_told_as_999_and_what_the_log_has_cut_is_counted_too() {
    let (server, _dir) = start().await;
    let batch = async |count: usize| {
        let ops = vec![json!({"author": "ann", "body": 1}); count];
        server.post("/v1/items/batch", json!({ "ops": ops })).await.expect(200);
        server.settled().await;
    };
    post(&server, 1).await;
    see(&server, &position(&server).await).await.expect(200);
    let last = server.get("/v1/users/bob/feed?limit=1").await.json["items"][0]["published_at"].as_i64().unwrap();
    while clock::now() <= last {
        tokio::task::yield_now().await;
    }
    let ids = post(&server, 60).await;
    // Edits fill the log until what was posted is cut from it.
    for version in 0..20 {
        let edits: Vec<String> = ids.iter().map(|id| format!("PATCH /v1/items/{id}")).collect();
        for edit in &edits {
            server.call(edit, Some(&json!({ "body": version }).to_string())).await.expect(200);
        }
    }
    server.settled().await;
    let changes = server
        .get(&format!("/v1/users/bob/changes?epoch={}&offset=1", position(&server).await["epoch"].as_str().unwrap()))
        .await;
    changes.expect(410);
    assert_eq!(unread(&server).await, 60);
    batch(930).await;
    assert_eq!(unread(&server).await, 990);
    batch(50).await;
    assert_eq!(unread(&server).await, 999);
    server.close().await;
}

#[tokio::test]
async fn what_a_reader_pulls_is_unread_before_it_is_in_the_log() {
    let (server, _dir) = start().await;
    server.call("PUT /v1/authors/ann", Some(r#"{"class":"pull"}"#)).await.expect(204);
    see(&server, &position(&server).await).await.expect(200);
    post(&server, 3).await;
    assert_eq!(server.get(SEEN).await.expect(200).json["unread"], 3);
    assert_eq!(unread(&server).await, 3);
    server.close().await;
}
