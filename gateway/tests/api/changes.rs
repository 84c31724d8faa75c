//! The change log by HTTP.

use serde_json::{Value, json};

use crate::server::Server;

fn ops(changes: &Value) -> Vec<(u64, &str)> {
    let lines = changes["changes"].as_array().unwrap();
    lines.iter().map(|line| (line["offset"].as_u64().unwrap(), line["op"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn i1_changes_follow_a_page_without_hole_or_repetition() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.settled().await;
    let page = server.get("/v1/users/bob/feed").await.expect(200).json;
    let position = &page["position"];
    let start = position["offset"].as_u64().unwrap();

    let (kept, gone) = (server.publish("ann", "kept").await, server.publish("ann", "gone").await);
    server.settled().await;
    server.call(&format!("PATCH /v1/items/{kept}"), Some(r#"{"body":"edited"}"#)).await.expect(200);
    server.call(&format!("DELETE /v1/items/{gone}"), None).await.expect(204);
    server.settled().await;
    server.call("DELETE /v1/users/bob/following/ann", None).await.expect(204);
    server.settled().await;

    let (mut all, mut offset) = (Vec::new(), start);
    loop {
        let epoch = position["epoch"].as_str().unwrap();
        let path = format!("/v1/users/bob/changes?limit=1&offset={offset}&epoch={epoch}");
        let answer = server.get(&path).await.expect(200).json;
        all.extend(answer["changes"].as_array().unwrap().clone());
        offset = answer["position"]["offset"].as_u64().unwrap();
        if answer["head"] == offset {
            break;
        }
    }
    let whole = json!({ "changes": all });
    let expected = ["add", "delete", "update", "delete", "forget"];
    assert_eq!(ops(&whole), (start + 1..).zip(expected).collect::<Vec<_>>(), "an add whose item is gone is a delete");
    assert_eq!((&all[0]["item"]["body"], &all[0]["item"]["version"]), (&json!("edited"), &json!(2)));
    assert_eq!((&all[1]["item_id"], &all[4]["author"]), (&json!(gone), &json!("ann")));
    server.close().await;
}

#[tokio::test]
async fn i9_a_position_that_the_log_does_not_continue_from_is_gone_and_the_problem_says_where_the_log_is() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.settled().await;
    server.publish("ann", "one").await;
    server.settled().await;
    let whole = server.get("/v1/users/bob/changes").await.expect(200).json;
    assert_eq!(whole["changes"][0]["offset"], 1, "without a position, from the start");
    let (epoch, head) = (whole["position"]["epoch"].as_str().unwrap(), whole["head"].as_u64().unwrap());
    for (offset, epoch) in [(head + 1, epoch), (0, "0"), (u64::MAX, epoch), (head, "18446744073709551615")] {
        let gone = server.get(&format!("/v1/users/bob/changes?offset={offset}&epoch={epoch}")).await.expect(410);
        assert_eq!(gone.json["type"], "/problems/gone");
        assert_eq!(gone.json["position"], whole["position"]);
    }
    let at_head = server.get(&format!("/v1/users/bob/changes?offset={head}&epoch={epoch}")).await.expect(200);
    assert_eq!(at_head.json["changes"], json!([]));
    server.close().await;
}

#[tokio::test]
async fn a_user_never_named_has_an_empty_feed_with_a_position_that_goes_on() {
    let (server, _dir) = Server::start().await;
    let page = server.get("/v1/users/new/feed").await.expect(200).json;
    assert_eq!((&page["items"], &page["next"]), (&json!([]), &Value::Null));
    server.publish("ann", "hello").await;
    server.follow("new", "ann").await;
    server.settled().await;
    let position = &page["position"];
    let (epoch, offset) = (position["epoch"].as_str().unwrap(), position["offset"].as_u64().unwrap());
    let changes = server.get(&format!("/v1/users/new/changes?offset={offset}&epoch={epoch}")).await.expect(200);
    assert!(changes.json["changes"].as_array().unwrap().iter().any(|line| line["op"] == "add"), "{}", changes.text);
    server.close().await;
}

#[tokio::test]
async fn i18_an_answer_of_large_changes_is_cut_by_bytes_and_the_rest_follows() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.settled().await;
    let body = "x".repeat(60_000);
    for _ in 0..40 {
        server.publish("ann", &body).await;
    }
    server.settled().await;
    let mut next = "/v1/users/bob/changes?limit=1000".to_owned();
    let (mut adds, mut answers) = (0, 0);
    loop {
        let answer = server.get(&next).await.expect(200);
        assert!(answer.text.len() < 1_200_000, "{} bytes", answer.text.len());
        adds += ops(&answer.json).iter().filter(|(_, op)| *op == "add").count();
        answers += 1;
        let (epoch, offset) = (answer.json["position"]["epoch"].as_str().unwrap(), &answer.json["position"]["offset"]);
        if *offset == answer.json["head"] {
            break;
        }
        next = format!("/v1/users/bob/changes?limit=1000&epoch={epoch}&offset={offset}");
    }
    assert_eq!((adds, answers), (40, 3));
    server.close().await;
}

/// An imported follow from the start shows the whole past, as one does that was made under `backfill = "all"`.
#[tokio::test]
async fn s12_the_forget_of_a_follow_with_a_long_past_says_where_pages_go_on() {
    let (server, _dir) = Server::start().await;
    let body = |id: u64| format!(r#"{{"type":"item","id":"{id}","author":"ann","body":{id},"published_at":{id}}}"#);
    let items: Vec<String> = (1..=150).map(body).collect();
    server.call("POST /v1/import", Some(&items.join("\n"))).await.expect(200);
    let position = server.get("/v1/users/bob/feed").await.expect(200).json["position"].clone();
    let follow = r#"{"type":"follow","reader":"bob","author":"ann","since":1,"from":"start"}"#;
    server.call("POST /v1/import", Some(follow)).await.expect(200);
    server.settled().await;

    let (offset, epoch) = (&position["offset"], position["epoch"].as_str().unwrap());
    let path = format!("/v1/users/bob/changes?limit=1000&offset={offset}&epoch={epoch}");
    let changes = server.get(&path).await.expect(200).json["changes"].clone();
    let changes = changes.as_array().unwrap();
    let brought: Vec<&str> = changes[1..].iter().map(|change| change["item"]["id"].as_str().unwrap()).collect();
    assert_eq!(brought, (51..=150).map(|id: u64| id.to_string()).collect::<Vec<_>>());
    let forget = &changes[0];
    assert_eq!((&forget["op"], &forget["author"]), (&json!("forget"), &json!("ann")));
    assert_eq!(forget["floor"], json!({"rank": 50, "id": "50"}));
    let next = forget["next"].as_str().unwrap();
    let page = server.get(&format!("/v1/users/bob/feed?limit=50&cursor={next}")).await.expect(200).json;
    let shown: Vec<&str> = page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(shown, (1..=50).rev().map(|id: u64| id.to_string()).collect::<Vec<_>>());
    assert_eq!(page["next"], Value::Null);

    server.call("DELETE /v1/users/bob/following/ann", None).await.expect(204);
    server.settled().await;
    let offset = offset.as_u64().unwrap() + 101;
    let path = format!("/v1/users/bob/changes?offset={offset}&epoch={epoch}");
    let changes = server.get(&path).await.expect(200).json["changes"].clone();
    assert_eq!(changes, json!([{"offset": offset + 1, "op": "forget", "author": "ann"}]), "it has no floor");
    server.close().await;
}
