//! Reposts (S8): what they may name, and what pages and reads of items show of their originals, to whom.

use serde_json::{Value, json};

use crate::server::{Answer, Server};

const FEED: &str = "/v1/users/bob/feed";

async fn repost(server: &Server, author: &str, of: &str) -> Answer {
    server.post("/v1/items", json!({"author": author, "body": "look", "ref": of})).await
}

/// bob follows eve, who has reposted an item of ann, whom bob does not follow. Answers the ids of both items.
async fn start() -> (Server, tempfile::TempDir, String, String) {
    let (server, dir) = Server::start().await;
    server.follow("bob", "eve").await;
    let original = server.publish("ann", "news").await;
    let id = id_of(&repost(&server, "eve", &original).await.expect(201));
    server.settled().await;
    (server, dir, original, id)
}

fn id_of(answer: &Answer) -> String {
    answer.json["id"].as_str().unwrap().to_owned()
}

/// Asserts that everything that shows the repost to bob shows its original so: `ref_item` with this body, or
/// `ref_gone`.
#[track_caller]
fn shows(item: &Value, original: &str, body: Option<&str>) {
    assert_eq!(item["ref"], original, "{item}");
    match body {
        Some(body) => {
            assert_eq!((&item["ref_item"]["id"], &item["ref_item"]["body"]), (&json!(original), &json!(body)));
            assert_eq!(item.get("ref_gone"), None, "{item}");
        }
        None => assert_eq!((item.get("ref_item"), &item["ref_gone"]), (None, &json!(true)), "{item}"),
    }
}

/// The repost as bob gets it by every route that shows it.
async fn by_all_routes(server: &Server, id: &str) -> Vec<Value> {
    let page = |answer: Answer| answer.expect(200).json["items"][0].clone();
    vec![
        page(server.get_as("bob", FEED).await),
        page(server.get(FEED).await),
        page(server.get("/v1/users/joe/feed?viewer=bob").await),
        page(server.get_as("bob", &format!("/v1/items?ids={id}")).await),
        page(server.get(&format!("/v1/items?ids={id}&viewer=bob")).await),
        server.get_as("bob", &format!("/v1/items/{id}")).await.expect(200).json,
        server.get(&format!("/v1/items/{id}?viewer=bob")).await.expect(200).json,
    ]
}

#[tokio::test]
async fn s8_every_page_and_read_shows_the_original_as_the_viewer_may_see_it_now() {
    let (server, _dir, original, id) = start().await;
    server.follow("joe", "eve").await;
    server.settled().await;
    for item in by_all_routes(&server, &id).await {
        shows(&item, &original, Some("news"));
    }
    let newer = Some(r#"{"body":"newer"}"#);
    server.call(&format!("PATCH /v1/items/{original}"), newer).await.expect(200);
    server.call(&format!("PUT /v1/items/{original}/reactions/like/joe"), None).await.expect(200);
    for item in by_all_routes(&server, &id).await {
        shows(&item, &original, Some("newer"));
        assert_eq!(
            (&item["ref_item"]["version"], &item["ref_item"]["counts"]),
            (&json!(2), &json!({"like": 1, "reposts": 1}))
        );
    }
    for shield in ["bob/muted/ann", "ann/hidden/bob", "bob/blocked/ann", "ann/blocked/bob"] {
        server.call(&format!("PUT /v1/users/{shield}"), None).await.expect(204);
        for item in by_all_routes(&server, &id).await {
            shows(&item, &original, None);
        }
        let unnamed = server.get(&format!("/v1/items/{id}")).await.expect(200).json;
        shows(&unnamed, &original, Some("newer"));
        server.call(&format!("DELETE /v1/users/{shield}"), None).await.expect(204);
    }
    server.call(&format!("DELETE /v1/items/{original}"), None).await.expect(204);
    for item in by_all_routes(&server, &id).await {
        shows(&item, &original, None);
    }
    let profile = server.get("/v1/users/eve/outbox").await.expect(200).json;
    shows(&profile["items"][0], &original, None);
    server.close().await;
}

#[tokio::test]
async fn s8_nothing_of_an_original_enters_a_log() {
    let (server, _dir, original, id) = start().await;
    let changes = server.get("/v1/users/bob/changes").await.expect(200);
    let item = &changes.json["changes"][0]["item"];
    assert_eq!((&item["id"], &item["ref"]), (&json!(id), &json!(original)));
    assert!(!changes.text.contains("ref_item") && !changes.text.contains("news"), "{}", changes.text);
    server.call(&format!("DELETE /v1/items/{original}"), None).await.expect(204);
    server.settled().await;
    assert_eq!(server.get("/v1/users/bob/changes").await.expect(200).text, changes.text);
    server.close().await;
}

#[tokio::test]
async fn s8_a_repost_of_a_repost_shows_the_repost_and_goes_no_deeper() {
    let (server, _dir, original, first) = start().await;
    let second = id_of(&repost(&server, "eve", &first).await.expect(201));
    server.settled().await;
    let item = server.get_as("bob", &format!("/v1/items/{second}")).await.expect(200).json;
    shows(&item, &first, Some("look"));
    let shown = &item["ref_item"];
    assert_eq!((&shown["ref"], shown.get("ref_item"), shown.get("ref_gone")), (&json!(original), None, None));
    server.close().await;
}

#[tokio::test]
async fn s8_what_does_not_live_is_refused_and_the_problem_points_to_the_field() {
    let (server, _dir, original, _) = start().await;
    server.call(&format!("DELETE /v1/items/{original}"), None).await.expect(204);
    for gone in [&*original, "1"] {
        let refused = repost(&server, "eve", gone).await.expect(422).json;
        assert_eq!((&refused["type"], &refused["pointer"]), (&json!("/problems/invalid-field"), &json!("/ref")));
        assert!(refused["detail"].as_str().unwrap().contains(&format!("there is no item {gone} to repost")));
    }
    for wrong in [json!(7), json!(""), json!("x"), json!("-1"), json!("18446744073709551616"), json!(null)] {
        let refused = server.post("/v1/items", json!({"author": "eve", "body": 1, "ref": wrong})).await;
        assert_eq!(refused.expect(422).json["pointer"], "/ref");
    }
    let ops = json!([{"author": "eve", "body": 1}, {"author": "eve", "body": 1, "ref": original}]);
    let results = server.post("/v1/items/batch", json!({"ops": ops})).await.expect(200).json["results"].clone();
    assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!(201), &json!(422)));
    assert_eq!(results[1]["pointer"], "/ops/1/ref");
    let body = json!({"author": "eve", "body": 1, "ref": original}).to_string();
    let answer = server.message("publish", &[("Nats-Msg-Id", "once")], &body).await;
    assert_eq!(answer.status, 422);
    server.close().await;
}

