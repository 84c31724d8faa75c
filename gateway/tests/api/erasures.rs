//! A user is erased: accepted at once, carried out by the worker, and told by a receipt. All that is known of one user
//! is given as lines.

use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::server::{API_KEY, Server, request};

async fn lines(server: &Server, user: &str) -> Vec<Value> {
    let export = server.get(&format!("/v1/users/{user}/export")).await.expect(200).text;
    export.lines().map(|line| line.parse().unwrap()).collect()
}

/// The receipt once the erasure is finished.
pub(crate) async fn finished(server: &Server, id: &str) -> Value {
    loop {
        let receipt = server.get(&format!("/v1/erasures/{id}")).await.expect(200).json.clone();
        if !receipt["finished_at"].is_null() {
            return receipt;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_receipt_tells_what_was_removed_and_old_tokens_open_nothing() {
    let (server, dir) = Server::start().await;
    let (gone, kept) = (server.publish("ann", "hers").await, server.publish("bob", "his").await);
    server.follow("bob", "ann").await;
    server.call(&format!("PUT /v1/items/{kept}/reactions/like/ann"), None).await.expect(200);
    let token = server.token("ann");
    let accepted = server.call("POST /v1/users/ann/erase", None).await.expect(202).json.clone();
    assert_eq!((&accepted["id"], &accepted["user"]), (&json!("1"), &json!("ann")));
    server.send(request("GET /v1/users/ann/feed", Some(&token), None)).await.expect(401);
    server.send(request("GET /v1/users/ann/feed", Some(&server.token("ann")), None)).await.expect(200);
    let receipt = finished(&server, "1").await;
    let removed = &receipt["removed"];
    assert_eq!([&removed["items"], &removed["reactions"], &removed["followers"]], [&json!(1), &json!(1), &json!(1)]);
    assert_eq!(removed["comments"], json!(0));
    server.get(&format!("/v1/items/{gone}")).await.expect(404);
    server.get(&format!("/v1/items/{kept}")).await.expect(200);
    for unknown in ["/v1/erasures/2", "/v1/users/nobody/export"] {
        server.get(unknown).await.expect(404);
    }
    server.get("/v1/erasures/x").await.expect(400);
    server.call("POST /v1/users/nobody/erase", None).await.expect(404);
    server.close().await;
    let again = Server::open(dir.path()).await;
    assert_eq!(again.get("/v1/erasures/1").await.expect(200).json, receipt);
    again.close().await;
}

#[tokio::test]
async fn an_export_of_a_user_has_all_that_is_known_of_the_user_and_no_more() {
    let (server, _dir) = Server::start().await;
    let (hers, his) = (server.publish("ann", "hers").await, server.publish("bob", "his").await);
    server.follow("bob", "ann").await;
    server.follow("ann", "cid").await;
    server.follow("bob", "cid").await;
    let direct = json!({"author": "ann", "body": 1, "audience": {"users": ["bob", "eve"]}});
    let direct = server.post("/v1/items", direct).await.expect(201).json["id"].clone();
    let to_ann = json!({"author": "bob", "body": 2, "audience": {"users": ["ann"]}});
    let to_ann = server.post("/v1/items", to_ann).await.expect(201).json["id"].clone();
    for user in ["ann", "eve"] {
        server.call(&format!("PUT /v1/items/{his}/reactions/like/{user}"), None).await.expect(200);
        let comment = json!({"author": user, "body": "said"});
        server.post(&format!("/v1/items/{his}/comments"), comment).await.expect(201);
        server.call(&format!("PUT /v1/users/{user}"), Some(r#"{"name":"N"}"#)).await.expect(204);
        let device = r#"{"platform":"fcm","push_token":"t"}"#;
        server.call(&format!("PUT /v1/users/{user}/devices/d"), Some(device)).await.expect(204);
    }
    for item in [&*hers, direct.as_str().unwrap(), &*his] {
        server.call(&format!("PATCH /v1/items/{item}"), Some(r#"{"body":"now"}"#)).await.expect(200);
    }
    server.call("PUT /v1/users/ann/blocked/eve", None).await.expect(204);
    server.call("PUT /v1/users/cid/muted/ann", None).await.expect(204);
    server.call("PUT /v1/users/cid/muted/eve", None).await.expect(204);
    let lines = lines(&server, "ann").await;
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let ids: Vec<&Value> = of("item").iter().map(|line| &line["id"]).collect();
    assert_eq!(ids, [&json!(hers), &direct]);
    assert_eq!(of("item")[1]["to"], json!(["bob", "eve"]));
    let pair = |line: &&Value, one: &str, other: &str| [line[one].clone(), line[other].clone()];
    let follows: Vec<_> = of("follow").iter().map(|line| pair(line, "reader", "author")).collect();
    assert_eq!(follows, [["ann", "cid"].map(Value::from), ["bob", "ann"].map(Value::from)]);
    let shields: Vec<_> = of("shield").iter().map(|line| pair(line, "user", "other")).collect();
    assert_eq!(shields, [["ann", "eve"].map(Value::from), ["cid", "ann"].map(Value::from)]);
    for (kind, field, value) in [
        ("comment", "author", json!("ann")),
        ("reaction", "user", json!("ann")),
        ("person", "name", json!("N")),
        ("device", "push_token", json!("t")),
        ("addressed", "id", to_ann),
    ] {
        assert_eq!(of(kind).iter().map(|line| &line[field]).collect::<Vec<_>>(), [&value], "{kind}");
    }
    let versions: Vec<_> = of("version").iter().map(|line| [&line["id"], &line["version"], &line["body"]]).collect();
    assert_eq!(versions, [[&json!(hers), &json!(1), &json!("hers")], [&direct, &json!(1), &json!(1)]], "none of his");
    assert_eq!(lines.len(), 13, "{lines:?}");
    server.close().await;
}

#[tokio::test]
async fn i18_an_export_of_a_user_has_each_earlier_body_once_also_if_they_are_large_and_their_items_have_moved() {
    let (server, _dir) = Server::start().await;
    let mut wants = vec![];
    for audience in [json!("followers"), json!("followers"), json!({"users": ["bob"]}), json!({"users": ["bob"]})] {
        let item = json!({"author": "ann", "body": 0, "audience": audience});
        let id = server.post("/v1/items", item).await.expect(201).json["id"].as_str().unwrap().to_owned();
        for version in 1..=20 {
            let large = json!({"body": format!("{version}{}", "x".repeat(60_000))}).to_string();
            server.call(&format!("PATCH /v1/items/{id}"), Some(&large)).await.expect(200);
            wants.push((id.clone(), version));
        }
        server.call(&format!("PATCH /v1/items/{id}"), Some(r#"{"rank":7}"#)).await.expect(200);
    }
    let lines = lines(&server, "ann").await;
    let versions = lines.iter().filter(|line| line["type"] == "version");
    let of = |line: &Value| (line["id"].as_str().unwrap().to_owned(), line["version"].as_u64().unwrap());
    let mut found: Vec<_> = versions.map(of).collect();
    found.sort_unstable();
    wants.sort_unstable();
    assert_eq!(found, wants);
    server.close().await;
}

/// Feedgate reads at most so many lines at a time for an export.
const PIECE: usize = 500;

#[tokio::test]
async fn i18_an_export_reads_some_lines_of_a_user_at_a_time() {
    let (server, _dir) = Server::start().await;
    let users = PIECE + 1;
    let mut file = vec![];
    for other in (0..users).map(|n| format!("user-{n}")) {
        for shield in ["mute", "hide"] {
            file.push(json!({"type": "shield", "shield": shield, "user": "ann", "other": other, "since": 7}));
        }
        file.push(json!({"type": "listed", "user": "ann", "list": "close", "member": other, "since": 7}));
        file.push(json!({"type": "listed", "user": other, "list": "close", "member": "ann", "since": 7}));
    }
    file.push(json!({"type": "listed", "user": "ann", "list": "far", "member": "user-0", "since": 7}));
    let file: Vec<String> = file.iter().map(Value::to_string).collect();
    let report = server.call("POST /v1/import", Some(&file.join("\n"))).await.expect(200).text;
    assert!(report.ends_with(&format!("\"new\":{},\"unchanged\":0,\"refused\":0}}\n", file.len())), "{report}");
    for path in ["/v1/users/ann/export", "/v1/export"] {
        let mut body = server.begin(request(&format!("GET {path}"), Some(API_KEY), None)).await.into_body();
        let mut all = vec![];
        while let Some(frame) = body.frame().await {
            let piece = String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap();
            let lines: Vec<String> =
                piece.lines().filter(|line| !line.contains("\"cursor\"")).map(str::to_owned).collect();
            // What is left of one kind may be written together with the first of the next kind.
            assert!(lines.len() < 2 * PIECE, "{path}: {} lines at a time", lines.len());
            all.extend(lines);
        }
        all.retain(|line| line.contains("\"shield\"") || line.contains("\"listed\""));
        let mut wanted = file.clone();
        let sorted = |lines: &mut Vec<String>| {
            let mut values: Vec<Value> = lines.iter().map(|line| line.parse().unwrap()).collect();
            values.sort_unstable_by_key(Value::to_string);
            values
        };
        assert_eq!(sorted(&mut all), sorted(&mut wanted), "{path}");
    }
    server.close().await;
}
