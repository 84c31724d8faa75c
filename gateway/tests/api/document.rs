//! The document and the router agree, both ways; an example of every problem can be fetched.

use std::collections::BTreeSet;

use axum::http::Request;
use regex::Regex;
use serde_json::{Value, json};

use crate::server::{API_KEY, Server, request};

const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

/// A path of the document with its open segments filled.
pub(crate) fn filled(template: &str) -> String {
    let fill = [
        ("{user}", "ann"),
        ("{author}", "bob"),
        ("{id}", "1"),
        ("{device}", "d"),
        ("{other}", "eve"),
        ("{list}", "close"),
        ("{member}", "eve"),
        ("{name}", "gone"),
        ("{kind}", "like"),
        ("{comment}", "5"),
        ("{feed}", "picks"),
        ("{reader}", "bob"),
    ];
    fill.into_iter().fold(template.to_owned(), |path, (open, value)| path.replace(open, value))
}

/// Every (method, path) of the document.
pub(crate) fn operations(server: &Server) -> Vec<(String, String, &Value)> {
    let paths = server.document()["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(template, item)| {
            METHODS.iter().filter_map(move |m| Some((m.to_uppercase(), filled(template), item.get(*m)?)))
        })
        .collect()
}

#[tokio::test]
async fn every_path_takes_exactly_the_documented_methods() {
    let (server, _dir) = Server::start().await;
    for (template, item) in server.document()["paths"].as_object().unwrap() {
        let refused = server.call(&format!("TRACE {}", filled(template)), None).await.expect(405);
        let allowed: BTreeSet<&str> = refused.header("allow").split(',').filter(|m| *m != "HEAD").collect();
        let methods = METHODS.iter().filter(|m| item.get(**m).is_some());
        let documented: Vec<String> = methods.map(|m| m.to_uppercase()).collect();
        assert_eq!(allowed, documented.iter().map(|m| &**m).collect(), "{template}");
        assert!(refused.json["detail"].as_str().unwrap().contains("does not take TRACE"), "{}", refused.text);
    }
    server.close().await;
}

#[tokio::test]
async fn no_route_takes_an_unknown_query_parameter() {
    let (server, _dir) = Server::start().await;
    for (method, path, _) in operations(&server) {
        let body = (method != "GET").then_some("{}");
        let answer = server.call(&format!("{method} {path}?surprise=1"), body).await.expect(400);
        assert_eq!(answer.json["field"], "surprise", "{method} {path}: {}", answer.text);
    }
    server.close().await;
}

#[tokio::test]
async fn the_served_document_is_the_document() {
    let (server, _dir) = Server::start().await;
    let served = server.send(request("GET /openapi.json", None, None)).await.expect(200);
    assert_eq!(served.json, *server.document());
    server.close().await;
}