#[tokio::test]
async fn s8_a_retry_is_known_by_what_it_reposts() {
    let (server, _dir, original, _) = start().await;
    let other = server.publish("ann", "other").await;
    let ask = |of: &str| json!({"author": "eve", "body": "look", "foreign_id": "theirs", "ref": of});
    let first = id_of(&server.post("/v1/items", ask(&original)).await.expect(201));
    server.call(&format!("DELETE /v1/items/{original}"), None).await.expect(204);
    assert_eq!(id_of(&server.post("/v1/items", ask(&original)).await.expect(200)), first);
    server.post("/v1/items", ask(&other)).await.expect(409);
    server.close().await;
}

#[tokio::test]
async fn s8_people_of_a_page_are_those_of_its_originals_too() {
    let (server, _dir, ..) = start().await;
    let ann = Some(r#"{"name":"Ann"}"#);
    server.call("PUT /v1/users/ann", ann).await.expect(204);
    for path in [FEED, "/v1/users/eve/outbox"] {
        assert_eq!(server.get(path).await.expect(200).json["people"], json!({"ann": {"name": "Ann"}}), "{path}");
    }
    server.call("PUT /v1/users/bob/blocked/ann", None).await.expect(204);
    assert_eq!(server.get(FEED).await.expect(200).json.get("people"), None, "nothing is told of who is hidden");
    server.close().await;
}

#[tokio::test]
async fn s8_a_page_of_large_originals_is_shorter_and_goes_on_where_it_ends() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "eve").await;
    let large = server.publish("ann", &"x".repeat(60_000)).await;
    for _ in 0..40 {
        repost(&server, "eve", &large).await.expect(201);
    }
    server.settled().await;
    let pages = server.pages(FEED, 100).await;
    assert!(pages.len() > 2, "an original counts with each repost that shows it: {} pages", pages.len());
    let mut shown: Vec<u64> = pages.iter().flat_map(crate::server::ids).collect();
    assert_eq!(shown.len(), 40, "no item is left out");
    let ids: Vec<String> = shown.iter().map(u64::to_string).collect();
    let mut next = json!(ids.join(","));
    while let Some(ids) = next.as_str() {
        let answer = server.get(&format!("/v1/items?ids={ids}")).await.expect(200);
        assert!(answer.text.len() < 2 << 20, "{} bytes", answer.text.len());
        let read = crate::server::ids(&answer.json);
        assert_eq!(read, shown.drain(..read.len()).collect::<Vec<_>>());
        next = answer.json["next"].clone();
    }
    assert_eq!(shown, [0; 0]);
    server.close().await;
}

