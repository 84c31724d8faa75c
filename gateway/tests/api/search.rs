//! Search by HTTP: who finds what, pages, and requests that are wrong.

use feedgate_common::search::TextFields;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Answer, Server, key_of, request};

/// A server that searches the field `text`.
async fn start() -> (Server, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let fields = TextFields::new(vec!["text".into()]).unwrap();
    (Server::open_searching(dir.path(), vec![], Some(fields)).await, dir)
}

/// A server that has begun to index.
async fn started() -> (Server, TempDir) {
    let (server, dir) = start().await;
    while server.get("/v1/search/items?q=x").await.expect(200).json["building"] == json!(true) {
        tokio::task::yield_now().await;
    }
    (server, dir)
}

async fn publish(server: &Server, author: &str, text: &str, more: Value) -> String {
    let mut item = json!({"author": author, "body": {"text": text}});
    item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.post("/v1/items", item).await.expect(201).json["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn ids(answer: Answer) -> Vec<String> {
    let answer = answer.expect(200);
    assert_eq!(answer.json["next"], Value::Null, "{}", answer.text);
    let items = answer.json["items"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

fn none() -> Vec<String> {
    vec![]
}

#[tokio::test]
async fn s14_a_reader_finds_what_the_reader_sees_and_a_viewer_what_no_shield_hides() {
    let (server, _dir) = started().await;
    let of_ann = publish(&server, "ann", "王小明 hello", json!({})).await;
    let of_eve = publish(&server, "eve", "hello 小明", json!({})).await;
    let for_bob = publish(&server, "eve", "hello psst", json!({"audience": {"users": ["bob"]}})).await;
    let own = publish(&server, "bob", "hello me", json!({})).await;
    server.follow("bob", "ann").await;
    let all = [&own, &for_bob, &of_eve, &of_ann].map(Clone::clone).to_vec();
    let hello = "/v1/search/items?q=hello";
    assert_eq!(ids(server.get(hello).await), all, "a backend finds everything");
    assert_eq!(ids(server.get("/v1/search/items?q=%E5%B0%8F%E6%98%8E").await), [of_eve.clone(), of_ann.clone()]);
    let by_bob = async || ids(server.get_as("bob", hello).await);
    let as_bob = async || ids(server.get(&format!("{hello}&viewer=bob")).await);
    assert_eq!(by_bob().await, [own.clone(), for_bob.clone(), of_ann.clone()], "own, addressed, followed");
    assert_eq!(as_bob().await, all);
    let as_joe = ids(server.get(&format!("{hello}&viewer=joe")).await);
    assert_eq!(as_joe, [own.clone(), of_eve.clone(), of_ann.clone()], "who was never named sees what is for followers");
    assert_eq!(ids(server.get_as("joe", hello).await), none());
    server.call("PUT /v1/users/ann/blocked/bob", None).await.expect(204);
    assert_eq!(by_bob().await, [own.clone(), for_bob.clone()]);
    assert_eq!(as_bob().await, [own.clone(), for_bob.clone(), of_eve.clone()]);
    server.call("PUT /v1/users/bob/blocked/eve", None).await.expect(204);
    assert_eq!((by_bob().await, as_bob().await), (vec![own.clone()], vec![own.clone()]));
    server.get_as("bob", &format!("{hello}&viewer=ann")).await.expect(403);
    let publisher = request(&format!("GET {hello}"), Some(&key_of("publish")), None);
    server.send(publisher).await.expect(403);
    server.close().await;
}

#[tokio::test]
async fn s14_what_is_found_is_shown_as_on_any_page_and_pages_go_on() {
    let (server, _dir) = started().await;
    let original = publish(&server, "eve", "an original", json!({})).await;
    for n in 0..5 {
        let time = json!({"published_at": 1000 + n, "kind": "post", "ref": original});
        publish(&server, "ann", &format!("hello {n}"), time).await;
    }
    server.call("PUT /v1/users/eve", Some(r#"{"name":"Eve"}"#)).await.expect(204);
    let (mut texts, mut next) = (vec![], String::new());
    loop {
        let page =
            server.get(&format!("/v1/search/items?q=hello&kind=post&author=ann&limit=2{next}")).await.expect(200);
        for item in page.json["items"].as_array().unwrap() {
            texts.push(item["body"]["text"].as_str().unwrap().to_owned());
            assert_eq!(item["ref_item"]["body"], json!({"text": "an original"}));
        }
        assert_eq!(page.json["people"], json!({"eve": {"name": "Eve"}}));
        let Some(cursor) = page.json["next"].as_str() else { break };
        next = format!("&cursor={cursor}");
    }
    assert_eq!(texts, ["hello 4", "hello 3", "hello 2", "hello 1", "hello 0"]);
    assert_eq!(ids(server.get("/v1/search/items?q=hello&since=1001&until=1002").await).len(), 2);
    for nothing in ["author=nobody", "kind=like", "since=2000", "until=999"] {
        assert_eq!(ids(server.get(&format!("/v1/search/items?q=hello&{nothing}")).await), none(), "{nothing}");
    }
    server.close().await;
}

#[tokio::test]
async fn s14_an_edit_and_a_delete_count_for_the_next_search() {
    let (server, _dir) = started().await;
    let id = publish(&server, "ann", "before", json!({})).await;
    publish(&server, "ann", "小 明", json!({})).await;
    assert_eq!(ids(server.get("/v1/search/items?q=%E5%B0%8F%E6%98%8E").await), none(), "the characters stand apart");
    server.call(&format!("PATCH /v1/items/{id}"), Some(r#"{"body":{"text":"after"}}"#)).await.expect(200);
    assert_eq!(ids(server.get("/v1/search/items?q=before").await), none());
    assert_eq!(ids(server.get("/v1/search/items?q=AFTER").await), vec![id.clone()]);
    server.call(&format!("DELETE /v1/items/{id}"), None).await.expect(204);
    assert_eq!(ids(server.get("/v1/search/items?q=after").await), none());
    server.close().await;
}

#[tokio::test]
async fn s14_users_are_found_by_any_reader_as_they_are_now() {
    let (server, _dir) = started().await;
    for (user, name) in [("u1", "王小明"), ("u2", "Ann Smith"), ("u3", "小明 Smith")] {
        server.call(&format!("PUT /v1/users/{user}"), Some(&json!({"name": name}).to_string())).await.expect(204);
    }
    let xiaoming = "/v1/search/users?q=%E5%B0%8F%E6%98%8E";
    let found = server.get_as("joe", xiaoming).await.expect(200);
    let both = json!([{"user": "u3", "name": "小明 Smith"}, {"user": "u1", "name": "王小明"}]);
    assert_eq!(found.json, json!({"users": both, "next": null}));
    let first = server.get("/v1/search/users?q=smith&limit=1").await.expect(200);
    let next = first.json["next"].as_str().unwrap();
    let second = server.get(&format!("/v1/search/users?q=smith&limit=1&cursor={next}")).await.expect(200);
    assert_eq!((&first.json["users"][0]["user"], &second.json["users"][0]["user"]), (&json!("u3"), &json!("u2")));
    assert_eq!(second.json["next"], Value::Null);
    server.call("DELETE /v1/users/u3", None).await.expect(204);
    server.call("PUT /v1/users/u1", Some(r#"{"name":"Ming"}"#)).await.expect(204);
    assert_eq!(server.get(xiaoming).await.expect(200).json["users"], json!([]));
    assert_eq!(server.get("/v1/search/users?q=u1").await.expect(200).json["users"][0]["name"], "Ming");
    server.close().await;
}

#[tokio::test]
async fn a_wrong_search_is_told_what_would_be_right() {
    let (server, _dir) = started().await;
    let long = "x".repeat(201);
    let cases = [
        ("items?limit=1", "q", "give ?q="),
        ("items?q=", "q", "must hold a word"),
        ("items?q=%F0%9F%91%8D%20!", "q", "must hold a word"),
        (&format!("items?q={long}"), "q", "at most 200 characters, this one has 201"),
        ("items?q=a&kind=", "kind", "one that an item may have"),
        (&format!("items?q=a&kind={}", &long[..65]), "kind", "one that an item may have"),
        ("items?q=a&author=a%20b", "author", "may hold only"),
        ("items?q=a&viewer=", "viewer", "1 to 64"),
        ("items?q=a&since=today", "since", "a time in Unix ms"),
        ("items?q=a&until=1e9", "until", "a time in Unix ms"),
        ("items?q=a&until=1763600000", "until", "until must be a Unix time in milliseconds, and 1763600000 is"),
        ("items?q=a&since=2&until=1", "since", "must not be later than until"),
        ("items?q=a&cursor=x", "cursor", "that an earlier page of this list has given"),
        ("items?q=a&limit=101", "limit", "1 to 100"),
        ("items?q=a&q=b", "q", "stands twice"),
        ("users?q=%20", "q", "must hold a word"),
        ("users?q=a&cursor=", "cursor", "that an earlier page of this list has given"),
        ("users?q=a&viewer=bob", "viewer", "unknown query parameter"),
    ];
    for (query, field, why) in cases {
        let answer = server.get(&format!("/v1/search/{query}")).await.expect(400);
        assert_eq!(answer.json["field"], field, "{query}: {}", answer.text);
        assert!(answer.json["detail"].as_str().unwrap().contains(why), "{query}: {}", answer.text);
    }
    server.close().await;
}

#[tokio::test]
async fn a_server_whose_search_is_off_names_the_setting() {
    let (server, _dir) = Server::start().await;
    publish(&server, "ann", "hello", json!({})).await;
    for path in ["/v1/search/items?q=hello", "/v1/search/users?q=ann"] {
        let answer = server.get(path).await.expect(404);
        assert!(answer.json["detail"].as_str().unwrap().contains("[search] fields = [\"text\"]"), "{}", answer.text);
    }
    server.close().await;
}
