//! The tickets and the sessions of the console.

use crate::server::{API_KEY, Server, request};

#[tokio::test]
async fn a_ticket_opens_one_session_and_its_key_opens_what_the_api_key_opens() {
    let (server, _dir) = Server::start().await;
    let made = server.call("POST /v1/console/ticket", None).await.expect(200);
    assert_eq!(made.header("cache-control"), "no-store");
    let ticket = made.json["ticket"].as_str().unwrap();
    let with = |credential, what: &str| server.send(request(what, Some(credential), None));

    with(ticket, "GET /v1/stats").await.expect(401);
    with(ticket, "POST /v1/console/session?surprise=1").await.expect(400);
    let opened = with(ticket, "POST /v1/console/session").await.expect(200);
    assert_eq!(opened.header("cache-control"), "no-store");
    let again = with(ticket, "POST /v1/console/session").await.expect(401);
    assert!(again.json["detail"].as_str().unwrap().contains("feedgate console"), "{}", again.text);

    let key = opened.json["key"].as_str().unwrap();
    assert_ne!(key, ticket);
    with(key, "GET /v1/stats").await.expect(200);
    with(key, "PUT /v1/users/bob/following/ann").await.expect(204);
    server.close().await;
}

#[tokio::test]
async fn of_two_who_bring_a_ticket_at_once_one_gets_in() {
    let (server, _dir) = Server::start().await;
    for _ in 0..20 {
        let made = server.call("POST /v1/console/ticket", None).await.expect(200);
        let ticket = made.json["ticket"].as_str().unwrap();
        let enter = || server.send(request("POST /v1/console/session", Some(ticket), None));
        let (one, other) = tokio::join!(enter(), enter());
        assert_eq!(one.status.min(other.status), 200);
        assert_eq!(one.status.max(other.status), 401);
    }
    server.close().await;
}

#[tokio::test]
async fn neither_ticket_nor_key_opens_anything_on_a_readers_port() {
    let (server, _dir) = Server::start().await;
    let ticket = server.call("POST /v1/console/ticket", None).await.expect(200).json["ticket"].clone();
    let ticket = ticket.as_str().unwrap();
    assert_eq!(server.on_a_readers_port(request("POST /v1/console/session", Some(ticket), None)).await, 404);
    let opened = server.send(request("POST /v1/console/session", Some(ticket), None)).await.expect(200);
    let key = opened.json["key"].as_str().unwrap();
    assert_eq!(server.on_a_readers_port(request("GET /v1/stats", Some(key), None)).await, 404);
    assert_eq!(server.on_a_readers_port(request("GET /v1/users/bob/feed", Some(key), None)).await, 401);
    assert_eq!(server.on_a_readers_port(request("GET /v1/users/bob/feed", Some(API_KEY), None)).await, 401);
    server.close().await;
}
