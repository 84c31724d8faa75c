//! Comments over HTTP: who may write, change and see them, how their pages go on, and what is refused (S1, S3).

use serde_json::{Value, json};

use crate::server::{API_KEY, Answer, Server, key_of, request};

async fn as_reader(server: &Server, user: &str, what: &str, body: Option<&str>) -> Answer {
    server.send(request(what, Some(&server.token(user)), body)).await
}

/// ann's post, which bob and cid see, and the path of its comments.
async fn start() -> (Server, tempfile::TempDir, String) {
    let (server, dir) = Server::start().await;
    for reader in ["bob", "cid"] {
        server.follow(reader, "ann").await;
    }
    let id = server.publish("ann", "hello").await;
    server.settled().await;
    (server, dir, format!("/v1/items/{id}/comments"))
}

/// Writes a comment with the API key, and answers its id.
async fn say(server: &Server, path: &str, author: &str, body: &str) -> String {
    let made = server.post(path, json!({"author": author, "body": body})).await.expect(201);
    made.json["id"].as_str().unwrap().to_owned()
}

fn bodies(page: &Value) -> Vec<String> {
    let shown = |comment: &Value| comment["body"].as_str().unwrap_or("(deleted)").to_owned();
    page["comments"].as_array().unwrap().iter().map(shown).collect()
}