#[tokio::test]
async fn every_reference_in_the_document_leads_somewhere() {
    fn walk<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| walk(member, found));
            }
            Value::Array(entries) => entries.iter().for_each(|entry| walk(entry, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document: Value = serde_json::from_str(include_str!("../../../docs/openapi.json")).unwrap();
    let mut references = Vec::new();
    walk(&document, &mut references);
    assert!(references.len() > 100);
    for reference in references {
        assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn every_problem_type_explains_itself_and_an_unknown_path_is_a_problem() {
    let (server, _dir) = Server::start().await;
    let types = &server.document()["components"]["schemas"]["Problem"]["properties"]["type"]["enum"];
    for path in types.as_array().unwrap() {
        let about = server.send(request(&format!("GET {}", path.as_str().unwrap()), None, None)).await.expect(200);
        assert_eq!(about.json["type"], *path);
    }
    server.get("/problems/none").await.expect(404);
    for path in ["/", "/v1", "/v1/items/", "/v1/items/1/2", "/v1/users/ann/likes/bob", "/metric"] {
        let answer = server.send(Request::get(path).header("authorization", API_KEY).body("".into()).unwrap()).await;
        assert_eq!((answer.status, &answer.json["type"]), (404, &"/problems/no-such-route".into()), "{path}");
    }
    server.close().await;
}

/// The pattern at this JSON pointer of the document.
fn pattern(server: &Server, pointer: &str) -> Regex {
    let found = server.document().pointer(pointer).and_then(Value::as_str);
    Regex::new(found.unwrap_or_else(|| panic!("no pattern at {pointer}"))).unwrap()
}

#[tokio::test]
async fn the_patterns_of_the_document_refuse_the_texts_that_the_server_refuses() {
    let (server, _dir) = Server::start().await;
    server.post("/v1/items", json!({"author": "ann", "body": 1, "id": "5"})).await.expect(201);
    let item = |field: &str, text: &str| ("POST /v1/items", json!({"author": "ann", "body": 1, field: text}));
    let device = |text: &str| ("PUT /v1/users/bob/devices/d", json!({"platform": "fcm", "push_token": text}));
    let reaction = |text: &str| {
        let add = json!({"op": "add", "item": "5", "kind": text, "user": "bob"});
        ("POST /v1/reactions/batch", json!({"ops": [add]}))
    };
    let on_item = |text: &str| {
        let remove = json!({"op": "remove", "item": text, "kind": "like", "user": "bob"});
        ("POST /v1/reactions/batch", json!({"ops": [remove]}))
    };
    type Asked<'a> = &'a dyn Fn(&str) -> (&'static str, Value);
    let schemas = "/components/schemas";
    let cases: [(&str, Asked<'_>, &str); 6] = [
        ("Publish/properties/kind", &|text| item("kind", text), "lik\u{e9}"),
        ("Publish/properties/foreign_id", &|text| item("foreign_id", text), "posts/42 \u{5c0f}"),
        ("PutPerson/properties/name", &|text| ("PUT /v1/users/bob", json!({"name": text})), "B \u{2764}"),
        ("RegisterDevice/properties/push_token", &device, "t\u{a0}t"),
        ("ReactionKind", &reaction, "lik\u{e9}"),
        ("ReactionsBatch/properties/ops/items/properties/item", &on_item, "5"),
    ];
    for (place, asked, good) in cases {
        let reference = server.document().pointer(&format!("{schemas}/{place}/$ref")).and_then(Value::as_str);
        let schema = reference.map_or(format!("{schemas}/{place}"), |reference| reference[1..].to_owned());
        let pattern = pattern(&server, &format!("{schema}/pattern"));
        for (text, taken) in [(good, true), ("a\nb", false), ("a\u{7f}b", false), ("a\u{85}b", false)] {
            let (what, body) = asked(text);
            let answer = server.call(what, Some(&body.to_string())).await;
            let done = answer.json["results"][0]["status"].as_u64().unwrap_or(answer.status.into());
            assert_eq!((done < 400, pattern.is_match(text)), (taken, taken), "{place} {text:?}: {}", answer.text);
        }
    }
    server.close().await;
}

#[tokio::test]
async fn the_cursors_that_lists_give_are_of_the_patterns_of_the_document() {
    let (server, _dir) = Server::start().await;
    server.post("/v1/items", json!({"author": "ann", "body": "there", "id": "5"})).await.expect(201);
    for user in ["bob", "eve"] {
        server.post("/v1/items/5/comments", json!({"author": user, "body": 1})).await.expect(201);
        server.call(&format!("PUT /v1/items/5/reactions/like/{user}"), None).await.expect(200);
        server.post("/v1/items", json!({"author": user, "body": 1, "ref": "5"})).await.expect(201);
        server.follow(user, "ann").await;
    }
    let of = |server: &Server, path: &str, name: &str| {
        let parameters = server.document()["paths"][path]["get"]["parameters"].as_array().unwrap().clone();
        let resolved = parameters.into_iter().map(|parameter| match parameter["$ref"].as_str() {
            Some(reference) => server.document().pointer(&reference[1..]).unwrap().clone(),
            None => parameter,
        });
        let found = resolved.into_iter().find(|parameter| parameter["name"] == name).unwrap();
        Regex::new(found["schema"]["pattern"].as_str().unwrap()).unwrap()
    };
    for (path, list) in [
        ("/v1/items/{id}/comments", "/v1/items/5/comments"),
        ("/v1/items/{id}/reactions", "/v1/items/5/reactions"),
        ("/v1/items/{id}/reposts", "/v1/items/5/reposts"),
        ("/v1/users/{user}/followers", "/v1/users/ann/followers"),
    ] {
        let pattern = of(&server, path, "cursor");
        let page = server.get(&format!("{list}?limit=1")).await.expect(200).json;
        let next = page["next"].as_str().unwrap();
        assert!(pattern.is_match(next) && !pattern.is_match(""), "{path}: {next}");
        server.get(&format!("{list}?limit=1&cursor={next}")).await.expect(200);
    }
    server.close().await;
}
