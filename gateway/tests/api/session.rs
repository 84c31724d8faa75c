//! How a session begins by HTTP, and what `/emulation` takes, up to where the session's task takes over.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;

use crate::server::{API_KEY, Server, request};

const BEGIN: &str = r#"{"id":1,"connect":{"token":"t"}}"#;

#[tokio::test]
async fn an_answer_that_carries_a_session_is_neither_kept_nor_held_back_on_its_way() {
    let (server, _dir) = Server::start().await;
    for (what, body, content_type) in [
        ("POST /connection/http_stream", Some(BEGIN), "application/json"),
        ("GET /connection/sse?cf_connect=%7B%7D", None, "text/event-stream; charset=utf-8"),
    ] {
        let answer = server.send(request(what, None, body)).await.expect(200);
        let headers = ["content-type", "cache-control", "x-accel-buffering"].map(|name| answer.header(name).to_owned());
        assert_eq!(headers, [content_type, "no-cache, no-store, no-transform", "no"], "{what}");
    }
    let protobuf = Request::post("/connection/http_stream").header(header::CONTENT_TYPE, "application/octet-stream");
    let answer = server.send(protobuf.body(Body::from(&b"\x02\x08\x01"[..])).unwrap()).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/octet-stream");
    server.close().await;
}

#[tokio::test]
async fn a_session_begins_with_commands_of_at_most_16_kib() {
    let (server, _dir) = Server::start().await;
    let (full, more) = ("x".repeat(16_384), "x".repeat(16_385));
    server.send(request("POST /connection/http_stream", None, Some(&full))).await.expect(200);
    server.send(request(&format!("GET /connection/sse?cf_connect={full}"), None, None)).await.expect(200);
    server.send(request("POST /connection/http_stream", None, Some(&more))).await.expect(413);
    let unfit = ["", "?cf_connect=", &format!("?cf_connect={more}")].map(str::to_owned);
    for query in unfit {
        let answer = server.send(request(&format!("GET /connection/sse{query}"), None, None)).await.expect(400);
        assert_eq!(answer.json["field"], "cf_connect", "{query}");
    }
    let untyped = Request::post("/connection/http_stream").body(Body::from(BEGIN)).unwrap();
    server.send(untyped).await.expect(415);
    server.close().await;
}

#[tokio::test]
async fn who_only_listens_shows_a_token_in_the_header_or_in_the_query_and_comes_back_to_a_position() {
    let (server, _dir) = Server::start().await;
    let token = server.token("ann");
    let listen = |query: &str, bearer| request(&format!("GET /connection/uni_sse{query}"), bearer, None);
    let own = format!("?cf_connect=%7B%22token%22:%22{token}%22%7D");
    server.send(listen("", Some(&token))).await.expect(200);
    server.send(listen(&own, None)).await.expect(200);
    server.send(listen("", None)).await.expect(401);
    server.send(listen("", Some("forged"))).await.expect(401);
    let key = server.send(listen("", Some(API_KEY))).await.expect(401);
    assert!(key.text.contains("a session begins with a reader's token"), "{}", key.text);
    server.send(listen("?cf_connect=%7B%22token%22:%22forged%22%7D", Some(&token))).await.expect(401);
    for (query, field) in [("?cf_connect=x", "cf_connect"), ("?offset=1", "epoch")] {
        let answer = server.send(listen(query, Some(&token))).await.expect(400);
        assert_eq!(answer.json["field"], field, "{query}");
    }
    server.send(listen("?name=none", Some(&token))).await.expect(404);
    for (id, status) in [("2:17", 200), ("", 200), ("17", 400), ("x:1", 400)] {
        let mut asked = listen("", Some(&token));
        asked.headers_mut().insert("last-event-id", id.parse().unwrap());
        server.send(asked).await.expect(status);
    }
    server.close().await;
}

#[tokio::test]
async fn what_is_sent_to_no_session_of_this_installation_is_404_whatever_node_it_names() {
    let (server, _dir) = Server::start().await;
    let signature = "A".repeat(43);
    for session in ["", "1", "node-1", &format!("{:032x}.{signature}", 7)] {
        for node in ["node", "other", ""] {
            let asked = json!({"session": session, "node": node, "data": "{}"}).to_string();
            let answer = server.send(request("POST /emulation", None, Some(&asked))).await.expect(404);
            assert!(!answer.text.contains(&signature), "the id is a credential: {}", answer.text);
        }
    }
    server.send(request("POST /emulation", None, Some("{}"))).await.expect(400);
    server.close().await;
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_begin_a_session_and_send_to_it() {
    let (server, _dir) = Server::start().await;
    for (path, method) in [("/connection/http_stream", "POST"), ("/connection/sse", "GET"), ("/emulation", "POST")] {
        let asked = Request::options(path)
            .header(header::ORIGIN, "https://app.example")
            .header(header::ACCESS_CONTROL_REQUEST_METHOD, method)
            .header(header::ACCESS_CONTROL_REQUEST_HEADERS, "content-type");
        let answer = server.send(asked.body(Body::empty()).unwrap()).await.expect(204);
        let named =
            ["methods", "headers"].map(|what| answer.header(&format!("access-control-allow-{what}")).to_owned());
        assert_eq!(named, [method, "Content-Type"], "{path}");
    }
    server.close().await;
}

#[tokio::test]
async fn where_a_session_begins_with_get_no_other_method_is_allowed() {
    let (server, _dir) = Server::start().await;
    let token = server.token("bob");
    for path in ["/connection/sse?cf_connect=%7B%7D", "/connection/uni_sse"] {
        for method in ["HEAD", "OPTIONS", "POST"] {
            let refused = server.begin(request(&format!("{method} {path}"), Some(&token), None)).await;
            let allow = refused.headers()["allow"].to_str().unwrap();
            assert_eq!((refused.status().as_u16(), allow), (405, "GET"), "{method} {path}");
        }
    }
    server.close().await;
}
