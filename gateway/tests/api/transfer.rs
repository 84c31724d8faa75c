//! Whole stores, out of one and into another.

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures_util::stream;
use serde_json::json;

use crate::server::{API_KEY, Server, request};

/// An import whose lines are still to come.
fn silent() -> Request<Body> {
    let never = stream::pending::<Result<Bytes, std::convert::Infallible>>();
    request("POST /v1/import", Some(API_KEY), None).map(|_| Body::from_stream(never))
}

/// Without the cursors: two stores may number their users in another order.
async fn exported(server: &Server) -> Vec<String> {
    let export = server.get("/v1/export").await.expect(200).text;
    export.lines().filter(|line| !line.contains("cursor")).map(str::to_owned).collect()
}

async fn classify(server: &Server, author: &str, class: &str) {
    let body = json!({"class": class}).to_string();
    server.call(&format!("PUT /v1/authors/{author}"), Some(&body)).await.expect(204);
}

#[tokio::test]
async fn what_one_store_exports_another_takes_in_and_exports_again() {
    let ((from, _dir), (to, _other_dir)) = (Server::start().await, Server::start().await);
    for (author, class) in [("news", "everyone"), ("star", "pull"), ("shop", "push"), ("ann", "everyone")] {
        classify(&from, author, class).await;
    }
    let gone = from.publish("ann", "1").await;
    let liked = from.publish("ann", "2").await;
    from.follow("bob", "ann").await;
    for (item, kind, user) in [(&gone, "like", "bob"), (&liked, "like", "bob"), (&liked, "a:b", "eve")] {
        from.call(&format!("PUT /v1/items/{item}/reactions/{kind}/{user}"), None).await.expect(200);
    }
    let path = format!("/v1/items/{liked}/comments");
    let first = json!({"author": "bob", "body": {"a" : "first"}, "id": "9"});
    from.post(&path, first).await.expect(201);
    from.post(&path, json!({"author": "eve", "body": "reply", "reply_to": "9"})).await.expect(201);
    from.post(&path, json!({"author": "eve", "body": "edited", "id": "10"})).await.expect(201);
    from.call(&format!("PATCH {path}/10"), Some(r#"{"body":"edited since"}"#)).await.expect(200);
    from.call(&format!("DELETE {path}/9"), None).await.expect(204);
    from.publish("ann", "3").await;
    from.call(&format!("DELETE /v1/items/{gone}"), None).await.expect(204);
    from.call("DELETE /v1/users/eve/following/ann", None).await.expect(204);
    from.call("PUT /v1/users/eve/blocked/bob", None).await.expect(204);
    let direct = json!({"author": "bob", "body": 4, "audience": {"users": ["ann", "eve"]}});
    from.post("/v1/items", direct).await.expect(201);
    let to_nobody = json!({"author": "bob", "body": 5, "audience": {"users": ["eve"]}});
    from.post("/v1/items", to_nobody).await.expect(201);

    let lines = exported(&from).await;
    let report = to.call("POST /v1/import", Some(&lines.join("\n"))).await.expect(200).text;
    let done = json!({"done": true, "lines": lines.len(), "new": lines.len(), "unchanged": 0, "refused": 0});
    assert_eq!(report.lines().last().unwrap().parse::<serde_json::Value>().unwrap(), done, "{report}");
    let (mut ours, mut theirs) = (lines, exported(&to).await);
    ours.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(ours, theirs);
    assert_eq!(ours.iter().filter(|line| line.contains("\"reaction\"")).count(), 2, "those of the living item");
    let counts = to.get(&format!("/v1/items/{liked}")).await.expect(200).json["counts"].clone();
    assert_eq!(counts, json!({"a:b": 1, "like": 1, "comments": 2}));
    let [ours, theirs] = [from.get(&path).await.expect(200).json, to.get(&path).await.expect(200).json];
    assert_eq!(ours["comments"], theirs["comments"], "each in its place, with its version");
    assert_eq!(theirs["comments"].as_array().unwrap().len(), 3);
    let again = to.call("POST /v1/import", Some(&exported(&from).await.join("\n"))).await.expect(200).text;
    let again: serde_json::Value = again.lines().last().unwrap().parse().unwrap();
    assert_eq!((&again["new"], &again["refused"]), (&json!(0), &json!(0)));
    for (author, class) in [("news", "everyone"), ("star", "pull"), ("shop", "push")] {
        let about = to.get(&format!("/v1/authors/{author}")).await.expect(200).json;
        assert_eq!(about["class"], class, "{author} has published nothing yet");
    }
    from.close().await;
    to.close().await;
}

#[tokio::test]
async fn an_export_goes_on_behind_each_of_its_cursors() {
    let (server, _dir) = Server::start().await;
    let item = server.publish("ann", "1").await;
    server.follow("bob", "ann").await;
    server.call("PUT /v1/users/ann", Some(r#"{"name":"Ann"}"#)).await.expect(204);
    server.call(&format!("PUT /v1/items/{item}/reactions/a:b/bob"), None).await.expect(200);
    server.post(&format!("/v1/items/{item}/comments"), json!({"author": "bob", "body": 2})).await.expect(201);
    server.call("PUT /v1/users/ann/lists/a:b@c/bob", None).await.expect(204);
    server.call("PUT /v1/users/ann/blocked/eve", None).await.expect(204);
    server.call(&format!("PUT /v1/users/ann/pins/{item}"), None).await.expect(204);
    let to_bob = json!({"author": "ann", "body": 3, "audience": {"users": ["bob"]}});
    server.post("/v1/items", to_bob).await.expect(201);
    let whole = server.get("/v1/export").await.expect(200).text;
    let mut cursors = 0;
    for (at, line) in whole.lines().enumerate() {
        let line: serde_json::Value = line.parse().unwrap();
        let Some(cursor) = line["cursor"].as_str() else { continue };
        let rest = server.get(&format!("/v1/export?cursor={cursor}")).await.expect(200).text;
        let expected: Vec<&str> = whole.lines().skip(at + 1).collect();
        assert_eq!(rest.lines().collect::<Vec<_>>(), expected, "{cursor}");
        cursors += 1;
    }
    assert!(cursors >= 8, "{whole}");
    server.close().await;
}

/// Each add that an item had counts among the newest for a reader who followed while it stood there.
#[tokio::test]
async fn s11_feeds_of_items_that_moved_are_the_same_in_a_store_that_takes_them_in() {
    let ((from, _dir), (to, _other_dir)) = (Server::start().await, Server::start().await);
    for nth in 0..104 {
        let item = json!({"author": "ann", "body": nth, "id": (nth + 1).to_string(), "rank": nth});
        from.post("/v1/items", item).await.expect(201);
    }
    let rank = async |id: i32, rank: i64| {
        from.call(&format!("PATCH /v1/items/{id}"), Some(&json!({ "rank": rank }).to_string())).await.expect(200);
    };
    from.follow("bob", "ann").await;
    // Each was among the newest hundred when bob followed, and leaves its place there, one of them twice.
    rank(104, -5).await;
    rank(103, 500).await;
    rank(103, 102).await;
    rank(103, 501).await;
    from.follow("cat", "ann").await;
    // This one was too old for bob.
    rank(1, 600).await;
    rank(102, 700).await;
    from.call("DELETE /v1/items/102", None).await.expect(204);
    from.follow("dan", "ann").await;

    let lines = exported(&from).await;
    let report = to.call("POST /v1/import", Some(&lines.join("\n"))).await.expect(200).text;
    assert!(report.ends_with("\"unchanged\":0,\"refused\":0}\n"), "{report}");
    let mut pages = vec![];
    for server in [&from, &to] {
        server.settled().await;
        for user in ["bob", "cat", "dan"] {
            let all = server.pages(&format!("/v1/users/{user}/feed"), 60).await;
            let all = all.iter().flat_map(|page| page["items"].as_array().unwrap());
            let shown = all.map(|item| (item["id"].clone(), item["rank"].clone()));
            pages.push(shown.collect::<Vec<_>>());
        }
    }
    let theirs = pages.split_off(3);
    assert_eq!(pages, theirs);
    assert_eq!(pages[0].len(), 100, "99 of the newest 100 live, and one came by its move");
    let (mut ours, mut theirs) = (lines, exported(&to).await);
    ours.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(ours, theirs);
    let again = to.call("POST /v1/import", Some(&ours.join("\n"))).await.expect(200).text;
    assert!(again.contains("\"new\":0,"), "{again}");
    from.close().await;
    to.close().await;
}

/// Line breaks between the tokens of a body are kept, and would be read as ends of lines.
#[tokio::test]
async fn i6_an_export_has_one_line_for_each_record_whatever_its_body_is() {
    let ((from, _dir), (to, _other_dir)) = (Server::start().await, Server::start().await);
    let forged = r#"{"type":"item","id":"666","author":"eve","published_at":1,"body":"forged"}"#;
    let body = format!("[1.0,\n{forged}\r\n,\"\\n\u{2028}\"]");
    let item = format!(r#"{{"author":"ann","body":{body}}}"#);
    let accepted = from.call("POST /v1/items", Some(&item)).await.expect(201).json;
    let id = accepted["id"].as_str().unwrap();
    let lines = exported(&from).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    to.call("POST /v1/import", Some(&lines.join("\n"))).await.expect(200);
    to.get("/v1/items/666").await.expect(404);
    let shown = to.get(&format!("/v1/items/{id}")).await.expect(200).text;
    assert!(shown.contains(&body.replace(['\n', '\r'], " ")), "{shown}");
    from.close().await;
    to.close().await;
}

#[tokio::test]
async fn an_item_that_was_addressed_to_nobody_but_who_is_in_a_block_is_taken_in() {
    let (server, _dir) = Server::start().await;
    let line =
        json!({"type": "item", "id": "7", "author": "ann", "published_at": 1, "body": 1, "direct": true, "to": []});
    let report = server.call("POST /v1/import", Some(&line.to_string())).await.expect(200).text;
    assert!(report.ends_with("{\"done\":true,\"lines\":1,\"new\":1,\"unchanged\":0,\"refused\":0}\n"), "{report}");
    server.get("/v1/items/7").await.expect(200);
    server.get_as("bob", "/v1/items/7").await.expect(404);
    server.close().await;
}

#[tokio::test]
async fn i18_imports_hold_their_share_of_what_all_requests_may_hold() {
    let (server, _dir) = Server::start().await;
    let mut under_way = vec![];
    let refused = loop {
        let answer = server.begin(silent()).await;
        if answer.status() != 200 {
            break answer.status();
        }
        under_way.push(answer);
        assert!(under_way.len() < 100);
    };
    assert_eq!((refused.as_u16(), under_way.len()), (503, 32));
    under_way.clear();
    assert_eq!(server.begin(silent()).await.status(), 200);
    server.close().await;
}
