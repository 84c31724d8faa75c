//! A backup as a request; `tests/journeys` has the commands, and what becomes of one.

use crate::server::{API_KEY, Server, request};

#[tokio::test]
async fn i18_there_is_one_backup_at_a_time_and_its_place_is_given_back_when_its_client_goes() {
    let (server, _dir) = Server::start().await;
    let ask = || request("GET /v1/backup", Some(API_KEY), None);
    let unread = server.begin(ask()).await;
    let second = server.send(ask()).await.expect(503);
    assert!(second.text.contains("another backup is being made"), "{}", second.text);
    drop(unread);
    for _ in 0..2 {
        server.send(ask()).await.expect(200);
    }
    server.close().await;
}
