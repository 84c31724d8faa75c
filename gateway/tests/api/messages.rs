//! Calls that come as messages: they do what the requests do that they stand for, once, and are refused in the same
//! words.

use feedgate_common::intake::Answer;
use serde_json::{Value, json};

use crate::server::Server;

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

fn bodies(server: &Value) -> Vec<&Value> {
    server["items"].as_array().unwrap().iter().map(|item| &item["body"]).collect()
}

#[tokio::test]
async fn a_message_does_what_its_request_does() {
    let (server, _dir) = Server::start().await;
    let posted = server.message("publish", &[], r#"{"author":"ann","body":1,"foreign_id":"a/b c"}"#).await;
    let id = json_of(&posted)["id"].as_str().unwrap().to_owned();
    assert_eq!(posted.status, 201);
    assert!(posted.headers.contains(&("location".to_owned(), format!("/v1/items/{id}"))), "{:?}", posted.headers);
    assert_eq!(server.message("follow.bob.ann", &[], "").await.status, 204);
    let edited = server.message("edit.foreign:a/b c", &[("If-Match", "\"1\"")], r#"{"body":2}"#).await;
    assert_eq!((edited.status, &json_of(&edited)["body"]), (200, &json!(2)));
    server.settled().await;
    let feed = server.get("/v1/users/bob/feed").await.expect(200).json;
    assert_eq!(bodies(&feed), [&json!(2)]);
    let unfollowed = server.message("follows", &[], r#"{"ops":[{"op":"unfollow","user":"bob","author":"ann"}]}"#).await;
    assert_eq!(json_of(&unfollowed)["results"][0]["following"], json!(false));
    assert_eq!(server.message(&format!("delete.{id}"), &[], "").await.status, 204);
    server.get(&format!("/v1/items/{id}")).await.expect(404);
    server.close().await;
}

#[tokio::test]
async fn what_surrounds_an_item_comes_by_messages_too() {
    let (server, _dir) = Server::start().await;
    let done = async |subject: &str, body: &str| {
        let answer = server.message(subject, &[], body).await;
        assert!(answer.is_done(), "{subject}: {} {}", answer.status, json_of(&answer));
        answer.status
    };
    done("publish", r#"{"author":"ann","body":1,"id":"7","foreign_id":"x/y"}"#).await;
    done("react.foreign:x/y.like.bob", "").await;
    done("react.7.like.cid", "").await;
    done("unreact.7.like.cid", "").await;
    let comment = async |key| {
        let body = r#"{"author":"bob","body":"hi"}"#;
        let answer = server.message("comment.7", &[("Nats-Msg-Id", key)], body).await;
        (answer.status, json_of(&answer)["id"].as_str().unwrap().to_owned())
    };
    let (first, again, other) = (comment("one").await, comment("one").await, comment("two").await);
    assert_eq!((first.0, again.0, &first.1), (201, 200, &again.1), "a key makes one comment");
    done(&format!("comment_edit.7.{}", first.1), r#"{"body":"hello"}"#).await;
    done(&format!("comment_delete.7.{}", other.1), "").await;
    let item = server.get("/v1/items/7?viewer=bob").await.expect(200).json;
    assert_eq!((&item["counts"], &item["own"]), (&json!({"like": 1, "comments": 1}), &json!(["like"])));
    let comments = server.get("/v1/items/7/comments").await.expect(200).json;
    assert_eq!(comments["comments"][0]["body"], json!("hello"));

    done("person.ann", r#"{"name":"Ann","private":true}"#).await;
    done("people", r#"{"ops":[{"user":"bob","name":"Bob"}]}"#).await;
    assert_eq!(server.get("/v1/users/bob").await.expect(200).json["name"], json!("Bob"));
    assert_eq!((done("follow.bob.ann", "").await, done("follow.cid.ann", "").await), (202, 202));
    assert_eq!((done("accept.ann.bob", "").await, done("refuse.ann.cid", "").await), (204, 204));
    let followers = server.get("/v1/users/ann/followers").await.expect(200).json;
    assert_eq!(followers["users"].as_array().map(Vec::len), Some(1), "{followers}");
    done("lists", r#"{"ops":[{"op":"add","user":"ann","list":"close","member":"bob"}]}"#).await;
    done("pin.ann.7", "").await;
    let pinned = async || server.get("/v1/users/ann/outbox").await.expect(200).json["items"][0]["pinned"].clone();
    assert_eq!(pinned().await, json!(true));
    done("unpin.ann.7", "").await;
    assert_eq!(pinned().await, Value::Null);
    done("classify.ann", r#"{"class":"pull"}"#).await;
    assert_eq!(server.get("/v1/authors/ann").await.expect(200).json["class"], json!("pull"));
    server.close().await;
}

#[tokio::test]
async fn a_message_is_refused_with_the_problem_of_its_request() {
    let (server, _dir) = Server::start().await;
    for (subject, request, body) in [
        ("publish", "POST /v1/items", r#"{"author":"a b","body":1}"#),
        ("publish", "POST /v1/items", "{"),
        ("publish", "POST /v1/items", ""),
        ("batch", "POST /v1/items/batch", r#"{"ops":[]}"#),
        ("edit.0x", "PATCH /v1/items/0x", r#"{"body":1}"#),
        ("edit.7", "PATCH /v1/items/7", r#"{"body":1}"#),
        ("delete.foreign:", "DELETE /v1/items/foreign:", ""),
        ("follow.a%20b.ann", "PUT /v1/users/a%20b/following/ann", ""),
        ("follows", "POST /v1/follows/batch", r#"{"ops":[{}],"x":1}"#),
        ("react.7.like.bob", "PUT /v1/items/7/reactions/like/bob", ""),
        ("comment.7", "POST /v1/items/7/comments", r#"{"author":"bob","body":1}"#),
        ("pin.ann.7", "PUT /v1/users/ann/pins/7", ""),
        ("rank.ann.picks", "PUT /v1/users/ann/feeds/picks/ranking", r#"[{"id":"7","rank":1}]"#),
        ("accept.ann.bob", "PUT /v1/users/ann/followers/bob", ""),
        ("lists", "POST /v1/lists/batch", r#"{"ops":[]}"#),
    ] {
        let (message, request) = (server.message(subject, &[], body).await, server.call(request, Some(body)).await);
        assert!(message.status >= 400, "{subject}");
        assert_eq!((message.status, json_of(&message)), (request.status, request.json), "{subject} {body}");
    }
    let no_call = json_of(&server.message("like", &[], "").await);
    assert_eq!((&no_call["type"], &no_call["status"]), (&json!("/problems/no-such-route"), &json!(404)));
    let no_key = json_of(&server.message("publish", &[("Nats-Msg-Id", "a b")], "{}").await);
    assert_eq!((&no_key["type"], &no_key["field"]), (&json!("/problems/bad-header"), &json!("Nats-Msg-Id")));
    let busy = server.messages.overloaded();
    assert_eq!((busy.status, &json_of(&busy)["type"]), (503, &json!("/problems/overloaded")));
    assert!(busy.headers.contains(&("retry-after".to_owned(), "1".to_owned())), "{:?}", busy.headers);
    let two = server.message("edit.7", &[("If-Match", "7\n")], r#"{"body":1}"#).await;
    assert_eq!(json_of(&two)["field"], "If-Match");
    server.close().await;
}

#[tokio::test]
async fn i6_a_message_that_comes_again_makes_no_second_item() {
    let (server, _dir) = Server::start().await;
    let key = [("Nats-Msg-Id", "order-7")];
    let batch = r#"{"ops":[{"author":"ann","body":1},{"author":"ann","body":2,"idempotency_key":"own"}]}"#;
    let ids =
        |answer: &Answer| json_of(answer)["results"].as_array().unwrap().iter().map(|r| r["id"].clone()).collect();
    let first: Vec<Value> = ids(&server.message("batch", &key, batch).await);
    let again: Vec<Value> = ids(&server.message("batch", &key, batch).await);
    assert_eq!(first, again);
    let alone = |key, body| server.message("publish", key, body);
    assert_eq!(
        alone(&[("Nats-Msg-Id", "order-7/0")], r#"{"author":"ann","body":1}"#).await.status,
        200,
        "by its number"
    );
    assert_eq!(alone(&[("Nats-Msg-Id", "own")], r#"{"author":"ann","body":2}"#).await.status, 200, "by its own key");
    assert_eq!(alone(&key, r#"{"author":"ann","body":3}"#).await.status, 201);
    assert_eq!(alone(&key, r#"{"author":"ann","body":3}"#).await.status, 200);
    assert_eq!(alone(&key, r#"{"author":"ann","body":4}"#).await.status, 409);
    let outbox = server.get("/v1/users/ann/outbox").await.expect(200).json;
    assert_eq!(bodies(&outbox), [&json!(3), &json!(2), &json!(1)]);
    server.close().await;
}

#[tokio::test]
async fn i6_a_batch_of_comments_that_comes_again_makes_no_second_comment() {
    let (server, _dir) = Server::start().await;
    server.message("publish", &[], r#"{"author":"ann","body":1,"id":"7"}"#).await;
    let say = r#"{"op":"add","item":"7","author":"bob","body":1}"#;
    let send =
        async || server.message("comments", &[("Nats-Msg-Id", "talk-7")], &format!(r#"{{"ops":[{say},{say}]}}"#)).await;
    let (first, again) = (json_of(&send().await), json_of(&send().await));
    let of = |answer: &Value, what: &str| [0, 1].map(|nth: usize| answer["results"][nth][what].clone());
    assert_eq!((of(&first, "status"), of(&again, "status")), ([json!(201), json!(201)], [json!(200), json!(200)]));
    assert_eq!(of(&first, "id"), of(&again, "id"));
    assert_eq!(server.get("/v1/items/7").await.expect(200).json["counts"], json!({"comments": 2}));
    server.close().await;
}

#[tokio::test]
async fn an_edit_of_a_version_that_comes_again_is_done_and_another_edit_of_it_is_not() {
    let (server, _dir) = Server::start().await;
    server.message("publish", &[], r#"{"author":"ann","body":1,"id":"7"}"#).await;
    let edit = async |version: &str, fields: &str| {
        let body = format!("{{{fields}}}");
        let answer = server.message("edit.7", &[("If-Match", version)], &body).await;
        (answer.status, json_of(&answer)["version"].clone())
    };
    let send = async |version: &str, body: &str| edit(version, &format!("\"body\":{body}")).await;
    assert_eq!(send("\"1\"", "2").await, (200, json!(2)));
    assert_eq!(send("\"1\"", "2").await, (200, json!(2)), "carried out before, with this body");
    assert_eq!(send("\"1\"", "3").await.0, 412, "another body");
    assert_eq!(send("\"2\"", "3").await, (200, json!(3)));
    assert_eq!(send("\"1\"", "3").await.0, 412, "another version");
    for again in ["", "again"] {
        assert_eq!(edit("\"3\"", "\"rank\":9").await, (200, json!(4)), "a rank alone {again}");
    }
    assert_eq!(edit("\"3\"", "\"rank\":8").await.0, 412, "another rank");
    for again in ["", "again"] {
        assert_eq!(edit("\"4\"", "\"rank\":7,\"body\":null").await, (200, json!(5)), "both {again}");
    }
    assert_eq!(edit("\"4\"", "\"rank\":7,\"body\":0").await.0, 412, "this rank and another body");
    server.close().await;
}
