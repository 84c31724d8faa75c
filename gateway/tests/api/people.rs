//! What backends say of users (S7): it stands beside the items of each page, as it is now, and enters no log.

use feedgate_common::FeedId;
use feedgate_common::named::NamedFeed;
use serde_json::{Value, json};

use crate::server::{Answer, Server, key_of, request};

const ANN: &str = "/v1/users/ann";
const FEED: &str = "/v1/users/bob/feed";

async fn put(server: &Server, user: &str, person: Value) {
    server.call(&format!("PUT /v1/users/{user}"), Some(&person.to_string())).await.expect(204);
}

async fn page(server: &Server, path: &str) -> Value {
    server.get(path).await.expect(200).json
}

/// bob, who follows ann and eve; ann has two items, and eve one.
async fn start() -> (Server, tempfile::TempDir) {
    let (server, dir) = Server::start().await;
    for author in ["ann", "eve"] {
        server.follow("bob", author).await;
    }
    for author in ["ann", "eve", "ann"] {
        server.publish(author, "x").await;
    }
    server.settled().await;
    (server, dir)
}

#[tokio::test]
async fn s7_pages_carry_each_author_once_and_a_change_shows_on_the_next_page() {
    let (server, dir) = start().await;
    let without = server.get(FEED).await.expect(200).text;
    assert!(!without.contains("people"), "nothing is said of anybody: {without}");
    put(&server, "ann", json!({"name": "Ann", "avatar": "/ann.png", "attrs": {"secret": 1}})).await;
    put(&server, "eve", json!({"attrs": {"n": 1}})).await;
    put(&server, "carol", json!({"name": "Carol"})).await;
    let ann = json!({"ann": {"name": "Ann", "avatar": "/ann.png"}});
    let with = server.get(FEED).await.expect(200);
    assert_eq!(with.json["people"], ann, "no attributes, and nobody who has no item there");
    assert_eq!(with.text.matches("/ann.png").count(), 1, "{}", with.text);
    let mut rest = with.json.clone();
    rest.as_object_mut().unwrap().remove("people");
    assert_eq!(
        rest.to_string(),
        serde_json::from_str::<Value>(&without).unwrap().to_string(),
        "nothing else has changed"
    );

    put(&server, "ann", json!({"name": "王小明 \"<b>\" 👩‍👩‍👧"})).await;
    put(&server, "eve", json!({"avatar": "https://cdn.example/eve.png"})).await;
    let changed = json!({"ann": {"name": "王小明 \"<b>\" 👩‍👩‍👧"}, "eve": {"avatar": "https://cdn.example/eve.png"}});
    assert_eq!(page(&server, FEED).await["people"], changed, "the whole of what was put before is gone");
    assert_eq!(page(&server, &format!("{FEED}?limit=1")).await["people"], json!({"ann": changed["ann"]}));

    server.close().await;
    let server = Server::open(dir.path()).await;
    assert_eq!(page(&server, FEED).await["people"], changed);
    server.call(&format!("DELETE {ANN}"), None).await.expect(204);
    assert_eq!(page(&server, FEED).await["people"], json!({"eve": changed["eve"]}));
    server.call("DELETE /v1/users/eve", None).await.expect(204);
    assert_eq!(server.get(FEED).await.expect(200).text, without, "as if nothing had ever been said");
    server.close().await;
}

#[tokio::test]
async fn s7_what_is_said_of_a_user_enters_no_log_and_wakes_nobody() {
    let (server, _dir) = start().await;
    let before = server.everything().await;
    put(&server, "ann", json!({"name": "Ann"})).await;
    server.settled().await;
    server.call(&format!("DELETE {ANN}"), None).await.expect(204);
    server.settled().await;
    assert_eq!(server.everything().await, before);
    put(&server, "ann", json!({"name": "Ann"})).await;
    let changes = server.get("/v1/users/bob/changes").await.expect(200).text;
    assert!(!changes.contains("people") && before.contains(&changes), "catching up is byte for byte the same");
    server.close().await;
}

