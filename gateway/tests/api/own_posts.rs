//! An author's items in the author's own feed, and what a user has sent to readers by name (S10).

use serde_json::{Value, json};

use crate::follows::users;
use crate::server::{Server, ids};

async fn feed(server: &Server, user: &str) -> Vec<u64> {
    server.whole(&format!("/v1/users/{user}/feed"), "").await
}

async fn unread(server: &Server, user: &str) -> (u64, u64) {
    let page = server.get(&format!("/v1/users/{user}/feed?limit=1")).await.expect(200).json["unread"].as_u64();
    (page.unwrap(), server.get(&format!("/v1/users/{user}/seen")).await.expect(200).json["unread"].as_u64().unwrap())
}

/// Publishes so many items of an author, in calls of a thousand. Gives the id of the last one.
async fn publish_many(server: &Server, author: &str, count: usize) -> u64 {
    let (mut last, mut left) = (0, count);
    while left > 0 {
        let ops: Vec<Value> = (0..left.min(1000)).map(|n| json!({"author": author, "body": n})).collect();
        left -= ops.len();
        let results = server.post("/v1/items/batch", json!({"ops": ops})).await.expect(200).json["results"].clone();
        last = results.as_array().unwrap().last().unwrap()["id"].as_str().unwrap().parse().unwrap();
    }
    last
}

#[tokio::test]
async fn s10_an_author_of_any_class_sees_its_own_items_and_no_list_shows_why() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open_with_own_posts(dir.path()).await;
    for class in ["auto", "push", "pull", "everyone"] {
        let author = format!("of-{class}");
        server.call(&format!("PUT /v1/authors/{author}"), Some(&json!({"class": class}).to_string())).await.expect(204);
        assert_eq!(feed(&server, &author).await, [0; 0], "the inbox is there before the first item");
        let mut own: Vec<u64> = vec![];
        for _ in 0..3 {
            own.insert(0, server.publish(&author, "mine").await.parse().unwrap());
        }
        server.settled().await;
        assert_eq!(feed(&server, &author).await, own, "{class}: live");
        server.forget_inbox(&author).await;
        assert_eq!(feed(&server, &author).await, own, "{class}: built anew");
        server.call(&format!("DELETE /v1/items/{}", own[1]), None).await.expect(204);
        server.settled().await;
        assert_eq!(feed(&server, &author).await, [own[0], own[2]], "{class}: a delete");
        for list in ["following", "followers", "mutual"] {
            assert_eq!(users(&server.get(&format!("/v1/users/{author}/{list}")).await.expect(200).json), [""; 0]);
        }
        assert_eq!(server.get(&format!("/v1/authors/{author}")).await.json["followers"], 0);
        let why = server.get(&format!("/v1/explain?reader={author}&item={}", own[0])).await.expect(200).json;
        assert_eq!(why["verdict"], "shown", "{why}");
        assert!(why.to_string().contains("own items"), "{why}");
    }
    assert_eq!(server.get("/v1/stats").await.json["archive"]["edges"], 0);
    let reader = server.get("/v1/users/rea/feed").await.expect(200).json;
    assert_eq!(ids(&reader).len(), 2, "everyone else follows who is of everyone, and nobody else");
    let export = server.get("/v1/export").await.expect(200).text;
    assert!(export.contains("\"author\":\"of-auto\"") && !export.contains("\"type\":\"follow\""), "{export}");
    server.close().await;
}

#[tokio::test]
async fn s10_without_the_setting_no_author_sees_its_own_items() {
    let (server, _dir) = Server::start().await;
    for class in ["auto", "pull", "everyone"] {
        let author = format!("of-{class}");
        server.call(&format!("PUT /v1/authors/{author}"), Some(&json!({"class": class}).to_string())).await.expect(204);
        let own = server.publish(&author, "mine").await;
        server.settled().await;
        assert_eq!(feed(&server, &author).await, [0; 0], "{class}");
        server.forget_inbox(&author).await;
        assert_eq!(feed(&server, &author).await, [0; 0], "{class}: built anew");
        let why = server.get(&format!("/v1/explain?reader={author}&item={own}")).await.expect(200).json;
        assert_eq!(why["verdict"], "hidden", "{why}");
        assert!(why.to_string().contains("own_posts"), "{why}");
    }
    server.close().await;
}

#[tokio::test]
async fn s10_all_that_was_published_before_stands_there_however_deep() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path()).await;
    publish_many(&server, "ann", 2300).await;
    assert_eq!(feed(&server, "ann").await, [0; 0]);
    server.close().await;

    let server = Server::open_with_own_posts(dir.path()).await;
    let all = async || {
        let pages = server.pages("/v1/users/ann/feed", 100).await;
        pages.iter().map(|page| ids(page).len()).sum::<usize>()
    };
    let whole = async {
        while all().await < 2300 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(300), whole).await.expect("the worker brings all of them");
    server.settled().await;
    assert_eq!(unread(&server, "ann").await, (0, 0));
    let outbox = server.pages("/v1/users/ann/outbox", 100).await;
    let outbox: Vec<u64> = outbox.iter().flat_map(ids).collect();
    assert_eq!(server.pages("/v1/users/ann/feed", 100).await.iter().flat_map(ids).collect::<Vec<_>>(), outbox);
    server.close().await;

    let server = Server::open(dir.path()).await;
    let gone = async {
        while feed(&server, "ann").await != [0; 0] {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(300), gone).await.expect("and takes them away again");
    server.close().await;
}