#[tokio::test]
async fn s8_exports_and_imports_carry_what_a_repost_names() {
    let (server, _dir, original, id) = start().await;
    let gone = server.publish("ann", "gone").await;
    let orphan = id_of(&repost(&server, "eve", &gone).await.expect(201));
    server.call(&format!("DELETE /v1/items/{gone}"), None).await.expect(204);
    let lines = server.get("/v1/export").await.expect(200).text;
    let (other, _other_dir) = Server::start().await;
    other.call("POST /v1/import", Some(&lines)).await.expect(200);
    for (repost, of, body) in [(id, &original, Some("news")), (orphan, &gone, None)] {
        let item = other.get(&format!("/v1/items/{repost}")).await.expect(200).json;
        shows(&item, of, body);
    }
    other.close().await;
    server.close().await;
}

#[tokio::test]
async fn s1_the_number_of_reposts_stands_wherever_the_original_has_counts() {
    let (server, _dir, original, id) = start().await;
    server.follow("bob", "ann").await;
    server.follow("joe", "eve").await;
    server.settled().await;
    let counts =
        async |of: &str| server.get_as("bob", &format!("/v1/items/{of}")).await.expect(200).json["counts"].clone();
    assert_eq!((counts(&original).await, counts(&id).await), (json!({"reposts": 1}), json!(null)));
    for item in by_all_routes(&server, &id).await {
        assert_eq!(item["ref_item"]["counts"], json!({"reposts": 1}), "{item}");
    }
    repost(&server, "joe", &original).await.expect(201);
    server.call(&format!("PUT /v1/items/{original}/reactions/like/joe"), None).await.expect(200);
    assert_eq!(counts(&original).await, json!({"like": 1, "reposts": 2}));
    let page = server.get_as("bob", FEED).await.expect(200).json;
    let found = page["items"].as_array().unwrap().iter().find(|item| item["id"] == *original).unwrap();
    assert_eq!(found["counts"], json!({"like": 1, "reposts": 2}));
    let now = server.call(&format!("DELETE /v1/items/{original}/reactions/like/joe"), None).await.expect(200).json;
    assert_eq!(now["counts"], json!({"reposts": 2}), "an answer to a reaction says so, too");
    server.call(&format!("DELETE /v1/items/{id}"), None).await.expect(204);
    server.call(&format!("DELETE /v1/items/{id}"), None).await.expect(204);
    assert_eq!(counts(&original).await, json!({"reposts": 1}));
    server.close().await;
}

/// The ids of a page of the list of reposts, and its `next`.
fn listed(answer: Answer) -> (Vec<String>, Value) {
    let list = answer.expect(200).json;
    let ids = list["reposts"].as_array().unwrap().iter().map(|line| line["id"].as_str().unwrap().to_owned());
    (ids.collect(), list["next"].clone())
}

#[tokio::test]
async fn s8_reposts_are_listed_newest_first_as_their_viewer_may_see_them() {
    let (server, _dir, original, of_eve) = start().await;
    let path = format!("/v1/items/{original}/reposts");
    let of_joe = id_of(&repost(&server, "joe", &original).await.expect(201));
    let body = json!({"author": "dan", "body": 1, "ref": original, "audience": {"users": ["cid"]}});
    let of_dan = id_of(&server.post("/v1/items", body).await.expect(201));
    server.call("PUT /v1/users/joe", Some(r#"{"name":"Joe"}"#)).await.expect(204);
    let all = server.get(&path).await;
    let first = &all.json["reposts"][1];
    assert_eq!((&first["author"], &all.json["people"]), (&json!("joe"), &json!({"joe": {"name": "Joe"}})));
    assert!(first["published_at"].is_i64());
    assert_eq!(listed(all), (vec![of_dan.clone(), of_joe.clone(), of_eve.clone()], json!(null)));
    for (viewer, sees) in [("bob", vec![&of_joe, &of_eve]), ("cid", vec![&of_dan, &of_joe, &of_eve])] {
        let (ids, _) = listed(server.get(&format!("{path}?viewer={viewer}")).await);
        assert_eq!(ids.iter().collect::<Vec<_>>(), sees, "{viewer}");
    }
    server.call("PUT /v1/users/joe/hidden/bob", None).await.expect(204);
    assert_eq!(listed(server.get(&format!("{path}?viewer=bob")).await).0, std::slice::from_ref(&of_eve));
    server.get_as("bob", &path).await.expect(404);
    server.follow("bob", "ann").await;
    assert_eq!(listed(server.get_as("bob", &path).await).0, std::slice::from_ref(&of_eve), "bob follows eve");
    let mut pages = vec![];
    let mut next = json!(null);
    loop {
        let cursor = next.as_str().map_or(String::new(), |next| format!("&cursor={next}"));
        let (ids, more) = listed(server.get(&format!("{path}?limit=1{cursor}")).await);
        pages.extend(ids);
        next = more;
        if next.is_null() {
            break;
        }
    }
    assert_eq!(pages, [of_dan, of_joe, of_eve]);
    for wrong in ["cursor=x", "limit=0", "limit=101", "kind=like"] {
        server.get(&format!("{path}?{wrong}")).await.expect(400);
    }
    server.get("/v1/items/1/reposts").await.expect(404);
    server.close().await;
}
