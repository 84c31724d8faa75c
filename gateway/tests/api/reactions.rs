//! Reactions over HTTP: who may give them, what pages and items show of them, and to whom (S1, S2).

use serde_json::{Value, json};

use crate::server::{Answer, Server, key_of, request};

async fn as_reader(server: &Server, user: &str, what: &str) -> Answer {
    server.send(request(what, Some(&server.token(user)), None)).await
}

/// ann's post, which bob sees, and its id.
async fn start() -> (Server, tempfile::TempDir, String) {
    let (server, dir) = Server::start().await;
    server.follow("bob", "ann").await;
    let id = server.publish("ann", "hello").await;
    server.settled().await;
    (server, dir, id)
}

#[tokio::test]
async fn s1_a_reaction_counts_once_and_every_answer_says_what_is_so_now() {
    let (server, _dir, id) = start().await;
    let liked = |count: u64, own: &[&str]| json!({"id": id, "counts": {"like": count}, "own": own});
    let like = |method: &str, user: &str| format!("{method} /v1/items/{id}/reactions/like/{user}");
    for _again in 0..2 {
        assert_eq!(server.call(&like("PUT", "bob"), None).await.expect(200).json, liked(1, &["like"]));
    }
    assert_eq!(server.call(&like("PUT", "cid"), None).await.expect(200).json, liked(2, &["like"]));
    for _again in 0..2 {
        assert_eq!(server.call(&like("DELETE", "bob"), None).await.expect(200).json, liked(1, &[]));
    }
    let both = server.call(&format!("PUT /v1/items/{id}/reactions/%E2%9D%A4%2F/cid"), None).await.expect(200).json;
    assert_eq!(both["own"], json!(["like", "❤/"]), "a kind is any word of the backend");
    server.close().await;
}

