//! Feeds that have names: an item goes to one by its kind, and is read by `?name=`.

use feedgate_common::FeedId;
use feedgate_common::named::NamedFeed;
use feedgate_gateway::clock;
use serde_json::{Value, json};

use crate::server::{Server, ids};

const HOUR_MS: i64 = 3_600_000;

fn notifications(kinds: &[&str], cap: usize, ttl: Option<i64>) -> Vec<NamedFeed> {
    let kinds = kinds.iter().map(|&kind| kind.into()).collect();
    vec![NamedFeed { id: FeedId::MAIN, name: "notifications".into(), kinds, ranked: false, cap, ttl }]
}

async fn start(cap: usize, ttl: Option<i64>) -> (Server, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Server::open_with(dir.path(), notifications(&["like", "comment"], cap, ttl)).await, dir)
}

fn item(author: &str, id: u64, kind: Option<&str>) -> Value {
    let mut item = json!({"author": author, "body": id, "id": id.to_string(), "rank": id});
    if let Some(kind) = kind {
        item["kind"] = kind.into();
    }
    item
}

/// An item as a line of an import, published at 5 ms.
fn line(author: &str, id: u64, kind: Option<&str>) -> String {
    let mut line = item(author, id, kind);
    line["type"] = "item".into();
    line["published_at"] = 5.into();
    format!("{line}\n")
}

/// The ids of all pages of `path`, of the main feed and of the notifications.
async fn both(server: &Server, path: &str) -> [Vec<u64>; 2] {
    [server.whole(path, "").await, server.whole(path, "&name=notifications").await]
}

/// What stands in the log of a feed: each op, and the item or author it is about.
async fn changes(server: &Server, path: &str) -> Vec<String> {
    let answer = server.get(path).await.expect(200).json;
    let about = |line: &Value| match &line["op"] {
        op if op == "forget" => format!("{op} {}", line["author"]),
        op if op == "delete" => format!("{op} {}", line["item_id"]),
        op => format!("{op} {}", line["item"]["id"]),
    };
    answer["changes"].as_array().unwrap().iter().map(about).map(|text| text.replace('"', "")).collect()
}

#[tokio::test]
async fn an_item_goes_to_the_feed_that_claims_its_kind_whichever_way_it_comes() {
    let (server, _dir) = start(1000, None).await;
    server.follow("bob", "ann").await;
    server.post("/v1/items", item("ann", 1, Some("like"))).await.expect(201);
    let ops = [item("ann", 2, Some("comment")), item("ann", 3, Some("post")), item("ann", 4, None)];
    server.post("/v1/items/batch", json!({ "ops": ops })).await.expect(200);
    let lines = line("ann", 5, Some("like")) + &line("ann", 6, None);
    server.call("POST /v1/import", Some(&lines)).await.expect(200);
    for (id, kind) in [(7, Some("like")), (8, None)] {
        let mut direct = item("eve", id, kind);
        direct["audience"] = json!({"users": ["bob"]});
        server.post("/v1/items", direct).await.expect(201);
    }
    server.settled().await;
    assert_eq!(both(&server, "/v1/users/bob/feed").await, [vec![8, 6, 4, 3], vec![7, 5, 2, 1]]);
    assert_eq!(both(&server, "/v1/users/ann/outbox").await, [vec![6, 4, 3], vec![5, 2, 1]]);
    server.close().await;
}

