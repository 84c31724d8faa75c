//! Items for readers who are named.

use serde_json::{Value, json};

use crate::server::{Server, ids};

fn to(users: &[&str], body: &str) -> Value {
    json!({"author": "ann", "body": body, "audience": {"users": users}})
}

#[tokio::test]
async fn an_item_for_named_readers_stands_in_no_outbox_and_in_their_feeds() {
    let (server, _dir) = Server::start().await;
    for user in ["bob", "eve", "joe"] {
        server.get(&format!("/v1/users/{user}/feed")).await.expect(200);
    }
    server.follow("joe", "ann").await;
    let accepted = server.post("/v1/items", to(&["bob", "eve", "bob"], "psst")).await.expect(201).json;
    assert_eq!(accepted["outbox_seq"], Value::Null);
    server.settled().await;
    for user in ["bob", "eve"] {
        let feed = server.get(&format!("/v1/users/{user}/feed")).await.expect(200).json;
        assert_eq!((feed["items"].as_array().unwrap().len(), &feed["items"][0]["direct"]), (1, &json!(true)), "{user}");
        let changes = server.get(&format!("/v1/users/{user}/changes")).await.expect(200).json;
        assert_eq!(changes["changes"].as_array().unwrap().len(), 1, "a name given twice counts once");
    }
    assert_eq!(ids(&server.get("/v1/users/joe/feed").await.json), [0; 0], "a follower who is not named");
    assert_eq!(ids(&server.get("/v1/users/ann/outbox").await.json), [0; 0]);
    assert_eq!(server.get("/v1/authors/ann").await.json["outbox_seq"], 0);
    server.close().await;
}

#[tokio::test]
async fn i6_a_repeated_direct_item_gets_the_first_answer_and_another_audience_a_conflict() {
    let (server, _dir) = Server::start().await;
    let mut item = to(&["bob"], "psst");
    item["id"] = json!("5");
    let first = server.post("/v1/items", item.clone()).await.expect(201);
    assert_eq!(server.post("/v1/items", item.clone()).await.expect(200).text, first.text);
    item["audience"] = json!({"users": ["bob", "eve"]});
    server.post("/v1/items", item.clone()).await.expect(409);
    item["audience"] = json!("followers");
    server.post("/v1/items", item).await.expect(409);
    server.close().await;
}

#[tokio::test]
async fn i5_what_is_addressed_stays_when_its_author_leaves_the_feed_and_goes_when_it_is_deleted() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.publish("ann", "to all").await;
    let direct = server.post("/v1/items", to(&["bob"], "psst")).await.expect(201).json["id"].clone();
    let direct: u64 = direct.as_str().unwrap().parse().unwrap();
    server.settled().await;
    let feed = async || ids(&server.get("/v1/users/bob/feed").await.expect(200).json);
    assert_eq!(feed().await.len(), 2);
    server.call("DELETE /v1/users/bob/following/ann", None).await.expect(204);
    server.settled().await;
    assert_eq!(feed().await, [direct]);
    server.call(&format!("DELETE /v1/items/{direct}"), None).await.expect(204);
    server.settled().await;
    assert_eq!(feed().await, [0; 0]);
    server.close().await;
}

#[tokio::test]
async fn a_batch_names_so_many_readers_and_no_more() {
    let (server, _dir) = Server::start().await;
    let thousand: Vec<String> = (0..1000).map(|n| format!("u{n}")).collect();
    let large = json!({"author": "ann", "body": 1, "audience": {"users": thousand}});
    let small = json!({"author": "ann", "body": 1, "audience": {"users": ["bob"]}});
    let followers = json!({"author": "ann", "body": 1});
    let ops: Vec<&Value> = std::iter::repeat_n(&large, 10).chain([&small, &followers]).collect();
    let results = server.post("/v1/items/batch", json!({ "ops": ops })).await.expect(200).json["results"].clone();
    let statuses: Vec<u64> = results.as_array().unwrap().iter().map(|r| r["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [[201; 10].as_slice(), &[422, 201]].concat());
    assert_eq!(results[10]["pointer"], "/ops/10/audience");
    assert_eq!((&results[0]["outbox_seq"], &results[11]["outbox_seq"]), (&Value::Null, &json!(1)));
    server.close().await;
}