#[tokio::test]
async fn s1_many_reactions_come_in_one_call_and_a_bad_one_stops_no_other() {
    let (server, _dir, id) = start().await;
    let named = json!({"author": "ann", "body": 1, "foreign_id": "post/1"});
    server.post("/v1/items", named).await.expect(201);
    let op = |op: &str, item: &str, user: &str| json!({"op": op, "item": item, "kind": "like", "user": user});
    let send = async |ops: Value| {
        let answer = server.post("/v1/reactions/batch", json!({"ops": ops})).await.expect(200).json;
        answer["results"].as_array().unwrap().clone()
    };
    let counts =
        async |which: &str| server.get(&format!("/v1/items/{which}")).await.expect(200).json["counts"]["like"].clone();
    let results = send(json!([
        op("add", &id, "bob"),
        op("add", "foreign:post/1", "bob"),
        op("add", "foreign:post/1", "cid"),
        op("add", &id, "dee"),
        op("remove", &id, "dee"),
        op("add", "12345", "bob"),
        op("add", "foreign:nothing", "bob"),
        op("like", &id, "bob"),
        op("add", &id, "b b"),
    ]))
    .await;
    let statuses: Vec<&Value> = results.iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 404, 404, 422, 422]);
    assert_eq!((&results[5]["pointer"], &results[8]["pointer"]), (&json!("/ops/5"), &json!("/ops/8/user")));
    assert!(results[7]["detail"].as_str().unwrap().contains(r#"must be "add" or "remove""#), "{}", results[7]);
    assert_eq!((counts(&id).await, counts("foreign:post%2F1").await), (json!(1), json!(2)), "the last of two counts");
    send(json!([op("remove", "foreign:post/1", "cid"), op("remove", "foreign:post/1", "nobody")])).await;
    send(json!([op("add", &id, "bob")])).await;
    assert_eq!((counts(&id).await, counts("foreign:post%2F1").await), (json!(1), json!(1)), "a repeat changes nothing");
    server.post("/v1/reactions/batch", json!({"ops": []})).await.expect(422);
    server.send(request("POST /v1/reactions/batch", Some(&server.token("bob")), Some("{}"))).await.expect(403);
    server.close().await;
}

#[tokio::test]
async fn s2_what_a_reader_did_shows_in_the_next_answer_to_that_reader_and_to_no_other() {
    let (server, _dir, id) = start().await;
    server.follow("cid", "ann").await;
    let plain = server.publish("ann", "plain").await;
    server.settled().await;
    as_reader(&server, "bob", &format!("PUT /v1/items/{id}/reactions/like/bob")).await.expect(200);
    let page = server.get_as("bob", "/v1/users/bob/feed").await.expect(200).json;
    let of = |page: &Value, at: usize| (page["items"][at]["counts"].clone(), page["items"][at]["own"].clone());
    assert_eq!(of(&page, 1), (json!({"like": 1}), json!(["like"])));
    assert_eq!((&page["items"][0]["id"], of(&page, 0)), (&json!(plain), (Value::Null, Value::Null)));
    for (path, own) in [
        ("/v1/users/bob/feed", json!(["like"])),
        ("/v1/users/bob/feed?viewer=cid", Value::Null),
        ("/v1/users/cid/feed?viewer=bob", json!(["like"])),
        ("/v1/users/bob/feed?viewer=nobody", Value::Null),
    ] {
        let page = server.get(path).await.expect(200).json;
        assert_eq!(of(&page, 1), (json!({"like": 1}), own), "{path}");
    }
    let others = server.get_as("cid", "/v1/users/cid/feed").await.expect(200).json;
    assert_eq!(of(&others, 1), (json!({"like": 1}), Value::Null));
    server.get_as("cid", "/v1/users/cid/feed?viewer=bob").await.expect(403);
    for (user, own) in [("bob", json!(["like"])), ("cid", Value::Null)] {
        let one = server.get_as(user, &format!("/v1/items/{id}")).await.expect(200);
        assert_eq!((&one.json["counts"], &one.json["own"]), (&json!({"like": 1}), &own));
        assert_eq!(one.header("etag"), "\"1\"", "a reaction is no new version");
        let several = server.get_as(user, &format!("/v1/items?ids={plain},{id}")).await.expect(200).json;
        assert_eq!(of(&several, 1), (json!({"like": 1}), own.clone()));
        let seen = server.get(&format!("/v1/items/{id}?viewer={user}")).await.expect(200).json;
        assert_eq!(seen["own"], own);
    }
    assert_eq!(server.get(&format!("/v1/items/{id}")).await.expect(200).json["own"], Value::Null);
    server.close().await;
}

#[tokio::test]
async fn s1_a_reaction_enters_no_log() {
    let (server, _dir, id) = start().await;
    let before = server.get("/v1/users/bob/changes").await.expect(200).text;
    server.call(&format!("PUT /v1/items/{id}/reactions/like/bob"), None).await.expect(200);
    server.settled().await;
    assert_eq!(server.get("/v1/users/bob/changes").await.expect(200).text, before);
    server.close().await;
}

#[tokio::test]
async fn a_reader_reacts_for_itself_alone_and_to_what_it_sees() {
    let (server, _dir, id) = start().await;
    let hidden = json!({"author": "eve", "body": "hidden", "id": "666"});
    server.post("/v1/items", hidden).await.expect(201);
    as_reader(&server, "bob", &format!("PUT /v1/items/{id}/reactions/like/cid")).await.expect(403);
    let never = as_reader(&server, "bob", "PUT /v1/items/667/reactions/like/bob").await.expect(404);
    for what in ["PUT /v1/items/666/reactions/like/bob", "DELETE /v1/items/666/reactions/like/bob"] {
        let unseen = as_reader(&server, "bob", what).await.expect(404);
        assert_eq!(unseen.text.replace("666", "667"), never.text, "nothing tells that the item exists");
    }
    as_reader(&server, "bob", "GET /v1/items/666/reactions").await.expect(404);
    let [reads, publishes] = ["read", "publish"].map(key_of);
    let like = format!("PUT /v1/items/{id}/reactions/like/bob");
    server.send(request(&like, Some(&reads), None)).await.expect(403);
    server.send(request(&like, Some(&publishes), None)).await.expect(200);
    server.call(&like.replace("bob", "cid"), None).await.expect(200);
    server.call("DELETE /v1/users/bob/following/ann", None).await.expect(204);
    as_reader(&server, "bob", &like).await.expect(404);
    let taken_back = as_reader(&server, "bob", &like.replace("PUT", "DELETE")).await.expect(200).json;
    assert_eq!(taken_back, json!({"id": id, "counts": {}, "own": []}), "what it gave, and no counts");
    server.close().await;
}

#[tokio::test]
async fn the_list_of_who_reacted_goes_on_where_it_ended() {
    let (server, _dir, id) = start().await;
    for user in ["u1", "u2", "u3", "u4", "u5"] {
        server.call(&format!("PUT /v1/items/{id}/reactions/like/{user}"), None).await.expect(200);
    }
    server.call(&format!("PUT /v1/items/{id}/reactions/sad/u1"), None).await.expect(200);
    let path = format!("/v1/items/{id}/reactions");
    let users = |pages: Vec<Value>| {
        let lines = pages.into_iter().flat_map(|page| page["reactions"].as_array().unwrap().clone());
        lines.map(|line| format!("{} {}", line["user"].as_str().unwrap(), line["kind"].as_str().unwrap())).collect()
    };
    let all: Vec<String> = users(server.pages(&path, 2).await);
    let mut once = all.clone();
    once.sort_unstable();
    assert_eq!(once, ["u1 like", "u1 sad", "u2 like", "u3 like", "u4 like", "u5 like"]);
    let sad: Vec<String> = users(vec![server.get(&format!("{path}?kind=sad")).await.expect(200).json]);
    assert_eq!(sad, ["u1 sad"]);
    assert_eq!(as_reader(&server, "bob", &format!("GET {path}")).await.expect(200).json["next"], Value::Null);
    server.close().await;
}

#[tokio::test]
async fn s7_the_list_of_who_reacted_shows_each_of_them_once_with_name_and_avatar() {
    let (server, _dir, id) = start().await;
    for what in ["like/u1", "sad/u1", "like/u2"] {
        server.call(&format!("PUT /v1/items/{id}/reactions/{what}"), None).await.expect(200);
    }
    let path = format!("/v1/items/{id}/reactions");
    assert_eq!(server.get(&path).await.expect(200).json["people"], Value::Null, "nobody is known by name");
    let card = json!({"name": "Una", "avatar": "https://cdn.example/una.png"});
    server.call("PUT /v1/users/u1", Some(&card.to_string())).await.expect(204);
    assert_eq!(server.get(&path).await.expect(200).json["people"], json!({"u1": card}));
    let last = as_reader(&server, "bob", &format!("GET {path}?limit=1")).await.expect(200).json;
    assert_eq!(last["people"], Value::Null, "only those of the page: {last}");
    server.close().await;
}

#[tokio::test]
async fn s1_a_deleted_item_takes_its_reactions_with_it() {
    let (server, _dir, id) = start().await;
    let like = format!("PUT /v1/items/{id}/reactions/like/bob");
    server.call(&like, None).await.expect(200);
    server.call(&format!("DELETE /v1/items/{id}"), None).await.expect(204);
    server.call(&like, None).await.expect(404);
    server.call(&like.replace("PUT", "DELETE"), None).await.expect(404);
    server.get(&format!("/v1/items/{id}/reactions")).await.expect(404);
    server.close().await;
}

#[tokio::test]
async fn an_item_takes_32_kinds_and_the_next_one_is_a_conflict() {
    let (server, _dir, id) = start().await;
    for n in 0..32 {
        server.call(&format!("PUT /v1/items/{id}/reactions/kind{n}/bob"), None).await.expect(200);
    }
    let refused = server.call(&format!("PUT /v1/items/{id}/reactions/more/bob"), None).await.expect(409).json;
    assert!(refused["detail"].as_str().unwrap().contains("32 kinds"), "{refused}");
    server.call(&format!("PUT /v1/items/{id}/reactions/kind7/cid"), None).await.expect(200);
    server.close().await;
}
