//! Mute, hide and block: listed at once, felt by the feeds soon after; and who follows each other.

use serde_json::json;

use crate::follows::users;
use crate::server::{Server, ids};

#[tokio::test]
async fn each_list_pages_through_what_is_up_newest_first() {
    let (server, _dir) = Server::start().await;
    for list in ["muted", "hidden", "blocked"] {
        for other in ["a", "b", "c", "d", "e"] {
            server.call(&format!("PUT /v1/users/bob/{list}/{other}"), None).await.expect(204);
        }
        for again in ["DELETE /v1/users/bob/{list}/c", "DELETE /v1/users/bob/{list}/c", "PUT /v1/users/bob/{list}/b"] {
            server.call(&again.replace("{list}", list), None).await.expect(204);
        }
        let pages = server.pages(&format!("/v1/users/bob/{list}"), 2).await;
        let seen: Vec<&str> = pages.iter().flat_map(users).collect();
        assert!(pages.iter().all(|page| page["users"][0]["since"].as_i64().unwrap() > 0));
        assert_eq!(seen, ["e", "d", "b", "a"], "{list}");
        assert_eq!(users(&server.get_as("bob", &format!("/v1/users/bob/{list}")).await.expect(200).json), seen);
        let nobody = server.get(&format!("/v1/users/nobody/{list}")).await.expect(200).json;
        assert_eq!(nobody, json!({"users": [], "next": null}));
    }
    server.close().await;
}

#[tokio::test]
async fn mutual_is_whom_one_follows_and_is_followed_by() {
    let (server, _dir) = Server::start().await;
    for other in ["a", "b", "c", "d"] {
        server.follow("bob", other).await;
    }
    for other in ["d", "b", "a", "x"] {
        server.follow(other, "bob").await;
    }
    let pages = server.pages("/v1/users/bob/mutual", 2).await;
    assert_eq!(pages.iter().flat_map(users).collect::<Vec<_>>(), ["d", "b", "a"]);
    assert_eq!(server.get("/v1/users/nobody/mutual").await.expect(200).json, json!({"users": [], "next": null}));
    server.close().await;
}

#[tokio::test]
async fn i5_a_shield_takes_the_items_away_and_its_end_brings_the_newest_back() {
    let (server, _dir) = Server::start().await;
    let old = server.publish("ann", "before").await.parse::<u64>().unwrap();
    server.follow("bob", "ann").await;
    let feed = async || ids(&server.get("/v1/users/bob/feed").await.expect(200).json);
    server.settled().await;
    assert_eq!(feed().await, [old]);
    let mut shown = vec![old];
    for path in ["/v1/users/bob/muted/ann", "/v1/users/ann/hidden/bob", "/v1/users/ann/blocked/bob"] {
        server.call(&format!("PUT {path}"), None).await.expect(204);
        shown.insert(0, server.publish("ann", path).await.parse().unwrap());
        server.settled().await;
        assert_eq!(feed().await, [0; 0], "{path}");
        assert_eq!(users(&server.get("/v1/users/bob/following").await.json), ["ann"], "the follow stays listed");
        server.call(&format!("DELETE {path}"), None).await.expect(204);
        server.settled().await;
        assert_eq!(feed().await, shown, "{path}");
    }
    server.close().await;
}

#[tokio::test]
async fn i5_of_two_shields_one_that_goes_leaves_the_other() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.publish("ann", "one").await;
    server.call("PUT /v1/users/bob/muted/ann", None).await.expect(204);
    server.call("PUT /v1/users/bob/blocked/ann", None).await.expect(204);
    server.call("DELETE /v1/users/bob/blocked/ann", None).await.expect(204);
    server.settled().await;
    assert_eq!(ids(&server.get("/v1/users/bob/feed").await.json), [0; 0]);
    server.call("DELETE /v1/users/bob/muted/ann", None).await.expect(204);
    server.settled().await;
    assert_eq!(ids(&server.get("/v1/users/bob/feed").await.json).len(), 1);
    server.close().await;
}
