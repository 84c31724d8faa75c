//! History taken in, and what one store gives another: equal feeds.

use std::cmp::Reverse;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::server::{Server, ids};

const USERS: [&str; 5] = ["ann", "bea", "cid", "dot", "eve"];

/// The last line of a report, and the others.
async fn import(server: &Server, lines: &str) -> (Value, Vec<Value>) {
    let report = server.call("POST /v1/import", Some(lines)).await.expect(200);
    let mut report: Vec<Value> = report.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (report.pop().unwrap(), report)
}

/// Everything but the cursors, in the order of the text.
async fn export(server: &Server) -> Vec<String> {
    let text = server.get("/v1/export").await.expect(200).text;
    let mut lines: Vec<String> = text.lines().filter(|line| !line.contains("\"cursor\"")).map(Into::into).collect();
    lines.sort();
    lines
}

/// What a reader sees: every page, and whom they follow.
async fn seen(server: &Server, user: &str) -> Value {
    let pages = server.pages(&format!("/v1/users/{user}/feed"), 7).await;
    let items: Vec<&Value> = pages.iter().flat_map(|page| page["items"].as_array().unwrap()).collect();
    let mut lists = vec![];
    for list in ["following", "followers", "muted", "hidden", "blocked", "mutual"] {
        let pages = server.pages(&format!("/v1/users/{user}/{list}"), 100).await;
        let mut users: Vec<Value> = pages.iter().flat_map(|page| page["users"].as_array().unwrap().clone()).collect();
        // Those of one millisecond stand in the order of their numbers, which each store gives by itself.
        users.sort_by_key(|user| (Reverse(user["since"].as_i64()), user["user"].as_str().map(str::to_owned)));
        lists.push(json!({list: users}));
    }
    json!({"items": items, "lists": lists})
}