#[tokio::test]
async fn s10_ones_own_items_are_never_unread_in_the_log_below_it_or_in_another() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open_with_own_posts(dir.path()).await;
    server.follow("ann", "bob").await;
    server.publish("ann", "mine").await;
    server.publish("bob", "theirs").await;
    server.settled().await;
    assert_eq!(unread(&server, "ann").await, (1, 1), "nothing was ever seen");
    let position = server.get("/v1/users/ann/seen").await.json["position"].clone();
    let body = json!({"position": position}).to_string();
    assert_eq!(server.call("PUT /v1/users/ann/seen", Some(&body)).await.expect(200).json["unread"], 0);
    server.publish("ann", "mine too").await;
    server.settled().await;
    assert_eq!(unread(&server, "ann").await, (0, 0));
    let seen_at = server.get("/v1/users/ann/feed?limit=3").await.json["items"][1]["published_at"].as_i64().unwrap();
    while feedgate_gateway::clock::now() <= seen_at {
        tokio::task::yield_now().await;
    }
    server.publish("bob", "theirs too").await;
    publish_many(&server, "ann", 1100).await;
    server.settled().await;
    assert_eq!(unread(&server, "ann").await, (1, 1));
    server.forget_inbox("ann").await;
    assert_eq!(unread(&server, "ann").await, (1, 1), "bob's is below the floor of a log of another epoch");
    server.close().await;
}

fn letter(author: &str, to: &[&str], body: &str) -> Value {
    json!({"author": author, "body": body, "audience": {"users": to}})
}

#[tokio::test]
async fn s10_what_a_user_has_sent_is_a_list_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open_with_own_posts(dir.path()).await;
    let post = server.publish("ann", "for all").await;
    let mut sent: Vec<u64> = vec![];
    for (nth, to) in [&["bob"][..], &["cid", "bob"], &["dee"], &["ann"], &["cid"]].iter().enumerate() {
        let item = server.post("/v1/items", letter("ann", to, &format!("letter {nth}"))).await.expect(201).json;
        sent.insert(0, item["id"].as_str().unwrap().parse().unwrap());
    }
    server.post("/v1/items", letter("bob", &["ann"], "an answer")).await.expect(201);
    server.settled().await;
    assert_eq!(server.whole("/v1/users/ann/sent", "").await, sent, "by two a page, newest first");
    let own = [sent[1], post.parse().unwrap()];
    let mut shown = feed(&server, "ann").await;
    shown.retain(|id| sent.contains(id) || own.contains(id));
    assert_eq!(shown, own, "of what was sent, the feed has only what is addressed to the sender too");

    server.call(&format!("PUT /v1/items/{}/reactions/like/bob", sent[4]), None).await.expect(200);
    server.call(&format!("DELETE /v1/items/{}", sent[3]), None).await.expect(204);
    server.call("PUT /v1/users/ann", Some(r#"{"name":"Ann"}"#)).await.expect(204);
    let page = server.get_as("ann", "/v1/users/ann/sent").await.expect(200).json;
    sent.remove(3);
    assert_eq!(ids(&page), sent, "the sender's own token opens it");
    let oldest = &page["items"][3];
    assert_eq!(
        (&oldest["body"], &oldest["direct"], &oldest["counts"]["like"]),
        (&json!("letter 0"), &json!(true), &json!(1))
    );
    assert_eq!(page["people"], json!({"ann": {"name": "Ann"}}));
    for user in ["bob", "eve"] {
        server.get_as(user, "/v1/users/ann/sent").await.expect(403);
    }
    assert_eq!(server.get("/v1/users/nobody/sent").await.expect(200).json, json!({"items": [], "next": null}));
    server.close().await;
}

#[tokio::test]
async fn s10_what_was_sent_is_exported_and_sent_again_where_it_is_imported() {
    let from = tempfile::tempdir().unwrap();
    let server = Server::open_with_own_posts(from.path()).await;
    let own: u64 = server.publish("ann", "mine").await.parse().unwrap();
    let item = server.post("/v1/items", letter("ann", &["bob"], "psst")).await.expect(201).json;
    let sent: u64 = item["id"].as_str().unwrap().parse().unwrap();
    let export = server.get("/v1/export").await.expect(200).text;
    server.close().await;
    for own_posts in [true, false] {
        let to = tempfile::tempdir().unwrap();
        let server = match own_posts {
            true => Server::open_with_own_posts(to.path()).await,
            false => Server::open(to.path()).await,
        };
        server.call("POST /v1/import", Some(&export)).await.expect(200);
        server.settled().await;
        assert_eq!(ids(&server.get("/v1/users/ann/sent").await.expect(200).json), [sent]);
        let shown: &[u64] = if own_posts { &[own] } else { &[] };
        assert_eq!(feed(&server, "ann").await, shown, "the settings of the other store decide");
        server.close().await;
    }
}