#[tokio::test]
async fn s7_every_list_of_items_shows_who_made_them() {
    let dir = tempfile::tempdir().unwrap();
    let likes = NamedFeed {
        id: FeedId::MAIN,
        name: "likes".into(),
        kinds: vec!["like".into()],
        ranked: false,
        cap: 9,
        ttl: None,
    };
    let server = Server::open_with(dir.path(), vec![likes]).await;
    server.follow("bob", "ann").await;
    let like = json!({"author": "ann", "kind": "like", "body": 1});
    let id = server.post("/v1/items", like).await.expect(201).json["id"].as_str().unwrap().to_owned();
    let direct = json!({"author": "eve", "body": 2, "audience": {"users": ["bob"]}});
    server.post("/v1/items", direct).await.expect(201);
    server.settled().await;
    put(&server, "ann", json!({"name": "Ann"})).await;
    put(&server, "eve", json!({"name": "Eve"})).await;
    let (ann, eve) = (json!({"ann": {"name": "Ann"}}), json!({"eve": {"name": "Eve"}}));
    assert_eq!(page(&server, &format!("{FEED}?name=likes")).await["people"], ann);
    assert_eq!(page(&server, "/v1/users/ann/outbox?name=likes").await["people"], ann);
    assert_eq!(page(&server, &format!("/v1/items?ids={id},7")).await["people"], ann);
    assert_eq!(page(&server, &format!("/v1/items/{id}")).await["people"], ann);
    assert_eq!(page(&server, FEED).await["people"], eve, "the sender of what was addressed");
    for nobody in ["/v1/users/nobody/outbox", "/v1/users/bob/outbox", "/v1/items?ids=7"] {
        assert_eq!(page(&server, nobody).await.get("people"), None, "{nobody}");
    }
    server.close().await;
}