#[tokio::test]
async fn s1_a_comment_is_written_once_however_often_it_is_sent() {
    let (server, _dir, path) = start().await;
    let send = async |user: &str, key: &str, body: &str| {
        let mut request = request(&format!("POST {path}"), Some(&server.token(user)), Some(body));
        request.headers_mut().insert("idempotency-key", key.parse().unwrap());
        server.send(request).await
    };
    let made = send("bob", "k1", r#"{"body":{"text" : "hi"}}"#).await.expect(201);
    let id = made.json["id"].as_str().unwrap();
    assert_eq!(made.header("location"), format!("{path}/{id}"));
    assert_eq!(send("bob", "k1", r#"{"body":{"text" : "hi"}}"#).await.expect(200).json, made.json);
    send("bob", "k1", r#"{"body":"other"}"#).await.expect(409);
    send("cid", "k1", r#"{"body":"a key of cid's own"}"#).await.expect(201);
    let own = json!({"author": "bob", "body": "with an id", "id": "777"});
    assert_eq!(server.post(&path, own.clone()).await.expect(201).json["id"], "777");
    server.post(&path, own).await.expect(200);
    let taken = server.post(&path, json!({"author": "cid", "body": "with an id", "id": "777"})).await.expect(409);
    assert!(taken.text.contains("777"), "{}", taken.text);
    let page = server.get(&format!("{path}?order=oldest")).await.expect(200);
    assert_eq!(page.json["comments"].as_array().unwrap().len(), 3);
    assert!(page.text.contains(r#""body":{"text" : "hi"}"#), "every byte as it came: {}", page.text);
    server.close().await;
}

#[tokio::test]
async fn s3_many_comments_come_in_one_call_in_their_order_and_a_bad_one_stops_no_other() {
    let (server, _dir, path) = start().await;
    let item = path.split('/').nth(3).unwrap().to_owned();
    let named = json!({"author": "ann", "body": 1, "foreign_id": "post/1"});
    let other = server.post("/v1/items", named).await.expect(201).json["id"].clone();
    let send = async |ops: Value| {
        let answer = server.post("/v1/comments/batch", json!({"ops": ops})).await.expect(200).json;
        answer["results"].as_array().unwrap().clone()
    };
    let add = |id: &str, body: &str| json!({"op": "add", "item": item, "author": "bob", "body": body, "id": id});
    let answers = json!({"op": "add", "item": item, "author": "cid", "body": "two", "reply_to": "1"});
    let keyed = json!({"op": "add", "item": "foreign:post/1", "author": "cid", "body": "x", "idempotency_key": "k"});
    let ops = json!([
        add("1", "one"),
        answers,
        keyed,
        add("3", "three"),
        {"op": "edit", "item": item, "id": "3", "body": "better"},
        {"op": "remove", "item": item, "id": "1"},
        add("3", "taken"),
        {"op": "add", "item": "12345", "author": "bob", "body": "nowhere"},
        {"op": "add", "item": "foreign:nothing", "author": "bob", "body": "nowhere"},
        {"op": "add", "item": item, "author": "bob", "body": "lost", "reply_to": "99"},
        {"op": "edit", "item": item, "id": "3", "body": "x", "author": "bob"},
        {"op": "say", "item": item},
        {"op": "remove", "item": item, "id": "98"},
    ]);
    let results = send(ops).await;
    let statuses: Vec<&Value> = results.iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [201, 201, 201, 201, 200, 200, 409, 404, 404, 422, 422, 422, 404]);
    assert_eq!((&results[0]["id"], &results[0]["item"], &results[2]["item"]), (&json!("1"), &json!(item), &other));
    assert!(results[0]["created_at"].is_i64() && results[4].get("created_at").is_none(), "{results:?}");
    let pointers = [7, 9, 10, 11].map(|nth: usize| results[nth]["pointer"].as_str().unwrap());
    assert_eq!(pointers, ["/ops/7", "/ops/9/reply_to", "/ops/10/author", "/ops/11/op"]);
    assert!(results[11]["detail"].as_str().unwrap().contains(r#""add", "edit" or "remove""#), "{}", results[11]);
    let page = server.get(&format!("{path}?order=oldest")).await.expect(200).json;
    assert_eq!(bodies(&page), ["(deleted)", "two", "better"], "a placeholder before the reply");
    let again = send(json!([keyed, add("3", "three")])).await;
    assert_eq!((&again[0]["status"], &again[0]["id"]), (&json!(200), &results[2]["id"]), "once by its key");
    assert_eq!(again[1]["status"], 200, "once by its id");
    server.post("/v1/comments/batch", json!({"ops": []})).await.expect(422);
    server.send(request("POST /v1/comments/batch", Some(&server.token("bob")), Some("{}"))).await.expect(403);
    let mut headed = request("POST /v1/comments/batch", Some(&key_of("publish")), Some("{}"));
    headed.headers_mut().insert("idempotency-key", "k".parse().unwrap());
    let refused = server.send(headed).await.expect(400);
    assert!(refused.text.contains("give each operation its own"), "{}", refused.text);
    server.close().await;
}

#[tokio::test]
async fn s3_pages_go_on_in_both_orders_and_towards_what_is_new() {
    let (server, _dir, path) = start().await;
    for n in 1..=5 {
        say(&server, &path, "bob", &n.to_string()).await;
    }
    let get = async |query: &str| server.get_as("cid", &format!("{path}?{query}")).await.expect(200).json;
    let first = get("limit=2").await;
    assert_eq!(bodies(&first), ["5", "4"]);
    let cursor = |page: &Value, which: &str| page[which].as_str().unwrap().to_owned();
    say(&server, &path, "bob", "6").await;
    let second = get(&format!("limit=2&cursor={}", cursor(&first, "next"))).await;
    assert_eq!(bodies(&second), ["3", "2"]);
    let third = get(&format!("limit=2&cursor={}", cursor(&second, "next"))).await;
    assert_eq!((bodies(&third), &third["next"]), (vec!["1".to_owned()], &Value::Null));
    let newer = get(&format!("order=oldest&cursor={}", cursor(&first, "newest"))).await;
    assert_eq!((bodies(&newer), &newer["next"]), (vec!["6".to_owned()], &Value::Null));
    let nothing = get(&format!("order=oldest&cursor={}", cursor(&newer, "newest"))).await;
    assert_eq!(bodies(&nothing), [] as [&str; 0]);
    say(&server, &path, "bob", "7").await;
    let tail = get(&format!("order=oldest&cursor={}", cursor(&nothing, "newest"))).await;
    assert_eq!(bodies(&tail), ["7"], "an empty page says where to go on");
    let back = get(&format!("limit=2&cursor={}", cursor(&newer, "oldest"))).await;
    assert_eq!(bodies(&back), ["5", "4"]);
    let all = server.pages(&path, 3).await;
    assert_eq!(all.iter().flat_map(bodies).collect::<Vec<_>>().concat(), "7654321");
    server.close().await;
}

#[tokio::test]
async fn s3_comments_count_where_items_are_shown_and_enter_no_log() {
    let (server, _dir, path) = start().await;
    let item = path.trim_end_matches("/comments").to_owned();
    let before = server.get("/v1/users/bob/changes").await.expect(200).text;
    let id = say(&server, &path, "bob", "one").await;
    say(&server, &path, "cid", "two").await;
    server.call(&format!("PUT {item}/reactions/like/bob"), None).await.expect(200);
    server.settled().await;
    let counts = json!({"like": 1, "comments": 2});
    let page = server.get_as("bob", "/v1/users/bob/feed").await.expect(200).json;
    assert_eq!(page["items"][0]["counts"], counts);
    assert_eq!(server.get_as("cid", &item).await.expect(200).json["counts"], counts);
    let ids = format!("/v1/items?ids={}", item.rsplit('/').next().unwrap());
    assert_eq!(server.get(&ids).await.expect(200).json["items"][0]["counts"], counts);
    assert_eq!(server.get("/v1/users/ann/outbox").await.expect(200).json["items"][0]["counts"], counts);
    let liked = server.call(&format!("PUT {item}/reactions/like/bob"), None).await.expect(200).json;
    assert_eq!(liked["counts"], counts);
    for _again in 0..2 {
        server.call(&format!("DELETE {path}/{id}"), None).await.expect(204);
        assert_eq!(server.get(&item).await.expect(200).json["counts"], json!({"like": 1, "comments": 1}));
    }
    server.settled().await;
    assert_eq!(server.get("/v1/users/bob/changes").await.expect(200).text, before);
    server.get(&format!("/v1/items/{id}")).await.expect(404);
    server.close().await;
}

#[tokio::test]
async fn s3_a_deleted_comment_with_replies_leaves_a_placeholder_that_names_nobody() {
    let (server, _dir, path) = start().await;
    let first = say(&server, &path, "bob", "secret").await;
    let reply = json!({"author": "cid", "body": "re", "reply_to": first});
    let reply = server.post(&path, reply).await.expect(201).json["id"].as_str().unwrap().to_owned();
    let alone = say(&server, &path, "bob", "alone").await;
    server.call("PUT /v1/users/bob", Some(r#"{"name":"Bob"}"#)).await.expect(204);
    assert_eq!(server.get(&path).await.expect(200).json["people"], json!({"bob": {"name": "Bob"}}));
    for id in [&first, &alone] {
        server.call(&format!("DELETE {path}/{id}"), None).await.expect(204);
    }
    let page = server.get(&format!("{path}?order=oldest")).await.expect(200);
    assert!(!page.text.contains("bob") && !page.text.contains("secret"), "{}", page.text);
    let comments = page.json["comments"].as_array().unwrap();
    let created = &comments[0]["created_at"];
    assert_eq!(comments[0], json!({"id": first, "created_at": created, "deleted": true}));
    assert_eq!((&comments[1]["id"], &comments[1]["reply_to"]), (&json!(reply), &json!(first)));
    assert_eq!(comments.len(), 2);
    assert_eq!(server.get(&format!("{path}/{first}")).await.expect(200).json["deleted"], true);
    server.get(&format!("{path}/{alone}")).await.expect(404);
    let item = path.trim_end_matches("/comments");
    server.call(&format!("DELETE {item}"), None).await.expect(204);
    server.get(&path).await.expect(404);
    server.get(&format!("{path}/{reply}")).await.expect(404);
    server.post(&path, json!({"author": "bob", "body": 1})).await.expect(404);
    server.close().await;
}

#[tokio::test]
async fn s3_a_reader_sees_and_answers_no_comment_of_a_user_behind_a_block() {
    let (server, _dir, path) = start().await;
    let of_bob = say(&server, &path, "bob", "of bob").await;
    say(&server, &path, "cid", "of cid").await;
    let get = async |user: &str| bodies(&server.get_as(user, &path).await.expect(200).json);
    assert_eq!(get("cid").await, ["of cid", "of bob"]);
    server.call("PUT /v1/users/bob/blocked/cid", None).await.expect(204);
    assert_eq!((get("cid").await, get("bob").await), (vec!["of cid".to_owned()], vec!["of bob".to_owned()]));
    server.get_as("cid", &format!("{path}/{of_bob}")).await.expect(404);
    let answer = format!(r#"{{"body":"re","reply_to":"{of_bob}"}}"#);
    let refused = as_reader(&server, "cid", &format!("POST {path}"), Some(&answer)).await.expect(422).json;
    assert_eq!(refused["pointer"], "/reply_to");
    let unseen = as_reader(&server, "cid", &format!("DELETE {path}/{of_bob}"), None).await.expect(404);
    assert!(!unseen.text.contains("of another user"), "{}", unseen.text);
    let viewed = server.get(&format!("{path}?viewer=cid")).await.expect(200).json;
    assert_eq!(bodies(&viewed), ["of cid"]);
    assert_eq!(bodies(&server.get(&path).await.expect(200).json).len(), 2, "a backend sees all");
    server.close().await;
}

#[tokio::test]
async fn s3_a_reader_comments_as_itself_on_what_it_sees_and_changes_its_own() {
    let (server, _dir, path) = start().await;
    let post = format!("POST {path}");
    let made = as_reader(&server, "bob", &post, Some(r#"{"body":"mine"}"#)).await.expect(201).json;
    let one = format!("{path}/{}", made["id"].as_str().unwrap());
    as_reader(&server, "bob", &post, Some(r#"{"author":"bob","body":"named"}"#)).await.expect(201);
    as_reader(&server, "bob", &post, Some(r#"{"author":"cid","body":"x"}"#)).await.expect(403);
    let id = as_reader(&server, "bob", &post, Some(r#"{"body":"x","id":"5"}"#)).await.expect(422).json;
    assert_eq!(id["pointer"], "/id");
    let unseen = as_reader(&server, "dan", &post, Some(r#"{"body":"x"}"#)).await.expect(404);
    assert!(unseen.text.contains("there is no item"), "{}", unseen.text);
    server.get_as("dan", &path).await.expect(404);
    server.get_as("bob", &format!("{path}?viewer=cid")).await.expect(403);

    as_reader(&server, "cid", &format!("PATCH {one}"), Some(r#"{"body":"theirs"}"#)).await.expect(403);
    as_reader(&server, "dan", &format!("PATCH {one}"), Some(r#"{"body":"theirs"}"#)).await.expect(404);
    let edited = as_reader(&server, "bob", &format!("PATCH {one}"), Some(r#"{"body":"edited"}"#)).await.expect(200);
    assert_eq!((&edited.json["body"], edited.header("etag")), (&json!("edited"), "\"2\""));
    let mut stale = request(&format!("PATCH {one}"), Some(&server.token("bob")), Some(r#"{"body":"stale"}"#));
    stale.headers_mut().insert("if-match", "\"1\"".parse().unwrap());
    server.send(stale).await.expect(412);
    as_reader(&server, "cid", &format!("DELETE {one}"), None).await.expect(403);
    let by_item = as_reader(&server, "bob", &post, Some(r#"{"body":"rude"}"#)).await.expect(201).json;
    let rude = format!("{path}/{}", by_item["id"].as_str().unwrap());
    as_reader(&server, "ann", &format!("DELETE {rude}"), None).await.expect(204);
    server.call("DELETE /v1/users/bob/following/ann", None).await.expect(204);
    as_reader(&server, "bob", &post, Some(r#"{"body":"x"}"#)).await.expect(404);
    as_reader(&server, "bob", &format!("DELETE {one}"), None).await.expect(204);

    let [reads, publishes] = ["read", "publish"].map(key_of);
    let body = Some(r#"{"author":"bob","body":"by key"}"#);
    server.send(request(&post, Some(&reads), body)).await.expect(403);
    server.send(request(&post, Some(&publishes), body)).await.expect(201);
    server.send(request(&format!("GET {path}"), Some(&publishes), None)).await.expect(403);
    server.close().await;
}

#[tokio::test]
async fn s3_who_does_not_see_an_item_learns_nothing_of_it_or_its_comments() {
    let (server, _dir, path) = start().await;
    server.follow("dan", "eve").await;
    let id = say(&server, &path, "bob", "one").await;
    for user in ["dan", "never"] {
        for (method, body) in [("PATCH", Some(r#"{"body":"x"}"#)), ("DELETE", None)] {
            let ask = async |comments: &str, comment: &str| {
                let what = format!("{method} {comments}/{comment}");
                let item = comments.split('/').nth(3).unwrap();
                as_reader(&server, user, &what, body).await.expect(404).text.replace(item, "N")
            };
            let none = ask("/v1/items/5/comments", "7").await;
            assert!(none.contains("there is no item N"), "{none}");
            for (comments, comment) in [(&*path, &*id), (&path, "7"), (&format!("/v1/items/{id}/comments"), &id)] {
                assert_eq!(ask(comments, comment).await, none, "{user}: {method} {comments}/{comment}");
            }
        }
    }
    server.close().await;
}

#[tokio::test]
async fn s3_a_comment_is_deleted_only_in_the_version_that_if_match_names() {
    let (server, _dir, path) = start().await;
    let one = format!("{path}/{}", say(&server, &path, "bob", "one").await);
    server.call(&format!("PATCH {one}"), Some(r#"{"body":"two"}"#)).await.expect(200);
    let delete = |version: &str, bearer: &str| {
        let mut delete = request(&format!("DELETE {one}"), Some(bearer), None);
        delete.headers_mut().insert("if-match", version.parse().unwrap());
        server.send(delete)
    };
    let bob = server.token("bob");
    for bearer in [API_KEY, &bob] {
        let stale = delete("\"1\"", bearer).await.expect(412);
        assert!(stale.json["detail"].as_str().unwrap().contains("has version 2"), "{}", stale.text);
    }
    delete("\"1\"", &server.token("cid")).await.expect(403);
    assert_eq!(server.get(&one).await.expect(200).json["body"], "two");
    let last = one.rsplit_once('/').unwrap().1;
    let item = path.split('/').nth(3).unwrap();
    let by_message = server.message(&format!("comment_delete.{item}.{last}"), &[("If-Match", "\"1\"")], "").await;
    assert_eq!(by_message.status, 412, "a message names the version, too");
    delete("\"2\"", &bob).await.expect(204);
    delete("\"1\"", &bob).await.expect(204);
    server.get(&one).await.expect(404);
    server.close().await;
}

#[tokio::test]
async fn s3_what_is_no_comment_is_refused_and_says_why() {
    let (server, _dir, path) = start().await;
    let id = say(&server, &path, "bob", "one").await;
    let other = server.publish("ann", "other").await;
    let elsewhere = say(&server, &format!("/v1/items/{other}/comments"), "bob", "elsewhere").await;
    let long = "x".repeat(8 * 1024 - 2);
    server.post(&path, json!({"author": "bob", "body": long})).await.expect(201);
    let by_bob = |body: Value| (path.clone(), json!({"author": "bob", "body": body}));
    let to = |sibling: &str| (path.clone(), json!({"author": "bob", "body": 1, "reply_to": sibling}));
    let cases = [
        (by_bob(json!(format!("{long}x"))), 422, "/body", "at most 8192 bytes"),
        (to(&elsewhere), 422, "/reply_to", "a comment of the same item"),
        (to("5"), 422, "/reply_to", "there is no comment 5"),
        ((path.clone(), json!({"body": 1})), 422, "/author", "is missing"),
        ((path.clone(), json!({"author": "bob", "body": 1, "parent": "1"})), 422, "/parent", "unknown field"),
        (
            (format!("/v1/items/{id}/comments"), json!({"author": "bob", "body": 1})),
            422,
            "",
            "comments are written to items",
        ),
        (("/v1/items/5/comments".to_owned(), json!({"author": "bob", "body": 1})), 404, "", "there is no item 5"),
    ];
    for ((path, body), status, pointer, detail) in cases {
        let refused = server.post(&path, body).await.expect(status).json;
        assert_eq!(refused["pointer"].as_str().unwrap_or_default(), pointer, "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains(detail), "{refused}");
    }
    assert_eq!(server.get(&path).await.expect(200).json["comments"].as_array().unwrap().len(), 2);
    server.close().await;
}
