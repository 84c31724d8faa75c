//! The document and the router agree, both ways; an example of every problem can be fetched.

use std::collections::BTreeSet;

use axum::http::Request;
use serde_json::Value;

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