/// Something that a backend might do next.
async fn happen(server: &Server, chance: &mut SmallRng, items: &mut Vec<String>) {
    let user = |chance: &mut SmallRng| USERS[chance.random_range(0..USERS.len())];
    let (one, other) = (user(chance), user(chance));
    let method = ["PUT", "DELETE"][usize::from(chance.random_bool(0.4))];
    match chance.random_range(0..20) {
        0..7 => {
            let mut item = json!({"author": one, "body": {"n": items.len()}});
            if chance.random_bool(0.3) {
                item["rank"] = chance.random_range(-5..5).into();
            }
            if chance.random_bool(0.2) {
                item["foreign_id"] = format!("f{}", items.len()).into();
            }
            if chance.random_bool(0.2) {
                item["audience"] = json!({"users": [other]});
            }
            let accepted = server.post("/v1/items", item).await.expect(201);
            items.push(accepted.json["id"].as_str().unwrap().to_owned());
        }
        7..12 => {
            let status = if one == other { 422 } else { 204 };
            server.call(&format!("{method} /v1/users/{one}/following/{other}"), None).await.expect(status);
        }
        12..14 if !items.is_empty() => {
            let id = &items[chance.random_range(0..items.len())];
            drop(server.call(&format!("PATCH /v1/items/{id}"), Some(r#"{"body":"edited"}"#)).await);
        }
        14..16 if !items.is_empty() => {
            let id = &items[chance.random_range(0..items.len())];
            drop(server.call(&format!("DELETE /v1/items/{id}"), None).await);
        }
        16..19 if one != other => {
            let shield = ["muted", "hidden", "blocked"][chance.random_range(0..3)];
            server.call(&format!("{method} /v1/users/{one}/{shield}/{other}"), None).await.expect(204);
        }
        19 => {
            let class = ["auto", "push", "pull", "everyone"][chance.random_range(0..4)];
            drop(server.call(&format!("PUT /v1/authors/{one}"), Some(&json!({"class": class}).to_string())).await);
        }
        _ => {}
    }
}

#[tokio::test]
async fn i4_what_one_store_gives_another_takes_in_with_equal_feeds() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut chance = SmallRng::seed_from_u64(seed);
        let kept = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let open = async |nth: usize| match seed % 2 {
            0 => Server::open(kept[nth].path()).await,
            _ => Server::open_with_own_posts(kept[nth].path()).await,
        };
        let (source, target) = (open(0).await, open(1).await);
        let mut items = vec![];
        for _ in 0..120 {
            happen(&source, &mut chance, &mut items).await;
        }
        source.settled().await;
        let file = source.get("/v1/export").await.expect(200).text;
        let (done, _) = import(&target, &file).await;
        assert_eq!((&done["done"], &done["refused"]), (&json!(true), &json!(0)), "{done}");
        target.settled().await;
        for user in USERS {
            assert_eq!(seen(&target, user).await, seen(&source, user).await, "{user}");
        }
        assert_eq!(export(&target).await, export(&source).await);
        let before = target.everything().await;
        let (again, _) = import(&target, &file).await;
        assert_eq!((&again["new"], &again["refused"]), (&json!(0), &json!(0)), "a file twice: {again}");
        assert_eq!(target.everything().await, before, "a file twice changes nothing");
    }
}

#[tokio::test]
async fn history_comes_with_its_times_and_behind_its_place() {
    let (server, _kept) = Server::start().await;
    let lines = concat!(
        r#"{"type":"item","id":"1","author":"ann","published_at":1000,"body":"old"}"#,
        "\n",
        r#"{"type":"item","id":"2","author":"ann","published_at":2000,"body":"new","version":3}"#,
        "\n\n",
        r#"{"type":"follow","reader":"bob","author":"ann","since":500,"from":"1"}"#,
        "\n",
        r#"{"type":"item","id":"3","author":"ann","published_at":1500,"body":"for cid","to":["cid"]}"#,
    );
    let (done, _) = import(&server, lines).await;
    assert_eq!(done, json!({"done": true, "lines": 5, "new": 4, "unchanged": 0, "refused": 0}));
    let page = server.get("/v1/users/bob/feed").await.expect(200).json;
    assert_eq!(ids(&page), [2, 1]);
    assert_eq!((&page["items"][0]["version"], &page["items"][1]["published_at"]), (&json!(3), &json!(1000)));
    let following = server.get("/v1/users/bob/following").await.expect(200).text;
    assert!(following.contains("500"), "{following}");
    assert_eq!(ids(&server.get("/v1/users/cid/feed").await.expect(200).json), [3]);
}

#[tokio::test]
async fn bad_lines_are_named_by_number_and_stop_no_other() {
    let (server, _kept) = Server::start().await;
    let lines = concat!(
        "nonsense\n",
        r#"{"type":"item","id":"1","author":"ann","published_at":1000,"body":1}"#,
        "\n",
        r#"{"type":"item","author":"ann","published_at":1000,"body":1}"#,
        "\n",
        r#"{"type":"item","id":"1","author":"bea","published_at":1000,"body":1}"#,
        "\n",
        r#"{"type":"follow","reader":"bob","author":"ann","since":1,"from":"99"}"#,
        "\n",
        r#"{"type":"delete","id":"99"}"#,
        "\n",
        r#"{"type":"follow","reader":"bob","author":"ann","since":1,"from":"1"}"#,
    );
    let (done, report) = import(&server, lines).await;
    assert_eq!(done, json!({"done": true, "lines": 7, "new": 2, "unchanged": 0, "refused": 5}));
    let refused: Vec<(u64, &str)> = report
        .iter()
        .filter(|line| line["refused"].is_object())
        .map(|line| (line["line"].as_u64().unwrap(), line["refused"]["detail"].as_str().unwrap()))
        .collect();
    let reasons =
        ["one JSON object", "\"foreign_id\" is missing", "exists with another payload", "no item 99", "no item 99"];
    assert_eq!(refused.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
    for ((_, detail), reason) in refused.iter().zip(reasons) {
        assert!(detail.contains(reason), "{detail}");
    }
    assert_eq!(ids(&server.get("/v1/users/bob/feed").await.expect(200).json), [1]);
}

#[tokio::test]
async fn what_is_there_stays_as_it_is() {
    let (server, _kept) = Server::start().await;
    let id = server.publish("ann", "mine").await;
    server.follow("bob", "ann").await;
    server.call("DELETE /v1/users/bob/following/ann", None).await.expect(204);
    let lines = format!(
        "{{\"type\":\"item\",\"id\":\"{id}\",\"author\":\"ann\",\"published_at\":1,\"body\":\"theirs\",\"version\":9}}\n\
         {{\"type\":\"follow\",\"reader\":\"bob\",\"author\":\"ann\",\"since\":1}}\n"
    );
    let (done, _) = import(&server, &lines).await;
    assert_eq!((&done["new"], &done["unchanged"]), (&json!(0), &json!(2)));
    assert_eq!(server.get(&format!("/v1/items/{id}")).await.expect(200).json["body"], "mine");
    assert!(server.get("/v1/users/bob/following").await.expect(200).text.contains("[]"));
}

#[tokio::test]
async fn an_export_goes_on_from_any_of_its_cursors() {
    let (server, _kept) = Server::start().await;
    for (n, user) in USERS.iter().enumerate().skip(1).take(3) {
        server.publish("ann", &n.to_string()).await;
        server.publish("bea", &n.to_string()).await;
        server.follow(user, "ann").await;
    }
    server.post("/v1/items", json!({"author": "ann", "body": 1, "audience": {"users": ["bob"]}})).await.expect(201);
    let whole = server.get("/v1/export").await.expect(200).text;
    let lines: Vec<&str> = whole.lines().collect();
    let cursors = lines.iter().enumerate().filter(|(_, line)| line.contains("\"type\":\"cursor\""));
    let mut tried = 0;
    for (at, line) in cursors {
        let cursor = serde_json::from_str::<Value>(line).unwrap()["cursor"].as_str().unwrap().to_owned();
        let rest = server.get(&format!("/v1/export?cursor={cursor}")).await.expect(200).text;
        assert_eq!(rest.lines().collect::<Vec<_>>(), lines[at + 1..], "{cursor}");
        tried += 1;
    }
    assert!(tried > 4, "{whole}");
    server.get("/v1/export?cursor=nonsense").await.expect(400);
}