#[tokio::test]
async fn s7_a_backend_says_it_and_every_reader_may_read_it() {
    let (server, _dir) = Server::start().await;
    let body = r#"{"name":"Ann","attrs":{ "a" : 1.0,"a":[] }}"#;
    for bearer in [&server.token("ann"), &key_of("read")] {
        for what in ["PUT", "DELETE"] {
            let body = (what == "PUT").then_some(body);
            server.send(request(&format!("{what} {ANN}"), Some(bearer), body)).await.expect(403);
        }
        server.send(request("POST /v1/people/batch", Some(bearer), Some(r#"{"ops":[]}"#))).await.expect(403);
    }
    let nothing = server.get(ANN).await.expect(404).json;
    assert_eq!(nothing["detail"], "nothing is said of user ann; PUT /v1/users/ann says it");
    let publish = key_of("publish");
    server.send(request(&format!("PUT {ANN}"), Some(&publish), Some(body))).await.expect(204);
    server.send(request(&format!("GET {ANN}"), Some(&publish), None)).await.expect(403);
    let said = r#"{"user":"ann","name":"Ann","attrs":{ "a" : 1.0,"a":[] }}"#;
    for bearer in [server.token("ann"), server.token("mallory"), key_of("read")] {
        let read = server.send(request(&format!("GET {ANN}"), Some(&bearer), None)).await.expect(200);
        assert_eq!(read.text, said, "byte for byte");
    }
    for _ in 0..2 {
        server.call(&format!("DELETE {ANN}"), None).await.expect(204);
    }
    server.call("DELETE /v1/users/nobody", None).await.expect(204);
    server.get_as("bob", ANN).await.expect(404);
    put(&server, "ann", json!({})).await;
    assert_eq!(server.get(ANN).await.expect(200).text, r#"{"user":"ann"}"#);
    server.close().await;
}

#[tokio::test]
async fn s7_a_bad_person_is_refused_with_what_would_be_right_and_changes_nothing() {
    let (server, _dir) = start().await;
    put(&server, "ann", json!({"name": "Ann"})).await;
    let before = (server.everything().await, server.get(ANN).await.text, server.get("/v1/export").await.text);
    let deep = format!(r#"{{"attrs":{{"a":{}1{}}}}}"#, "[".repeat(128), "]".repeat(128));
    let large = json!({"attrs": {"a": "x".repeat(4096)}}).to_string();
    let cases = [
        (r#"{"name":""}"#, "/name", "1 to 100 characters, this one has 0"),
        (r#"{"name":null}"#, "/name", "must be a string"),
        (r#"{"name":7}"#, "/name", "must be a string, not 7"),
        (r#"{"name":"a\u0000b"}"#, "/name", "control characters"),
        (r#"{"name":"a\nb"}"#, "/name", "one line"),
        (r#"{"name":"\u2028"}"#, "/name", "one line"),
        (r#"{"name":"  "}"#, "/name", "more than spaces"),
        (r#"{"name":"\ud800"}"#, "/name", "must be a string"),
        (r#"{"name":"a","name":"b"}"#, "/name", "stands twice"),
        (r#"{"avatar":"javascript:alert(1)"}"#, "/avatar", "https://"),
        (r#"{"avatar":"//evil.example/a.png"}"#, "/avatar", "a path that begins with one /"),
        (r#"{"avatar":"https://a/\"onerror="}"#, "/avatar", "characters of a URL"),
        (r#"{"avatar":["/a"]}"#, "/avatar", "must be a string"),
        (r#"{"attrs":[]}"#, "/attrs", "must be a JSON object"),
        (r#"{"attrs":null}"#, "/attrs", "must be a JSON object"),
        (r#"{"attrs":{"a":1e999}}"#, "/attrs", "double"),
        (&deep, "/attrs", "nests at most 128"),
        (&large, "/attrs", "at most 4096 bytes"),
        (r#"{"private":1}"#, "/private", "must be true or false"),
        (r#"{"private":null}"#, "/private", "must be true or false"),
        (r#"{"secret":true}"#, "/secret", r#"known are \"name\", \"avatar\", \"attrs\", \"private\""#),
        (r#"{"user":"ann"}"#, "/user", "unknown field"),
        (r#"["Ann"]"#, "", "must be a JSON object"),
    ];
    for (body, pointer, words) in cases {
        let refused = server.call(&format!("PUT {ANN}"), Some(body)).await.expect(422);
        assert_eq!(refused.json["pointer"], pointer, "{body}: {}", refused.text);
        assert!(refused.text.contains(words), "{body}: {}", refused.text);
        server.call("PUT /v1/users/stranger", Some(body)).await.expect(422);
    }
    let huge = format!(r#"{{"attrs":{{"a":"{}"}}}}"#, "x".repeat(30_000));
    server.call(&format!("PUT {ANN}"), Some(&huge)).await.expect(413);
    server.call(&format!("PUT {ANN}"), Some("{")).await.expect(400);
    server.call("PUT /v1/users/a%20b", Some("{}")).await.expect(400);
    server.send(request(&format!("PUT {ANN}"), Some("the-api-key"), None)).await.expect(415);
    let after = (server.everything().await, server.get(ANN).await.text, server.get("/v1/export").await.text);
    assert_eq!(after, before, "also no user has become known");
    server.close().await;
}

#[tokio::test]
async fn s7_the_largest_person_that_is_allowed_is_taken_however_it_is_escaped() {
    let (server, _dir) = start().await;
    let escaped = |text: &str| text.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect::<String>();
    let (name, avatar) = ("\\ud83d\\ude00".repeat(100), escaped(&format!("/{}", "x".repeat(2047))));
    let attrs = format!(r#"{{"a":"{}"}}"#, "x".repeat(4096 - 8));
    let body = format!(r#"{{"name":"{name}","avatar":"{avatar}","attrs":{attrs}}}"#);
    server.call(&format!("PUT {ANN}"), Some(&body)).await.expect(204);
    let read = server.get(ANN).await.expect(200).json;
    assert_eq!(read["name"], "😀".repeat(100));
    assert_eq!(page(&server, FEED).await["people"]["ann"]["avatar"].as_str().unwrap().len(), 2048);
    server.close().await;
}

async fn batch(server: &Server, ops: Value) -> Answer {
    server.post("/v1/people/batch", json!({"ops": ops})).await
}

#[tokio::test]
async fn s7_many_are_put_in_one_request_and_a_bad_one_stops_no_other() {
    let (server, _dir) = start().await;
    let ops = json!([
        {"user": "ann", "name": "first"},
        {"user": "eve", "name": "Eve"},
        {"user": "eve", "name": ""},
        {"user": "a b", "name": "x"},
        {"name": "nobody"},
        {"user": "ann", "name": "Ann"},
        {"user": "ann", "private": true},
    ]);
    let results = batch(&server, ops).await.expect(200).json["results"].clone();
    let statuses: Vec<_> =
        results.as_array().unwrap().iter().map(|result| result["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 200, 422, 422, 422, 200, 422]);
    assert_eq!(results[0], json!({"status": 200, "user": "ann"}));
    for (nth, pointer) in [(2, "/ops/2/name"), (3, "/ops/3/user"), (4, "/ops/4/user"), (6, "/ops/6/private")] {
        assert_eq!(results[nth]["pointer"], pointer, "{results}");
    }
    assert_eq!(page(&server, FEED).await["people"], json!({"ann": {"name": "Ann"}, "eve": {"name": "Eve"}}));
    for bad in [json!([]), json!({}), Value::Array(vec![json!({"user": "ann"}); 1001])] {
        assert_eq!(batch(&server, bad).await.expect(422).json["pointer"], "/ops");
    }
    batch(&server, json!([1])).await.expect(200);
    server.close().await;
}

#[tokio::test]
async fn s7_people_move_with_an_export_whatever_they_are_called() {
    let ((from, _dir), (to, _other_dir)) = (Server::start().await, Server::start().await);
    let hostile = r#"{"name":"\\\" {\"type\":\"cursor\"} \u202e 王","avatar":"/a?b='%0A","attrs":{"a":"\n\u0000",
        "type":"item"}}"#;
    from.call("PUT /v1/users/cursor", Some(hostile)).await.expect(204);
    put(&from, "ann", json!({})).await;
    put(&from, "old", json!({"name": "old"})).await;
    from.publish("bob", "x").await;
    let export = from.get("/v1/export").await.expect(200).text;
    let lines: Vec<&str> = export.lines().filter(|line| !line.starts_with(r#"{"type":"cursor""#)).collect();
    assert_eq!(lines.len(), 4, "{export}");
    put(&to, "old", json!({"name": "newer"})).await;
    let bad = r#"{"type":"person","user":"ann","private":true}"#;
    let lines = [lines, vec![bad]].concat();
    let import = async || {
        let report = to.call("POST /v1/import", Some(&lines.join("\n"))).await.expect(200).text;
        assert!(report.contains("unknown field \\\"private\\\"") && report.contains("\"line\":5"), "{report}");
        let done: Value = report.lines().last().unwrap().parse().unwrap();
        (done["new"].as_u64().unwrap(), done["unchanged"].as_u64().unwrap(), done["refused"].as_u64().unwrap())
    };
    assert_eq!(import().await, (3, 1, 1));
    assert_eq!(import().await, (0, 4, 1), "again, and nothing has changed");
    for user in ["cursor", "ann"] {
        let path = format!("/v1/users/{user}");
        let [ours, theirs] = [from.get(&path).await.expect(200).text, to.get(&path).await.expect(200).text];
        assert_eq!(ours.replace('\n', " "), theirs, "a line has no breaks between its tokens");
    }
    assert_eq!(to.get("/v1/users/old").await.json["name"], "newer", "what was said since is newer than the file");
    from.close().await;
    to.close().await;
}