#[tokio::test]
async fn what_happens_to_an_item_is_told_where_it_went_and_an_unfollow_in_both() {
    let (server, _dir) = start(1000, None).await;
    server.follow("bob", "ann").await;
    both(&server, "/v1/users/bob/feed").await;
    for (id, kind) in [(1, Some("like")), (2, None), (3, Some("like"))] {
        server.post("/v1/items", item("ann", id, kind)).await.expect(201);
    }
    server.settled().await;
    server.call("PATCH /v1/items/1", Some(r#"{"body":"edited"}"#)).await.expect(200);
    server.call("DELETE /v1/items/3", None).await.expect(204);
    server.settled().await;
    let notifications = "/v1/users/bob/changes?name=notifications";
    assert_eq!(changes(&server, notifications).await, ["add 1", "delete 3", "update 1", "delete 3"]);
    assert_eq!(changes(&server, "/v1/users/bob/changes").await, ["add 2"]);

    server.call("DELETE /v1/users/bob/following/ann", None).await.expect(204);
    server.settled().await;
    assert_eq!(changes(&server, notifications).await.last().unwrap(), "forget ann");
    assert_eq!(changes(&server, "/v1/users/bob/changes").await, ["add 2", "forget ann"]);
    assert_eq!(both(&server, "/v1/users/bob/feed").await, [[0; 0], [0; 0]]);
    server.close().await;
}

#[tokio::test]
async fn an_authors_likes_do_not_keep_posts_out_of_what_a_follow_brings() {
    let (server, _dir) = start(1000, None).await;
    let ops: Vec<Value> = (1..=300).map(|id| item("ann", id, (id > 5).then_some("like"))).collect();
    server.post("/v1/items/batch", json!({ "ops": ops })).await.expect(200);
    server.follow("bob", "ann").await;
    server.settled().await;
    let [posts, likes] = both(&server, "/v1/users/bob/feed").await;
    assert_eq!(posts, [5, 4, 3, 2, 1]);
    assert_eq!(likes, (201..=300).rev().collect::<Vec<u64>>(), "the newest hundred of that feed");
    server.close().await;
}

#[tokio::test]
async fn a_feed_ends_behind_its_cap_and_shows_nothing_older_than_its_time_to_live() {
    let (server, _dir) = start(3, Some(HOUR_MS)).await;
    server.follow("bob", "ann").await;
    for id in 1..=5 {
        server.post("/v1/items", item("ann", id, Some("like"))).await.expect(201);
        server.post("/v1/items", item("ann", 10 + id, None)).await.expect(201);
    }
    server.settled().await;
    assert_eq!(both(&server, "/v1/users/bob/feed").await, [vec![15, 14, 13, 12, 11], vec![5, 4, 3]]);

    for (id, kind) in [(20, Some("comment")), (21, None)] {
        let mut old = item("ann", id, kind);
        old["published_at"] = (clock::now() - HOUR_MS - 1).into();
        server.post("/v1/items", old).await.expect(201);
    }
    server.settled().await;
    let [main, named] = both(&server, "/v1/users/bob/feed").await;
    assert_eq!((main[0], named.contains(&20)), (21, false));
    let told = changes(&server, "/v1/users/bob/changes?name=notifications").await;
    assert_eq!(told.last().unwrap(), "delete 20", "a change whose item is too old");
    server.close().await;
}

#[tokio::test]
async fn a_name_that_is_not_configured_is_answered_with_those_that_are() {
    let (server, _dir) = start(1000, None).await;
    for path in ["feed", "changes", "outbox"] {
        server.get(&format!("/v1/users/bob/{path}?name=feed")).await.expect(200);
        server.get(&format!("/v1/users/bob/{path}?name=notifications")).await.expect(200);
        let missing = server.get(&format!("/v1/users/bob/{path}?name=likes")).await.expect(404);
        let wants = r#"there is no feed named "likes"; there is "feed", "notifications""#;
        assert_eq!(missing.json["detail"], wants, "{path}");
        server.get_as("bob", &format!("/v1/users/bob/{path}?name=notifications")).await.expect(200);
        server.get_as("eve", &format!("/v1/users/bob/{path}?name=notifications")).await.expect(403);
    }
    server.close().await;
}

#[tokio::test]
async fn an_item_stays_where_it_was_accepted_whatever_is_configured_later() {
    let (server, dir) = start(1000, None).await;
    server.follow("bob", "ann").await;
    let like = item("ann", 1, Some("like"));
    server.post("/v1/items", like.clone()).await.expect(201);
    server.settled().await;
    let before = both(&server, "/v1/users/bob/feed").await;
    server.close().await;

    let server = Server::open(dir.path()).await;
    server.get("/v1/users/bob/feed?name=notifications").await.expect(404);
    server.post("/v1/items", like).await.expect(200);
    server.post("/v1/items", item("ann", 2, Some("like"))).await.expect(201);
    server.call("PATCH /v1/items/1", Some(r#"{"body":"edited"}"#)).await.expect(200);
    server.settled().await;
    assert_eq!(server.whole("/v1/users/bob/feed", "").await, [2]);
    server.close().await;

    let server = Server::open_with(dir.path(), notifications(&["comment"], 1000, None)).await;
    assert_eq!(before, [vec![], vec![1]]);
    assert_eq!(both(&server, "/v1/users/bob/feed").await, [vec![2], vec![1]]);
    let named = server.get("/v1/users/bob/feed?name=notifications").await.expect(200).json;
    assert_eq!((ids(&named), &named["items"][0]["body"]), (vec![1], &json!("edited")));
    server.close().await;
}

#[tokio::test]
async fn a_cap_and_a_time_to_live_may_be_changed_at_any_time_for_nothing_is_thrown_away() {
    let (server, dir) = start(2, Some(HOUR_MS)).await;
    for id in 1..=6 {
        let mut like = item("ann", id, Some("like"));
        like["published_at"] = (clock::now() - if id > 4 { 0 } else { 2 * HOUR_MS }).into();
        server.post("/v1/items", like).await.expect(201);
    }
    server.follow("bob", "ann").await;
    server.settled().await;
    let mut server = server;
    let whole = async |server: &Server| server.whole("/v1/users/bob/feed", "&name=notifications").await;
    assert_eq!(whole(&server).await, [6, 5], "the inbox is made with what the cap shows");
    for (cap, ttl, shown) in [(5, None, &[6, 5, 4, 3, 2][..]), (1, None, &[6]), (5, Some(HOUR_MS), &[6, 5])] {
        server.close().await;
        server = Server::open_with(dir.path(), notifications(&["like"], cap, ttl)).await;
        assert_eq!(whole(&server).await, shown, "cap {cap}, ttl {ttl:?}");
    }
    server.close().await;
}

#[tokio::test]
async fn what_one_store_exports_stands_in_the_same_feeds_of_another() {
    let (from, _dir) = start(1000, None).await;
    for id in 1..=4 {
        from.post("/v1/items", item("ann", id, (id % 2 == 0).then_some("like"))).await.expect(201);
    }
    from.follow("bob", "ann").await;
    for id in 5..=8 {
        from.post("/v1/items", item("ann", id, (id % 2 == 0).then_some("comment"))).await.expect(201);
    }
    let mut direct = item("eve", 9, Some("like"));
    direct["audience"] = json!({"users": ["bob"]});
    from.post("/v1/items", direct).await.expect(201);
    from.call("DELETE /v1/items/2", None).await.expect(204);
    from.call("DELETE /v1/items/6", None).await.expect(204);
    from.settled().await;
    let lines = from.get("/v1/export").await.expect(200).text;

    let (to, _dir) = start(1000, None).await;
    to.call("POST /v1/import", Some(&lines)).await.expect(200);
    to.settled().await;
    for path in ["/v1/users/bob/feed", "/v1/users/ann/outbox"] {
        assert_eq!(both(&to, path).await, both(&from, path).await, "{path}");
    }
    assert_eq!(both(&to, "/v1/users/bob/feed").await, [vec![7, 5, 3, 1], vec![9, 8, 4]]);
    from.close().await;
    to.close().await;
}

#[tokio::test]
async fn i4_likes_taken_back_after_a_follow_keep_no_post_out_of_an_imported_feed() {
    let (from, _dir) = start(1000, None).await;
    let ops: Vec<Value> = (1..=105).map(|id| item("ann", id, (id > 5).then_some("like"))).collect();
    from.post("/v1/items/batch", json!({ "ops": ops })).await.expect(200);
    from.follow("bob", "ann").await;
    for id in 6..=105 {
        from.call(&format!("DELETE /v1/items/{id}"), None).await.expect(204);
    }
    from.settled().await;
    let lines = from.get("/v1/export").await.expect(200).text;

    let (to, _dir) = start(1000, None).await;
    to.call("POST /v1/import", Some(&lines)).await.expect(200);
    to.settled().await;
    for server in [from, to] {
        assert_eq!(both(&server, "/v1/users/bob/feed").await, [vec![5, 4, 3, 2, 1], vec![]]);
        server.close().await;
    }
}
