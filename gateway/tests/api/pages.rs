//! Pages of feeds and profiles.

use serde_json::json;

use crate::server::{Server, ids, request};

/// Publishes with a rank, under an id equal to it.
async fn ranked(server: &Server, author: &str, rank: u64) {
    let item = json!({"author": author, "body": rank, "id": rank.to_string(), "rank": rank});
    server.post("/v1/items", item).await.expect(201);
}

#[tokio::test]
async fn i7_pages_descend_without_repetition_or_gap_while_items_come_in() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.settled().await;
    let before: Vec<u64> = (1..=40).map(|n| n * 100).collect();
    for rank in &before {
        ranked(&server, "ann", *rank).await;
    }
    server.settled().await;

    for list in ["feed", "outbox"] {
        let user = if list == "feed" { "bob" } else { "ann" };
        // A different stretch of ranks for each list, above and between those that stand.
        let base = if list == "feed" { 1 } else { 51 };
        let insert = async {
            for n in 0..40 {
                ranked(&server, "ann", base + n * 100 + 2 * n % 40).await;
                ranked(&server, "ann", 10_000 * base + n).await;
            }
        };
        let path = format!("/v1/users/{user}/{list}");
        let ((), pages) = tokio::join!(insert, server.pages(&path, 3));
        let seen: Vec<u64> = pages.iter().flat_map(ids).collect();
        assert!(seen.is_sorted_by(|a, b| a > b), "{list}: strictly descending: {seen:?}");
        assert!(
            before.iter().all(|rank| seen.contains(rank)),
            "{list}: nothing that stood before is missing: {seen:?}"
        );
        server.settled().await;
    }
    server.close().await;
}

#[tokio::test]
async fn i8_a_page_is_short_only_at_the_end_whatever_was_deleted() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.settled().await;
    for rank in 1..=12 {
        ranked(&server, "ann", rank).await;
    }
    server.settled().await;
    for deleted in [12, 7, 8, 9, 1] {
        server.call(&format!("DELETE /v1/items/{deleted}"), None).await.expect(204);
    }
    // Whether the worker has come by or not: the items are gone already.
    for settle in [false, true] {
        if settle {
            server.settled().await;
        }
        for path in ["/v1/users/bob/feed", "/v1/users/ann/outbox"] {
            for limit in 1..=8 {
                let pages = server.pages(path, limit).await;
                let full = &pages[..pages.len() - 1];
                assert!(full.iter().all(|page| ids(page).len() == limit), "{path}: only the last may be short");
                let seen: Vec<u64> = pages.iter().flat_map(ids).collect();
                assert_eq!(seen, [11, 10, 6, 5, 4, 3, 2], "{path}, limit {limit}");
            }
        }
    }
    server.close().await;
}

#[tokio::test]
async fn a_cursor_at_an_item_that_is_gone_leads_to_those_below_it() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    for rank in 1..=6 {
        ranked(&server, "ann", rank).await;
    }
    server.settled().await;
    let mut second_pages = vec![];
    for path in ["/v1/users/bob/feed", "/v1/users/ann/outbox"] {
        let first = server.get(&format!("{path}?limit=2")).await.expect(200).json;
        assert_eq!(ids(&first), [6, 5], "{path}");
        second_pages.push(format!("{path}?limit=2&cursor={}", first["next"].as_str().unwrap()));
    }
    for (deleted, left) in [(5, &[4, 3][..]), (4, &[3, 2]), (2, &[3, 1]), (3, &[1]), (1, &[])] {
        server.call(&format!("DELETE /v1/items/{deleted}"), None).await.expect(204);
        server.settled().await;
        for path in &second_pages {
            let page = server.get(path).await.expect(200).json;
            assert_eq!(ids(&page), left, "{path} without {deleted}");
            assert_eq!(page["next"].is_null(), deleted != 5 && deleted != 4, "{path} without {deleted}");
        }
    }
    server.close().await;
}

#[tokio::test]
async fn equal_ranks_fall_to_the_greater_id_and_ranks_may_be_negative() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    const MOST: i64 = (1 << 53) - 1;
    for (id, rank) in [("5", -1), ("9", -1), ("7", -MOST), ("8", MOST), ("18446744073709551615", -1)] {
        server.post("/v1/items", json!({"author": "ann", "body": 0, "id": id, "rank": rank})).await.expect(201);
    }
    server.settled().await;
    for limit in 1..=5 {
        let seen: Vec<u64> = server.pages("/v1/users/bob/feed", limit).await.iter().flat_map(ids).collect();
        assert_eq!(seen, [8, u64::MAX, 9, 5, 7], "limit {limit}");
    }
    server.close().await;
}

#[tokio::test]
async fn i8_a_page_that_large_bodies_fill_is_short_and_goes_on_and_only_a_null_next_is_the_end() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.settled().await;
    let body = "x".repeat(60_000);
    for id in 1..=40 {
        let item = json!({"author": "ann", "body": body, "id": id.to_string(), "rank": id});
        server.post("/v1/items", item).await.expect(201);
    }
    server.settled().await;
    for path in ["/v1/users/bob/feed", "/v1/users/ann/outbox"] {
        let pages = server.pages(path, 100).await;
        let counts: Vec<usize> = pages.iter().map(|page| ids(page).len()).collect();
        assert_eq!(counts, [18, 18, 4], "{path}: a page ends at the item that brings its bodies to 1 MiB");
        let seen: Vec<u64> = pages.iter().flat_map(ids).collect();
        assert!(seen.iter().copied().eq((1..=40).rev()), "{path}: {seen:?}");
    }
    let (mut seen, mut wanted) = (vec![], Some((1..=41).map(|id| id.to_string()).collect::<Vec<_>>().join(",")));
    let mut missing = vec![];
    while let Some(ids_left) = wanted {
        let answer = server.get(&format!("/v1/items?ids={ids_left}")).await.expect(200).json;
        seen.extend(ids(&answer));
        missing.extend(answer["missing"].as_array().unwrap().clone());
        wanted = answer["next"].as_str().map(str::to_owned);
    }
    assert!(seen.iter().copied().eq(1..=40), "{seen:?}");
    assert_eq!(missing, [json!("41")]);
    server.close().await;
}

#[tokio::test]
async fn i18_a_reader_with_too_many_answers_untaken_gets_429_and_others_do_not() {
    let (server, _dir) = Server::start().await;
    server.publish("ann", "hers").await;
    let token = server.token("ann");
    let ask = || request("GET /v1/users/ann/outbox", Some(&token), None);
    let mut untaken = vec![];
    for _ in 0..16 {
        let answer = server.begin(ask()).await;
        assert_eq!(answer.status(), 200);
        untaken.push(answer);
    }
    let refused = server.send(ask()).await.expect(429);
    assert_eq!((refused.header("retry-after"), &refused.json["type"]), ("1", &json!("/problems/too-many-requests")));
    server.get_as("bob", "/v1/users/bob/feed").await.expect(200);
    server.get("/v1/users/ann/outbox").await.expect(200);
    untaken.pop();
    server.send(ask()).await.expect(200);
    server.close().await;
}
