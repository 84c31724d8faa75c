//! Profiles: what an author has published, as a viewer may see it.

use serde_json::{Value, json};

use crate::server::{Server, ids};

/// Ann has an item for all and one for `in` alone, who follows her as `out` does. The ids.
async fn start(server: &Server) -> [u64; 2] {
    for reader in ["in", "out", "blocked"] {
        server.follow(reader, "ann").await;
    }
    server.call("PUT /v1/users/ann/lists/close/in", None).await.expect(204);
    let mut published = vec![];
    for item in [json!({}), json!({"audience": {"lists": ["close"]}})] {
        let mut item = item;
        item["author"] = json!("ann");
        item["body"] = json!("hello");
        let accepted = server.post("/v1/items", item).await.expect(201);
        published.push(accepted.json["id"].as_str().unwrap().parse().unwrap());
    }
    server.call("PUT /v1/users/ann/blocked/blocked", None).await.expect(204);
    published.try_into().unwrap()
}

#[tokio::test]
async fn s13_a_profile_is_shown_to_each_viewer_as_that_viewer_may_see_it() {
    let (server, _dir) = Server::start().await;
    let [open, close] = start(&server).await;
    let outbox = "/v1/users/ann/outbox";
    assert_eq!(ids(&server.get(outbox).await.expect(200).json), [close, open], "a backend reads all");
    let none: &[u64] = &[];
    let wanted: [(&str, &[u64], &[u64]); 5] = [
        ("ann", &[close, open], &[close, open]),
        ("in", &[close, open], &[close, open]),
        ("out", &[open], &[open]),
        ("blocked", none, none),
        ("stranger", &[open], none),
    ];
    for (viewer, by_key, by_token) in wanted {
        let path = format!("{outbox}?viewer={viewer}");
        let key = server.get(&path).await.expect(200).json;
        assert_eq!((&*ids(&key), &key["next"]), (by_key, &Value::Null), "{viewer} by the API key");
        let token = server.get_as(viewer, &path).await.expect(200).json;
        assert_eq!((&*ids(&token), &token["next"]), (by_token, &Value::Null), "{viewer} by a token");
    }
    server.close().await;
}

#[tokio::test]
async fn s9_a_backend_that_names_a_viewer_reads_an_item_and_what_stands_around_it_as_that_viewer_may_see_it() {
    let (server, _dir) = Server::start().await;
    let [open, close] = start(&server).await;
    for (viewer, seen) in [
        ("ann", [true, true]),
        ("in", [true, true]),
        ("out", [true, false]),
        ("blocked", [false; 2]),
        ("new", [true, false]),
    ] {
        for (item, seen) in [open, close].into_iter().zip(seen) {
            let comment =
                server.post(&format!("/v1/items/{item}/comments"), json!({"author": "in", "body": "re"})).await;
            let comment = comment.expect(201).json["id"].as_str().unwrap().to_owned();
            let status = if seen { 200 } else { 404 };
            for around in ["", "/comments", &format!("/comments/{comment}"), "/reactions", "/reposts"] {
                server.get(&format!("/v1/items/{item}{around}")).await.expect(200);
                let path = format!("/v1/items/{item}{around}?viewer={viewer}");
                let answer = server.get(&path).await;
                assert_eq!(answer.status, status, "{path}: {}", answer.text);
            }
            let several = server.get(&format!("/v1/items?ids={item}&viewer={viewer}")).await.expect(200).json;
            assert_eq!(
                (ids(&several).len(), several["missing"].as_array().unwrap().len()),
                (seen.into(), (!seen).into())
            );
        }
    }
    server.close().await;
}

