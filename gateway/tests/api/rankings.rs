//! Rankings: what a recommender puts into a feed of a reader, and what the reader is told of it.

use feedgate_common::FeedId;
use feedgate_common::named::NamedFeed;
use serde_json::{Value, json};

use crate::server::{Server, key_of, request};

const PATH: &str = "/v1/users/bob/feeds/picks/ranking";

fn feeds() -> Vec<NamedFeed> {
    let feed = |name: &str, kinds: &[&str]| NamedFeed {
        id: FeedId::MAIN,
        name: name.into(),
        kinds: kinds.iter().map(|&kind| kind.into()).collect(),
        ranked: kinds.is_empty(),
        cap: 1000,
        ttl: None,
    };
    vec![feed("likes", &["like"]), feed("picks", &[])]
}

async fn start() -> (Server, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open_with(dir.path(), feeds()).await;
    for id in 1..=3 {
        server.post("/v1/items", json!({"author": "ann", "body": id, "id": id.to_string()})).await.expect(201);
    }
    (server, dir)
}

/// A ranking of these items, each with its rank.
fn ranking(ranks: &[(u64, i64)]) -> Value {
    ranks.iter().map(|(id, rank)| json!({"id": id.to_string(), "rank": rank})).collect()
}

async fn put(server: &Server, ranks: &[(u64, i64)]) -> Value {
    server.call(&format!("PUT {PATH}"), Some(&ranking(ranks).to_string())).await.expect(200).json
}

/// The page of the feed: each item, its rank, and whether it is addressed to the reader.
async fn page(server: &Server) -> Vec<(String, i64, bool)> {
    server.settled().await;
    let page = server.get("/v1/users/bob/feed?name=picks").await.expect(200).json;
    assert_eq!(page["unread"], 0, "of a ranking nothing is unread");
    let shown = |item: &Value| {
        (item["id"].as_str().unwrap().to_owned(), item["rank"].as_i64().unwrap(), item["direct"] == true)
    };
    page["items"].as_array().unwrap().iter().map(shown).collect()
}

/// The log of the feed: each op, with its item and rank.
async fn changes(server: &Server) -> Vec<String> {
    server.settled().await;
    let answer = server.get("/v1/users/bob/changes?name=picks").await.expect(200).json;
    let about = |line: &Value| match &line["op"] {
        op if op == "delete" => format!("delete {}", line["item_id"]),
        op if op == "forget" => format!("forget {}", line["author"]),
        op => format!("{op} {} {}", line["item"]["id"], line["item"]["rank"]),
    };
    answer["changes"].as_array().unwrap().iter().map(about).map(|text| text.replace('"', "")).collect()
}

fn addressed(ranks: &[(u64, i64)]) -> Vec<(String, i64, bool)> {
    ranks.iter().map(|(id, rank)| (id.to_string(), *rank, true)).collect()
}

#[tokio::test]
async fn s11_a_ranking_is_replaced_and_told_as_a_difference() {
    let (server, _dir) = start().await;
    assert_eq!(page(&server).await, []);
    assert_eq!(put(&server, &[(1, 10), (2, 20)]).await, json!({"added": 2, "moved": 0, "removed": 0}));
    assert_eq!(page(&server).await, addressed(&[(2, 20), (1, 10)]));
    assert_eq!(put(&server, &[(1, 30), (3, 5)]).await, json!({"added": 1, "moved": 1, "removed": 1}));
    assert_eq!(put(&server, &[(3, 5), (1, 30)]).await, json!({"added": 0, "moved": 0, "removed": 0}));
    assert_eq!(page(&server).await, addressed(&[(1, 30), (3, 5)]));
    assert_eq!(server.get(PATH).await.expect(200).json, ranking(&[(1, 30), (3, 5)]));
    server.follow("bob", "ann").await;
    server.call("DELETE /v1/users/bob/following/ann", None).await.expect(204);
    assert_eq!(page(&server).await, addressed(&[(1, 30), (3, 5)]), "a follow is none of its business");
    let wanted = ["add 2 20", "add 1 10", "delete 1", "add 1 30", "add 3 5", "delete 2"];
    let mut log = changes(&server).await;
    log.retain(|line| line != "forget ann");
    assert_eq!(log, wanted, "each with the rank of its change");
    server.close().await;
}

