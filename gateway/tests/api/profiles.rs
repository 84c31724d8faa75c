//! Profiles: what an author has published, as a viewer may see it.

use serde_json::{Value, json};

use crate::server::{Server, ids};

/// Ann has an item for all and one for `in` alone, who follows her as `out` does. The ids.
async fn start(server: &Server) -> [u64; 2] {
    for reader in ["in", "out", "blocked"] {
        server.follow(reader, "ann").await;
    }
    server.call("PUT /v1/users/ann/lists/close/in", None).await.expect(204);
    let mut published = vec![];
    for item in [json!({}), json!({"audience": {"lists": ["close"]}})] {
        let mut item = item;
        item["author"] = json!("ann");
        item["body"] = json!("hello");
        let accepted = server.post("/v1/items", item).await.expect(201);
        published.push(accepted.json["id"].as_str().unwrap().parse().unwrap());
    }
    server.call("PUT /v1/users/ann/blocked/blocked", None).await.expect(204);
    published.try_into().unwrap()
}

#[tokio::test]
async fn s13_a_profile_is_shown_to_each_viewer_as_that_viewer_may_see_it() {
    let (server, _dir) = Server::start().await;
    let [open, close] = start(&server).await;
    let outbox = "/v1/users/ann/outbox";
    assert_eq!(ids(&server.get(outbox).await.expect(200).json), [close, open], "a backend reads all");
    let none: &[u64] = &[];
    let wanted: [(&str, &[u64], &[u64]); 5] = [
        ("ann", &[close, open], &[close, open]),
        ("in", &[close, open], &[close, open]),
        ("out", &[open], &[open]),
        ("blocked", none, none),
        ("stranger", &[open], none),
    ];
    for (viewer, by_key, by_token) in wanted {
        let path = format!("{outbox}?viewer={viewer}");
        let key = server.get(&path).await.expect(200).json;
        assert_eq!((&*ids(&key), &key["next"]), (by_key, &Value::Null), "{viewer} by the API key");
        let token = server.get_as(viewer, &path).await.expect(200).json;
        assert_eq!((&*ids(&token), &token["next"]), (by_token, &Value::Null), "{viewer} by a token");
    }
    server.close().await;
}

#[tokio::test]
async fn s13_a_profile_that_is_closed_to_a_viewer_looks_like_an_empty_one() {
    let (server, _dir) = Server::start().await;
    start(&server).await;
    for n in 0..600 {
        server.publish("ann", &format!("many {n}")).await;
    }
    let empty = server.get("/v1/users/nobody/outbox?viewer=blocked").await.expect(200).text;
    assert_eq!(empty, r#"{"items":[],"next":null}"#);
    let path = "/v1/users/ann/outbox?viewer=blocked";
    assert_eq!(server.get(path).await.expect(200).text, empty);
    assert_eq!(server.get_as("blocked", path).await.expect(200).text, empty);
    let path = "/v1/users/ann/outbox?viewer=stranger";
    assert_eq!(server.get_as("stranger", path).await.expect(200).text, empty);
    server.close().await;
}

#[tokio::test]
async fn s13_own_is_the_viewers_and_a_token_names_no_other_viewer() {
    let (server, _dir) = Server::start().await;
    let [open, _] = start(&server).await;
    server.call(&format!("PUT /v1/items/{open}/reactions/like/out"), None).await.expect(200);
    let path = "/v1/users/ann/outbox?viewer=out";
    for page in [server.get(path).await, server.get_as("out", path).await] {
        assert_eq!(page.expect(200).json["items"][0]["own"], json!(["like"]));
    }
    let other = server.get_as("in", path).await.expect(403);
    assert_eq!(other.json["detail"], "this token is of user in and opens nothing of user out");
    let whole = server.get_as("out", "/v1/users/ann/outbox").await.expect(403);
    let detail = "this token is of user out and opens nothing of user ann but what out sees: ask for ?viewer=out";
    assert_eq!(whole.json["detail"], detail);
    server.close().await;
}