#[tokio::test]
async fn s13_a_profile_that_is_closed_to_a_viewer_looks_like_an_empty_one() {
    let (server, _dir) = Server::start().await;
    start(&server).await;
    for n in 0..600 {
        server.publish("ann", &format!("many {n}")).await;
    }
    let empty = server.get("/v1/users/nobody/outbox?viewer=blocked").await.expect(200).text;
    assert_eq!(empty, r#"{"items":[],"next":null}"#);
    let path = "/v1/users/ann/outbox?viewer=blocked";
    assert_eq!(server.get(path).await.expect(200).text, empty);
    assert_eq!(server.get_as("blocked", path).await.expect(200).text, empty);
    let path = "/v1/users/ann/outbox?viewer=stranger";
    assert_eq!(server.get_as("stranger", path).await.expect(200).text, empty);
    server.close().await;
}

#[tokio::test]
async fn s13_own_is_the_viewers_and_a_token_names_no_other_viewer() {
    let (server, _dir) = Server::start().await;
    let [open, _] = start(&server).await;
    server.call(&format!("PUT /v1/items/{open}/reactions/like/out"), None).await.expect(200);
    let path = "/v1/users/ann/outbox?viewer=out";
    for page in [server.get(path).await, server.get_as("out", path).await] {
        assert_eq!(page.expect(200).json["items"][0]["own"], json!(["like"]));
    }
    let other = server.get_as("in", path).await.expect(403);
    assert_eq!(other.json["detail"], "this token is of user in and opens nothing of user out");
    let whole = server.get_as("out", "/v1/users/ann/outbox").await.expect(403);
    let detail = "this token is of user out and opens nothing of user ann but what out sees: ask for ?viewer=out";
    assert_eq!(whole.json["detail"], detail);
    server.close().await;
}

/// The ids on a page, and which of them are pinned.
fn with_pins(page: &Value) -> (Vec<u64>, Vec<u64>) {
    let items = page["items"].as_array().unwrap();
    let of = |item: &Value| item["id"].as_str().unwrap().parse().unwrap();
    let pinned = items.iter().filter(|item| item["pinned"] == true).map(of).collect();
    (items.iter().map(of).collect(), pinned)
}

#[tokio::test]
async fn s13_pinned_items_stand_first_and_on_no_later_page() {
    let (server, _dir) = Server::start().await;
    let [open, close] = start(&server).await;
    let mut newer = vec![];
    for n in 0..5 {
        newer.insert(0, server.publish("ann", &format!("newer {n}")).await.parse::<u64>().unwrap());
    }
    let outbox = "/v1/users/ann/outbox";
    let plain = server.get(outbox).await.expect(200).text;
    assert!(!plain.contains("pinned"), "{plain}");
    for item in [newer[4], close] {
        server.call(&format!("PUT /v1/users/ann/pins/{item}"), None).await.expect(204);
        server.call(&format!("PUT /v1/users/ann/pins/{item}"), None).await.expect(204);
    }
    let whole = vec![close, newer[4], newer[0], newer[1], newer[2], newer[3], open];
    assert_eq!(with_pins(&server.get(outbox).await.expect(200).json), (whole, vec![close, newer[4]]));
    let out = server.get(&format!("{outbox}?viewer=out")).await.expect(200).json;
    let for_out = vec![newer[4], newer[0], newer[1], newer[2], newer[3], open];
    assert_eq!(with_pins(&out), (for_out, vec![newer[4]]), "a pin shows nobody what is for others");
    let empty = server.get("/v1/users/nobody/outbox?viewer=blocked").await.expect(200).text;
    assert_eq!(server.get(&format!("{outbox}?viewer=blocked")).await.expect(200).text, empty);

    let first = server.get(&format!("{outbox}?viewer=out&limit=2")).await.expect(200).json;
    assert_eq!(with_pins(&first), (vec![newer[4], newer[0], newer[1]], vec![newer[4]]), "besides the limit");
    // What is pinned and unpinned meanwhile changes no page of one that was begun.
    server.call(&format!("PUT /v1/users/ann/pins/{}", newer[2]), None).await.expect(204);
    server.call(&format!("DELETE /v1/users/ann/pins/{}", newer[4]), None).await.expect(204);
    server.call(&format!("DELETE /v1/users/ann/pins/{}", newer[4]), None).await.expect(204);
    let (mut rest, mut next) = (vec![], first["next"].clone());
    while let Some(cursor) = next.as_str() {
        let page = server.get(&format!("{outbox}?viewer=out&limit=2&cursor={cursor}")).await.expect(200).json;
        let (ids, pinned) = with_pins(&page);
        assert_eq!(pinned, [0_u64; 0], "pins are of the first page");
        rest.extend(ids);
        next = page["next"].clone();
    }
    assert_eq!(rest, [newer[2], newer[3], open]);
    let now = server.get(&format!("{outbox}?viewer=out&limit=1")).await.expect(200).json;
    assert_eq!(with_pins(&now), (vec![newer[2], newer[0]], vec![newer[2]]));
    let cursor = first["next"].as_str().unwrap();
    let foreign = server.get(&format!("/v1/users/out/feed?cursor={cursor}")).await.expect(400);
    assert!(foreign.text.contains("a cursor is the `next` of an earlier page"), "{}", foreign.text);

    server.call(&format!("DELETE /v1/items/{}", newer[2]), None).await.expect(204);
    let left = server.get(&format!("{outbox}?viewer=out&limit=1")).await.expect(200).json;
    assert_eq!(with_pins(&left), (vec![newer[0]], vec![]), "a deleted item is pinned no more");
    server.close().await;
}

#[tokio::test]
async fn s13_what_is_wrong_with_a_pin_is_said() {
    let (server, _dir) = Server::start().await;
    for id in 1..=7 {
        server.post("/v1/items", json!({"author": "ann", "body": id, "id": id.to_string()})).await.expect(201);
    }
    let letter = json!({"author": "ann", "body": 8, "id": "8", "foreign_id": "k", "audience": {"users": ["bob"]}});
    server.post("/v1/items", letter).await.expect(201);
    for id in 1..=5 {
        server.call(&format!("PUT /v1/users/ann/pins/{id}"), None).await.expect(204);
    }
    for (path, status, detail) in [
        ("ann/pins/9", 404, "there is no item 9"),
        ("ann/pins/foreign:none", 404, "there is no item foreign:none"),
        ("ann/pins/foreign:k", 400, "cannot pin item foreign:k: it is for named readers and stands on no profile"),
        ("bob/pins/1", 400, "user bob cannot pin item 1: it is of another author"),
        ("nobody/pins/1", 400, "user nobody cannot pin item 1: it is of another author"),
        ("ann/pins/6", 409, "5 other items are pinned, which is the most; unpin one of them first"),
        ("ann/pins/x", 400, "decimal number"),
    ] {
        let answer = server.call(&format!("PUT /v1/users/{path}"), None).await.expect(status);
        assert!(answer.json["detail"].as_str().unwrap().contains(detail), "{path}: {}", answer.text);
    }
    for path in ["bob/pins/1", "nobody/pins/1", "ann/pins/9"] {
        server.call(&format!("DELETE /v1/users/{path}"), None).await.expect(204);
    }
    server.call("DELETE /v1/users/ann/pins/1", None).await.expect(204);
    server.call("PUT /v1/users/ann/pins/6", None).await.expect(204);
    let page = server.get("/v1/users/ann/outbox").await.expect(200).json;
    assert_eq!(with_pins(&page).1, [6, 5, 4, 3, 2]);
    server.close().await;
}

#[tokio::test]
async fn s13_pins_go_out_and_come_in_again() {
    let (server, _dir) = Server::start().await;
    for (id, author) in [(1, "ann"), (2, "ann"), (3, "bob"), (4, "ann")] {
        server.post("/v1/items", json!({"author": author, "body": id, "id": id.to_string()})).await.expect(201);
    }
    for path in ["ann/pins/1", "ann/pins/4", "ann/pins/2", "bob/pins/3"] {
        server.call(&format!("PUT /v1/users/{path}"), None).await.expect(204);
    }
    server.call("DELETE /v1/items/4", None).await.expect(204);
    let exported = server.get("/v1/export").await.expect(200).text;
    let pins: Vec<&str> = exported.lines().filter(|line| line.contains(r#""type":"pins""#)).collect();
    let of_ann = r#"{"type":"pins","user":"ann","items":["2","1"]}"#;
    assert_eq!(pins, [of_ann, r#"{"type":"pins","user":"bob","items":["3"]}"#]);
    let own = server.get("/v1/users/ann/export").await.expect(200).text;
    assert_eq!(own.lines().filter(|line| line.contains(r#""type":"pins""#)).collect::<Vec<_>>(), [of_ann]);

    let (other, _dir) = Server::start().await;
    let report = other.call("POST /v1/import", Some(&exported)).await.expect(200).text;
    assert!(report.contains(r#""refused":0"#), "{report}");
    for user in ["ann", "bob"] {
        let path = format!("/v1/users/{user}/outbox");
        let [before, after] = [server.get(&path).await, other.get(&path).await].map(|page| with_pins(&page.json));
        assert_eq!(before, after);
    }
    for (line, at) in [
        (r#"{"type":"pins","user":"ann","items":["2","3"]}"#, "/items/1"),
        (r#"{"type":"pins","user":"ann","items":["9"]}"#, "/items/0"),
        (r#"{"type":"pins","user":"ann","items":[]}"#, "/items"),
        (r#"{"type":"pins","user":"ann","items":["1","2","3","4","5","6"]}"#, "/items"),
    ] {
        let report = other.call("POST /v1/import", Some(line)).await.expect(200).text;
        assert!(report.contains(&format!(r#""pointer":"{at}""#)), "{line}: {report}");
    }
    let again = other.call("POST /v1/import", Some(of_ann)).await.expect(200).text;
    assert!(again.contains(r#""new":0,"unchanged":1"#), "{again}");
    for server in [server, other] {
        server.close().await;
    }
}
