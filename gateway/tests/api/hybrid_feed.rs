//! A published example of a feed with equal timestamps, page by page (`tests/data/hybrid-feed.json`,
//! part `inbox_only`).

use serde_json::{Value, json};

use crate::server::{Server, ids};

/// When the items come in, seen from the follow.
#[derive(Debug, Clone, Copy)]
enum Arrangement {
    /// All come by backfill.
    PublishedBefore,
    /// All come by push.
    PublishedAfter,
    /// Every other item comes by backfill, the others by push.
    Mixed,
}

/// Newest first, with a time for each: those the source does not print lie a second apart from their
/// older neighbour, or from the newer one at the end.
fn items(inbox: &Value) -> Vec<(u64, i64)> {
    let mut items: Vec<(u64, Option<i64>)> = inbox
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item[0].as_u64().unwrap(), item[1].as_i64().map(|secs| secs * 1000)))
        .collect();
    for i in (0..items.len()).rev() {
        items[i].1 = items[i].1.or_else(|| items.get(i + 1)?.1.map(|older| older + 1000));
    }
    for i in 1..items.len() {
        items[i].1 = items[i].1.or_else(|| items[i - 1].1.map(|newer| newer - 1000));
    }
    items.into_iter().map(|(id, at)| (id, at.unwrap())).collect()
}

async fn the_pages_are_those_of_the_example(arrangement: Arrangement) {
    let data: Value = serde_json::from_str(include_str!("../../../tests/data/hybrid-feed.json")).unwrap();
    let part = &data["inbox_only"];
    let user = part["user"].as_str().unwrap();
    let items = items(&part["inbox_newest_first"]);
    assert!(items.is_sorted_by(|(a, at), (b, bt)| (at, a) > (bt, b)), "the chosen times keep the order");

    let (server, _dir) = Server::start().await;
    let authors = ["200", "211", "222"];
    for author in authors {
        if !matches!(arrangement, Arrangement::PublishedBefore) {
            server.follow(user, author).await;
        }
    }
    for (n, (id, published_at)) in items.iter().enumerate() {
        if n == items.len() / 2 && matches!(arrangement, Arrangement::Mixed) {
            server.settled().await;
            server.call(&format!("DELETE /v1/users/{user}/following/200"), None).await.expect(204);
            server.settled().await;
        }
        let item =
            json!({"author": authors[n % 3], "body": {"n": n}, "id": id.to_string(), "published_at": published_at});
        server.post("/v1/items", item).await.expect(201);
    }
    for author in authors {
        server.follow(user, author).await;
    }
    server.settled().await;

    let size = part["page_size"].as_u64().unwrap().try_into().unwrap();
    let pages = server.pages(&format!("/v1/users/{user}/feed"), size).await;
    let shown: Vec<Value> = pages.iter().map(|page| json!(ids(page))).collect();
    // The example ends with an empty page; here the last full one says that it is the last.
    let (end, expected) = part["expected_pages"].as_array().unwrap().split_last().unwrap();
    assert_eq!((end, &*shown), (&json!([]), expected), "{arrangement:?}");
    server.close().await;
}

#[tokio::test]
async fn the_example_published_before_the_follow() {
    the_pages_are_those_of_the_example(Arrangement::PublishedBefore).await;
}

#[tokio::test]
async fn the_example_published_after_the_follow() {
    the_pages_are_those_of_the_example(Arrangement::PublishedAfter).await;
}

#[tokio::test]
async fn the_example_with_an_author_unfollowed_and_followed_again_half_way() {
    the_pages_are_those_of_the_example(Arrangement::Mixed).await;
}