#[tokio::test]
async fn s11_an_edit_and_a_delete_of_an_item_come_to_its_rankings() {
    let (server, _dir) = start().await;
    put(&server, &[(1, 10), (2, 20)]).await;
    let heard = async |what: &str| {
        let hears = async {
            while changes(&server).await.last().is_none_or(|last| last != what) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(300), hears).await.expect("the log hears of it");
    };
    page(&server).await;
    server.call("PATCH /v1/items/1", Some(r#"{"body":"new"}"#)).await.expect(200);
    heard("update 1 10").await;
    server.call("DELETE /v1/items/2", None).await.expect(204);
    assert_eq!(server.get(PATH).await.expect(200).json, ranking(&[(1, 10)]), "gone from sight at once");
    heard("delete 2").await;
    assert_eq!(page(&server).await, addressed(&[(1, 10)]));
    server.close().await;
}

#[tokio::test]
async fn s11_a_ranking_shows_no_more_than_a_repost_would() {
    let (server, _dir) = start().await;
    server.follow("dan", "ann").await;
    server.call("PUT /v1/users/ann/lists/close/dan", None).await.expect(204);
    for (id, audience) in [(5, json!({"lists": ["close"]})), (6, json!({"users": ["dan"]}))] {
        let item = json!({"author": "ann", "body": id, "id": id.to_string(), "audience": audience});
        server.post("/v1/items", item).await.expect(201);
    }
    server.post("/v1/items", json!({"author": "eve", "body": 7, "id": "7"})).await.expect(201);
    assert_eq!(page(&server).await, []);
    put(&server, &[(1, 10), (5, 50), (6, 60), (7, 70)]).await;
    assert_eq!(page(&server).await, addressed(&[(7, 70), (1, 10)]), "an audience and named readers hold");
    server.call("PUT /v1/users/eve/hidden/bob", None).await.expect(204);
    assert_eq!(page(&server).await, addressed(&[(1, 10)]));
    assert_eq!(changes(&server).await, ["delete 7", "delete 6", "delete 5", "add 1 10"], "and so for who catches up");
    server.close().await;
}

/// What a reader is answered who reads an item, likes it, takes that back, comments on it, and reads the comments.
async fn doors(server: &Server, user: &str, id: u64) -> Vec<u16> {
    let mut answers = vec![];
    for (what, body) in [
        (format!("GET /v1/items/{id}"), None),
        (format!("PUT /v1/items/{id}/reactions/like/{user}"), None),
        (format!("GET /v1/items/{id}/reactions"), None),
        (format!("DELETE /v1/items/{id}/reactions/like/{user}"), None),
        (format!("POST /v1/items/{id}/comments"), Some(r#"{"body":"hi"}"#)),
        (format!("GET /v1/items/{id}/comments"), None),
    ] {
        answers.push(server.send(request(&what, Some(&server.token(user)), body)).await.status);
    }
    let several = server.get_as(user, &format!("/v1/items?ids={id}")).await.expect(200).json;
    assert_eq!(several["items"].as_array().unwrap().len(), usize::from(answers[0] == 200), "{several}");
    answers
}

#[tokio::test]
async fn s11_a_ranking_opens_an_item_to_its_reader_alone() {
    const OPEN: [u16; 6] = [200, 200, 200, 200, 201, 200];
    let (server, _dir) = start().await;
    server.call("PUT /v1/users/ann/lists/close/dan", None).await.expect(204);
    server.follow("dan", "ann").await;
    let narrowed = json!({"author": "ann", "body": 5, "id": "5", "audience": {"lists": ["close"]}});
    server.post("/v1/items", narrowed).await.expect(201);
    assert_eq!(doors(&server, "bob", 1).await, [404; 6]);
    put(&server, &[(1, 10), (5, 50)]).await;
    assert_eq!(doors(&server, "bob", 1).await, OPEN);
    assert_eq!(doors(&server, "eve", 1).await, [404; 6], "it is the ranking of bob");
    assert_eq!((doors(&server, "bob", 2).await, doors(&server, "bob", 5).await), (vec![404; 6], vec![404; 6]));
    assert_eq!(doors(&server, "dan", 5).await, OPEN);
    let profile = server.get_as("bob", "/v1/users/ann/outbox?viewer=bob").await.expect(200).json;
    assert_eq!(profile["items"], json!([]), "a ranking opens items, and no profile");

    let explained = async |id: u64| {
        let answer = server.get(&format!("/v1/explain?reader=bob&item={id}")).await.expect(200).json;
        (answer["verdict"].clone(), answer["rankings"].clone())
    };
    let said = |holds: bool, detail: &str| json!([{"rule": "ranking", "holds": holds, "detail": detail}]);
    let open = said(true, "it stands in the ranking \"picks\" of bob with rank 10, and so bob may see it");
    assert_eq!(explained(1).await, (json!("hidden"), open));
    let closed =
        "it stands in the ranking \"picks\" of bob with rank 50, but a ranking opens nothing that is for some alone";
    assert_eq!(explained(5).await, (json!("hidden"), said(false, closed)));
    assert_eq!(explained(2).await.1, Value::Null);
    for shield in ["bob/muted/ann", "ann/hidden/bob", "bob/blocked/ann", "ann/blocked/bob"] {
        server.call(&format!("PUT /v1/users/{shield}"), None).await.expect(204);
        assert_eq!(doors(&server, "bob", 1).await, [404; 6], "{shield}");
        server.call(&format!("DELETE /v1/users/{shield}"), None).await.expect(204);
        assert_eq!(doors(&server, "bob", 1).await, OPEN);
    }
    put(&server, &[(2, 1)]).await;
    assert_eq!((doors(&server, "bob", 1).await, doors(&server, "bob", 2).await), (vec![404; 6], OPEN.to_vec()));
    server.close().await;
}

#[tokio::test]
async fn s11_what_is_wrong_with_a_ranking_is_said_with_its_place() {
    let (server, _dir) = start().await;
    put(&server, &[(1, 10)]).await;
    let many: Value = (1..=1001).map(|id| json!({"id": id.to_string(), "rank": 0})).collect();
    for (feed, body, status, at, said) in [
        ("picks", ranking(&[(1, 2), (9, 1), (8, 1)]), 422, "/1/id", "there is no item 9"),
        ("picks", ranking(&[(1, 2), (2, 1), (1, 3)]), 422, "/2/id", "item 1 stands at /0 already"),
        ("picks", json!([{"id": "1"}]), 422, "/0/rank", "missing"),
        ("picks", json!([{"id": "x", "rank": 1}]), 422, "/0/id", "decimal number"),
        ("picks", json!([{"id": "1", "rank": 1.5}]), 422, "/0/rank", "an integer of 64 bits"),
        ("picks", json!([{"id": "1", "rank": 9_007_199_254_740_992_i64}]), 422, "/0/rank", "9007199254740991"),
        ("picks", json!([7]), 422, "/0", "must be a JSON object"),
        ("picks", json!({"items": []}), 422, "", "this must be a list"),
        ("picks", many, 422, "", "at most 1000 items, this one has 1001"),
        ("likes", json!([]), 400, "feed", "holds what is published for it, so it takes no ranking; feeds with ranked"),
        ("feed", json!([]), 400, "feed", "are \"picks\""),
        ("nope", json!([]), 400, "feed", "there is no feed named \"nope\""),
    ] {
        let call = format!("PUT /v1/users/bob/feeds/{feed}/ranking");
        let refused = server.call(&call, Some(&body.to_string())).await.expect(status).json;
        let place = refused.get("pointer").or(refused.get("field"));
        assert_eq!(place, Some(&json!(at)), "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains(said), "{refused}");
    }
    assert_eq!(server.get(PATH).await.expect(200).json, ranking(&[(1, 10)]), "nothing has changed");
    for (call, key, status) in
        [("GET", "read", 200), ("PUT", "read", 403), ("GET", "publish", 403), ("PUT", "publish", 200)]
    {
        let body = (call == "PUT").then_some("[]");
        server.send(request(&format!("{call} {PATH}"), Some(&key_of(key)), body)).await.expect(status);
    }
    let token = server.token("bob");
    server.send(request(&format!("GET {PATH}"), Some(&token), None)).await.expect(403);
    server.close().await;
}

#[tokio::test]
async fn s11_rankings_go_out_and_come_in_again() {
    let ((from, _dir), dir) = (start().await, tempfile::tempdir().unwrap());
    let to = Server::open_with(dir.path(), feeds()).await;
    put(&from, &[(1, 10), (2, 20), (3, 30)]).await;
    from.call("DELETE /v1/items/2", None).await.expect(204);
    let exported = async |server: &Server| {
        let text = server.get("/v1/export").await.expect(200).text;
        text.lines().filter(|line| !line.contains("\"cursor\"")).map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = exported(&from).await;
    let wanted = json!({"type": "ranking", "user": "bob", "feed": "picks", "ranking": ranking(&[(3, 30), (1, 10)])});
    assert_eq!(serde_json::from_str::<Value>(lines.last().unwrap()).unwrap(), wanted);
    for fresh in [true, false] {
        let report = to.call("POST /v1/import", Some(&lines.join("\n"))).await.expect(200).text;
        assert!(report.contains("\"refused\":0") && report.contains("\"new\":0,") != fresh, "{report}");
    }
    assert_eq!(exported(&to).await, lines);
    assert_eq!(page(&to).await, addressed(&[(3, 30), (1, 10)]));
    let of_user = to.get("/v1/users/bob/export").await.expect(200).text;
    let told: Vec<&str> = of_user.lines().filter(|line| !line.contains("\"session\"")).collect();
    assert_eq!(told, [lines.last().unwrap()], "it says the ranking, and no item of it besides");
    for (line, at) in [
        (json!({"type": "ranking", "user": "bob", "feed": "likes", "ranking": ranking(&[(1, 1)])}), "/feed"),
        (
            json!({"type": "ranking", "user": "bob", "feed": "picks", "ranking": ranking(&[(1, 1), (2, 2)])}),
            "/ranking/1/id",
        ),
        (json!({"type": "ranking", "user": "bob", "feed": "picks", "ranking": [{"id": "1"}]}), "/ranking/0/rank"),
    ] {
        let report = to.call("POST /v1/import", Some(&line.to_string())).await.expect(200).text;
        assert!(report.contains(&format!("\"pointer\":\"{at}\"")), "{report}");
    }
    from.close().await;
    to.close().await;
}
