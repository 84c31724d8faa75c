//! Edges: listed at once, newest first, in the feed soon after.

use serde_json::{Value, json};

use crate::server::{Server, ids};

pub(crate) fn users(list: &Value) -> Vec<&str> {
    list["users"].as_array().unwrap().iter().map(|line| line["user"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn lists_page_through_every_edge_newest_first() {
    let (server, _dir) = Server::start().await;
    for author in ["a", "b", "c", "d", "e"] {
        server.follow("bob", author).await;
        server.follow(author, "bob").await;
    }
    server.call("DELETE /v1/users/bob/following/c", None).await.expect(204);
    server.call("DELETE /v1/users/bob/following/c", None).await.expect(204);
    server.follow("bob", "b").await;
    for (list, expected) in [("following", vec!["e", "d", "b", "a"]), ("followers", vec!["e", "d", "c", "b", "a"])] {
        let pages = server.pages(&format!("/v1/users/bob/{list}"), 2).await;
        let seen: Vec<&str> = pages.iter().flat_map(users).collect();
        assert!(pages.iter().all(|page| page["users"][0]["since"].as_i64().unwrap() > 0));
        assert_eq!(seen, expected, "{list}");
    }
    assert_eq!(server.get("/v1/users/nobody/following").await.expect(200).json, json!({"users": [], "next": null}));
    server.close().await;
}

#[tokio::test]
async fn a_batch_of_edges_answers_each_in_its_place() {
    let (server, _dir) = Server::start().await;
    let ops = json!({"ops": [
        {"op": "follow", "user": "bob", "author": "ann"},
        {"op": "like", "user": "bob", "author": "ann"},
        {"op": "follow", "user": "bob", "author": "eve"},
        {"op": "unfollow", "user": "bob", "author": "ann"},
        {"op": "follow", "user": "bob"},
    ]});
    let results = server.post("/v1/follows/batch", ops).await.expect(200).json["results"].clone();
    let statuses: Vec<u64> = results.as_array().unwrap().iter().map(|r| r["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 422, 200, 200, 422]);
    assert_eq!(results[3], json!({"status": 200, "user": "bob", "author": "ann", "following": false}));
    assert_eq!((&results[1]["pointer"], &results[4]["pointer"]), (&json!("/ops/1/op"), &json!("/ops/4/author")));
    assert_eq!(users(&server.get("/v1/users/bob/following").await.json), ["eve"]);
    server.close().await;
}

#[tokio::test]
async fn a_batch_mutes_hides_and_blocks_too() {
    let (server, _dir) = Server::start().await;
    let verbs = ["mute", "hide", "block", "unmute", "unhide", "unblock"];
    let ops: Vec<Value> = verbs.iter().map(|op| json!({"op": op, "user": "bob", "other": "eve"})).collect();
    let bad = [
        json!({"op": "mute", "user": "bob", "author": "eve"}),
        json!({"op": "follow", "user": "bob", "other": "eve"}),
        json!({"op": "block", "user": "bob"}),
        json!({"op": "hide", "user": "bob", "other": "bob"}),
        json!({"op": "unlike", "user": "bob", "other": "eve"}),
    ];
    let ops = [&ops[..3], &bad, &ops[3..5]].concat();
    let results = server.post("/v1/follows/batch", json!({ "ops": ops })).await.expect(200).json["results"].clone();
    let done: Vec<&Value> = results.as_array().unwrap().iter().filter(|result| result["status"] == 200).collect();
    let outcome = |name: &str, up: bool| json!({"status": 200, "user": "bob", "other": "eve", name: up});
    let expected = [("muted", true), ("hidden", true), ("blocked", true), ("muted", false), ("hidden", false)];
    assert_eq!(done, expected.map(|(name, up)| outcome(name, up)).iter().collect::<Vec<_>>());
    let wrong = [("/ops/3/author", "\"other\""), ("/ops/4/other", "\"author\""), ("/ops/5/other", "missing")];
    for (n, (pointer, words)) in
        (3..).zip(wrong.into_iter().chain([("/ops/6/other", "another user"), ("/ops/7/op", "\"un\"")]))
    {
        assert_eq!((&results[n]["status"], &results[n]["pointer"]), (&json!(422), &json!(pointer)));
        assert!(results[n]["detail"].as_str().unwrap().contains(words), "{}", results[n]);
    }
    for (list, expected) in [("muted", vec![]), ("hidden", vec![]), ("blocked", vec!["eve"])] {
        assert_eq!(users(&server.get(&format!("/v1/users/bob/{list}")).await.json), expected, "{list}");
    }
    server.close().await;
}

#[tokio::test]
async fn i5_an_unfollowed_author_leaves_the_feed_and_ones_own_posts_stay() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open_with_own_posts(dir.path()).await;
    let (theirs, own) = (server.publish("ann", "theirs").await, server.publish("bob", "own").await);
    server.follow("bob", "ann").await;
    server.settled().await;
    let shown = ids(&server.get("/v1/users/bob/feed").await.expect(200).json);
    assert_eq!(shown, [own.parse::<u64>().unwrap(), theirs.parse().unwrap()]);
    server.call("DELETE /v1/users/bob/following/ann", None).await.expect(204);
    server.settled().await;
    assert_eq!(ids(&server.get("/v1/users/bob/feed").await.json), [own.parse::<u64>().unwrap()]);
    server.close().await;
}

#[tokio::test]
async fn s10_nobody_follows_themself_and_the_answer_names_the_setting() {
    let (server, _dir) = Server::start().await;
    let own = server.publish("bob", "own").await;
    for method in ["PUT", "DELETE"] {
        let answer = server.call(&format!("{method} /v1/users/bob/following/bob"), None).await.expect(422);
        assert_eq!(answer.json["type"], "/problems/invalid-field");
        let detail = answer.json["detail"].as_str().unwrap();
        assert!(detail.contains("bob cannot follow itself") && detail.contains("own_posts = true"), "{detail}");
    }
    let ops = json!({"ops": [
        {"op": "follow", "user": "bob", "author": "ann"},
        {"op": "follow", "user": "bob", "author": "bob"},
        {"op": "unfollow", "user": "bob", "author": "bob"},
    ]});
    let results = server.post("/v1/follows/batch", ops).await.expect(200).json["results"].clone();
    assert_eq!(results[0]["status"], 200);
    for (n, pointer) in [(1, "/ops/1"), (2, "/ops/2")] {
        assert_eq!((&results[n]["status"], &results[n]["pointer"]), (&json!(422), &json!(pointer)));
        assert!(results[n]["detail"].as_str().unwrap().contains("own_posts = true"), "{}", results[n]);
    }
    let line = |kind| json!({"type": kind, "reader": "bob", "author": "bob", "since": 5, "from": "head"}).to_string();
    let follow = server.call("POST /v1/import", Some(&line("follow"))).await;
    assert!(follow.text.contains("bob cannot follow itself"), "{}", follow.text);
    server.settled().await;
    assert_eq!(ids(&server.get("/v1/users/bob/feed").await.expect(200).json), [0; 0], "{own} is in no feed of bob");
    assert_eq!(users(&server.get("/v1/users/bob/following").await.json), ["ann"]);
    server.close().await;
}
