//! Mentions (S5): what the API takes, keeps and shows of them. Who is told of them is tested in journeys.

use serde_json::{Value, json};

use crate::server::{Server, request};

fn named(answer: &Value) -> Value {
    answer.get("mentions").cloned().unwrap_or_default()
}

#[tokio::test]
async fn s5_the_mentions_of_an_item_are_shown_with_it_wherever_it_is_shown() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    let asked = json!({"author": "ann", "body": "hi", "mentions": ["bob", "cid", "bob"]});
    let id = server.post("/v1/items", asked).await.expect(201).json["id"].as_str().unwrap().to_owned();
    server.settled().await;
    let both = json!(["bob", "cid"]);
    let (item, feed) = (format!("/v1/items/{id}"), "/v1/users/bob/feed");
    for answer in [server.get(&item).await, server.get_as("bob", &item).await] {
        assert_eq!(named(&answer.expect(200).json), both);
    }
    for page in [server.get_as("bob", feed).await, server.get("/v1/users/ann/outbox").await] {
        assert_eq!(named(&page.expect(200).json["items"][0]), both);
    }
    assert_eq!(named(&server.get_as("cid", &item).await.expect(200).json), both, "who is named may read it");
    server.get_as("cid", &format!("{item}/comments")).await.expect(200);
    server.get_as("eve", &item).await.expect(404);
    let patch = format!("PATCH {item}");
    let edited = server.call(&patch, Some(r#"{"body":"ho"}"#)).await.expect(200).json;
    assert_eq!((named(&edited), &edited["version"]), (both, &json!(2)), "left out, the list stays");
    let edited = server.call(&patch, Some(r#"{"body":"ho","mentions":["dan"]}"#)).await.expect(200).json;
    assert_eq!(named(&edited), json!(["dan"]));
    server.get_as("cid", &item).await.expect(404);
    server.call("PUT /v1/users/dan/muted/ann", None).await.expect(204);
    server.get_as("dan", &item).await.expect(404);
    let edited = server.call(&patch, Some(r#"{"body":"ho","mentions":[]}"#)).await.expect(200).json;
    assert_eq!(edited.get("mentions"), None, "an item that mentions nobody is written as it always was");
    assert_eq!(edited["version"], 4);
    server.close().await;
}

#[tokio::test]
async fn s5_the_mentions_of_a_comment_are_shown_and_named_by_a_backend_alone() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    let id = server.publish("ann", "hi").await;
    let comments = format!("/v1/items/{id}/comments");
    let asked = json!({"author": "bob", "body": "look", "mentions": ["cid"]});
    let made = server.post(&comments, asked).await.expect(201).json;
    let one = format!("{comments}/{}", made["id"].as_str().unwrap());
    for answer in [server.get(&one).await, server.get_as("bob", &one).await] {
        assert_eq!(named(&answer.expect(200).json), json!(["cid"]));
    }
    assert_eq!(named(&server.get(&comments).await.expect(200).json["comments"][0]), json!(["cid"]));
    server.get_as("cid", &one).await.expect(404);
    let token = server.token("bob");
    for (call, body) in [
        (format!("POST {comments}"), r#"{"body":"me too","mentions":["dan"]}"#),
        (format!("PATCH {one}"), r#"{"body":"me too","mentions":["dan"]}"#),
    ] {
        let refused = server.send(request(&call, Some(&token), Some(body))).await.expect(422);
        assert_eq!(refused.json["pointer"], "/mentions", "{}", refused.json);
    }
    let edited =
        server.send(request(&format!("PATCH {one}"), Some(&token), Some(r#"{"body":"else"}"#))).await.expect(200).json;
    assert_eq!((named(&edited), &edited["version"]), (json!(["cid"]), &json!(2)), "its author keeps the list");
    let body = r#"{"body":"else","mentions":["dan","eve"]}"#;
    let edited = server.call(&format!("PATCH {one}"), Some(body)).await.expect(200).json;
    assert_eq!((named(&edited), &edited["version"]), (json!(["dan", "eve"]), &json!(3)));
    server.call(&format!("DELETE {one}"), None).await.expect(204);
    server.close().await;
}

#[tokio::test]
async fn s5_an_item_mentions_so_many_users_and_no_more() {
    let (server, _dir) = Server::start().await;
    let names = |many: usize| (0..many).map(|n| format!("user-{n}")).collect::<Vec<_>>();
    let asked = |many| json!({"author": "ann", "body": 1, "mentions": names(many)});
    server.post("/v1/items", asked(50)).await.expect(201);
    let refused = server.post("/v1/items", asked(51)).await.expect(422);
    assert_eq!(refused.json["pointer"], "/mentions", "{}", refused.json);
    let ops: Vec<Value> = (0..201).map(|_| asked(50)).collect();
    let results = server.post("/v1/items/batch", json!({ "ops": ops })).await.expect(200).json["results"].clone();
    assert_eq!((&results[199]["status"], &results[200]["status"]), (&json!(201), &json!(422)));
    assert_eq!(results[200]["pointer"], "/ops/200/mentions", "each of them may get a record in the same commit");
    server.close().await;
}
