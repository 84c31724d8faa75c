//! Private users (S9): a follow is a request until it is accepted, and what they publish is for followers alone.

use serde_json::{Value, json};

use crate::follows::users;
use crate::server::{Answer, Server, ids};

const ANN: &str = "/v1/users/ann";

async fn put(server: &Server, person: Value) {
    server.call(&format!("PUT {ANN}"), Some(&person.to_string())).await.expect(204);
}

async fn ask(server: &Server, reader: &str) {
    let asked = server.call(&format!("PUT /v1/users/{reader}/following/ann"), None).await.expect(202);
    assert_eq!(asked.json, json!({"pending": true}));
}

async fn requests(server: &Server) -> Vec<String> {
    let listed = server.get(&format!("{ANN}/requests")).await.expect(200).json;
    users(&listed).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn s9_requests_page_newest_first_and_are_answered_once() {
    let (server, dir) = Server::start().await;
    let item: u64 = server.publish("ann", "before").await.parse().unwrap();
    put(&server, json!({"private": true})).await;
    for reader in ["a", "b", "c", "d", "e"] {
        ask(&server, reader).await;
    }
    let pages = server.pages(&format!("{ANN}/requests"), 2).await;
    assert_eq!(pages.iter().flat_map(users).collect::<Vec<_>>(), ["e", "d", "c", "b", "a"]);
    assert_eq!(users(&server.get_as("ann", &format!("{ANN}/requests")).await.expect(200).json).len(), 5);
    server.get_as("a", &format!("{ANN}/requests")).await.expect(403);
    assert_eq!(server.get("/v1/users/nobody/requests").await.expect(200).json, json!({"users": [], "next": null}));

    for _ in 0..2 {
        server.call(&format!("PUT {ANN}/followers/c"), None).await.expect(204);
        server.call(&format!("DELETE {ANN}/requests/b"), None).await.expect(204);
        server.call("DELETE /v1/users/d/following/ann", None).await.expect(204);
    }
    for reader in ["b", "d", "nobody", "ann"] {
        let none = server.call(&format!("PUT {ANN}/followers/{reader}"), None).await.expect(404);
        assert_eq!(none.json["detail"], format!("{reader} has not asked to follow ann"));
    }
    server.settled().await;
    assert_eq!(ids(&server.get("/v1/users/c/feed").await.expect(200).json), [item]);
    assert_eq!(ids(&server.get("/v1/users/e/feed").await.expect(200).json), [0; 0]);
    server.close().await;
    let server = Server::open(dir.path()).await;
    assert_eq!(requests(&server).await, ["e", "a"]);
    server.close().await;
}

#[tokio::test]
async fn s9_a_batch_answers_many_requests_and_refuses_what_was_not_asked() {
    let (server, _dir) = Server::start().await;
    put(&server, json!({"private": true})).await;
    for reader in ["a", "b", "c"] {
        ask(&server, reader).await;
    }
    let op = |op: &str, reader: &str| json!({"op": op, "user": "ann", "reader": reader});
    let ops = json!({"ops": [
        op("accept", "a"), op("refuse", "b"), op("refuse", "nobody"), op("accept", "nobody"), op("accept", "a"),
        {"op": "accept", "user": "ann", "author": "c"}, {"op": "follow", "user": "c", "reader": "ann"},
        {"op": "accept", "user": "ann"}, op("admit", "c"),
    ]});
    let results = server.post("/v1/follows/batch", ops).await.expect(200).json["results"].clone();
    let done =
        |reader: &str, accepted: bool| json!({"status": 200, "user": "ann", "reader": reader, "accepted": accepted});
    assert_eq!(results[0], done("a", true));
    assert_eq!(results[1], done("b", false));
    assert_eq!(results[2], done("nobody", false), "as by itself");
    assert_eq!(results[4], done("a", true), "a follower is accepted already");
    let wrong = [
        (3, 404, "/ops/3", "nobody has not asked to follow ann"),
        (5, 422, "/ops/5/author", "\"reader\""),
        (6, 422, "/ops/6/reader", "\"author\""),
        (7, 422, "/ops/7/reader", "missing"),
        (8, 422, "/ops/8/op", "\"accept\""),
    ];
    for (n, status, pointer, words) in wrong {
        assert_eq!(
            (&results[n]["status"], &results[n]["pointer"]),
            (&json!(status), &json!(pointer)),
            "{}",
            results[n]
        );
        assert!(results[n]["detail"].as_str().unwrap().contains(words), "{}", results[n]);
    }
    assert_eq!(requests(&server).await, ["c"]);
    assert_eq!(users(&server.get(&format!("{ANN}/followers")).await.expect(200).json), ["a"]);
    server.close().await;
}

#[tokio::test]
async fn s9_whether_a_user_is_private_stays_whatever_else_is_said() {
    let (server, _dir) = Server::start().await;
    put(&server, json!({"name": "Ann", "private": true})).await;
    assert_eq!(server.get(ANN).await.expect(200).json, json!({"user": "ann", "name": "Ann", "private": true}));
    put(&server, json!({"name": "Anna"})).await;
    assert_eq!(
        server.get_as("bob", ANN).await.expect(200).json,
        json!({"user": "ann", "name": "Anna", "private": true})
    );
    server.call(&format!("DELETE {ANN}"), None).await.expect(204);
    assert_eq!(server.get(ANN).await.expect(200).json, json!({"user": "ann", "private": true}));
    let batch = json!({"ops": [{"user": "ann", "name": "Ann"}, {"user": "ann", "private": false}]});
    let results = server.post("/v1/people/batch", batch).await.expect(200).json;
    assert_eq!((&results["results"][0]["status"], &results["results"][1]["status"]), (&json!(200), &json!(422)));
    ask(&server, "bob").await;
    put(&server, json!({"private": false})).await;
    server.get(ANN).await.expect(200);
    assert_eq!(requests(&server).await, [""; 0]);
    assert_eq!(users(&server.get(&format!("{ANN}/followers")).await.expect(200).json), ["bob"]);
    server.call("PUT /v1/users/cid/following/ann", None).await.expect(204);
    server.close().await;
}

#[tokio::test]
async fn s9_a_private_profile_is_shown_to_followers_and_looks_empty_to_others() {
    let (server, _dir) = Server::start().await;
    for reader in ["fan", "muting"] {
        server.follow(reader, "ann").await;
    }
    let item: u64 = server.publish("ann", "for followers").await.parse().unwrap();
    put(&server, json!({"private": true})).await;
    ask(&server, "asking").await;
    server.call("PUT /v1/users/muting/muted/ann", None).await.expect(204);
    server.call(&format!("PUT {ANN}/pins/{item}"), None).await.expect(204);
    let outbox = format!("{ANN}/outbox");
    let empty = server.get("/v1/users/nobody/outbox?viewer=fan").await.expect(200).text;
    assert_eq!(ids(&server.get(&outbox).await.expect(200).json), [item], "a backend reads all");
    for viewer in ["fan", "ann"] {
        for page in [
            server.get(&format!("{outbox}?viewer={viewer}")).await,
            server.get_as(viewer, &format!("{outbox}?viewer={viewer}")).await,
        ] {
            assert_eq!(ids(&page.expect(200).json), [item], "{viewer}");
        }
    }
    for viewer in ["asking", "muting", "stranger"] {
        let path = format!("{outbox}?viewer={viewer}");
        assert_eq!(server.get(&path).await.expect(200).text, empty, "{viewer} by the API key");
        assert_eq!(server.get_as(viewer, &path).await.expect(200).text, empty, "{viewer} by a token");
        server.get_as(viewer, &format!("/v1/items/{item}")).await.expect(404);
    }
    server.close().await;
}

#[tokio::test]
async fn s9_an_export_tells_of_private_users_and_of_requests_and_an_import_takes_them() {
    let (server, _dir) = Server::start().await;
    put(&server, json!({"private": true})).await;
    server.publish("ann", "x").await;
    ask(&server, "bob").await;
    let of = |text: &str, kind: &str| -> Vec<Value> {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["type"] == kind).collect()
    };
    let all = server.get("/v1/export").await.expect(200).text;
    assert_eq!(of(&all, "private"), [json!({"type": "private", "user": "ann"})]);
    let request = &of(&all, "request")[0];
    assert_eq!((&request["reader"], &request["author"]), (&json!("bob"), &json!("ann")));
    assert_eq!(of(&all, "follow"), [json!(null); 0]);
    for user in ["ann", "bob"] {
        let known = server.get(&format!("/v1/users/{user}/export")).await.expect(200).text;
        assert_eq!(of(&known, "request"), std::slice::from_ref(request), "{user}");
        assert_eq!(of(&known, "private").len(), usize::from(user == "ann"));
    }
    server.close().await;
    let (other, _dir) = Server::start().await;
    let lines: Vec<&str> = all.lines().filter(|line| !line.contains("\"cursor\"")).collect();
    for fresh in [true, false] {
        let report = other.call("POST /v1/import", Some(&lines.join("\n"))).await.expect(200).text;
        let done: Value = serde_json::from_str(report.lines().last().unwrap()).unwrap();
        assert_eq!((&done["refused"], done["new"] == lines.len()), (&json!(0), fresh), "{report}");
    }
    assert_eq!(requests(&other).await, ["bob"]);
    assert_eq!(other.get(ANN).await.expect(200).json["private"], json!(true));
    other.close().await;
}

#[tokio::test]
async fn who_is_to_be_private_and_of_class_everyone_is_told_which_value_is_refused() {
    let (server, _dir) = Server::start().await;
    let refused = |answer: Answer, pointer| {
        assert_eq!(answer.json["pointer"], pointer, "{}", answer.text);
        assert!(answer.json["detail"].as_str().unwrap().contains("cannot be private"), "{}", answer.text);
    };
    put(&server, json!({"private": true})).await;
    let everyone = r#"{"class":"everyone"}"#;
    refused(server.call("PUT /v1/authors/ann", Some(everyone)).await.expect(422), "/class");
    server.call("PUT /v1/authors/news", Some(everyone)).await.expect(204);
    let private = r#"{"name":"News","private":true}"#;
    refused(server.call("PUT /v1/users/news", Some(private)).await.expect(422), "/private");
    server.get("/v1/users/news").await.expect(404);
    server.close().await;
}
