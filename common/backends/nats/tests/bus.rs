//! What a bad server is refused with, and what a good one must allow.

use feedgate_common::jobs::{Job, Lane};
use feedgate_common::{Jobs, UserNo};
use feedgate_engines::Nats;
use feedgate_nats::{Bus, BusError, NatsJobs, Settings};

async fn refused(url: &str) -> BusError {
    match Bus::connect(url).await {
        Ok(_) => panic!("{url} must be refused"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_named_without_its_password() {
    let mut server = Nats::start();
    Bus::connect(&server.url()).await.unwrap();
    server.kill();
    let url = format!("nats://me:secret@127.0.0.1:{}", server.port());
    let said = refused(&url).await.to_string();
    assert!(said.starts_with(&format!("no connection to nats-server at 127.0.0.1:{}", server.port())), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

/// A server with this configuration, which is read as long as the file lives.
fn configured(config: &str) -> (Nats, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), config).expect("room for it");
    let path = file.path().to_str().expect("a plain path");
    (Nats::start_with(&["--config", path]), file)
}

#[tokio::test]
async fn an_account_without_jetstream_is_told_what_to_set() {
    let (server, _file) = configured(r#"accounts { A { users: [{ user: a, password: "p@ss" }] } }"#);
    let error = refused(&server.url().replace("//", "//a:p%40ss@")).await;
    assert!(matches!(error, BusError::NoJetStream { .. }), "{error}");
    assert!(error.to_string().contains("start nats-server with --jetstream"), "{error}");
}

#[tokio::test]
async fn a_wrong_password_is_told_from_a_server_that_is_away() {
    let (server, _file) = configured(r#"authorization { user: a, password: right }"#);
    let error = refused(&server.url().replace("//", "//a:wrong@")).await;
    assert!(matches!(error, BusError::Unauthorized { .. }), "{error:?}");
    assert!(error.to_string().contains("authorization violation; check user and password"), "{error}");
}

#[tokio::test]
async fn a_right_that_the_user_lacks_is_named_and_is_not_taken_for_a_server_without_jetstream() {
    let (server, _file) = configured(
        r#"accounts { A { jetstream: enabled, users: [{ user: a, password: p, permissions: {
            publish: ["feed.>"], subscribe: ["feed.>", "_INBOX.>"] } }] } }"#,
    );
    let error = refused(&server.url().replace("//", "//a:p@")).await;
    assert!(matches!(error, BusError::Forbidden { .. }) && !error.may_pass(), "{error:?}");
    assert!(error.to_string().contains("Publish to \"$JS.API.INFO\""), "{error}");
}

#[tokio::test]
async fn a_server_without_the_room_that_a_stream_reserves_is_told_what_to_raise() {
    let (server, _file) = configured("jetstream { max_file_store: 64MB }");
    let bus = Bus::connect(&server.url()).await.unwrap();
    let error = NatsJobs::open(bus, Settings::default()).await.err().expect("there is too little room").to_string();
    assert!(error.contains("stream FEED cannot be set up") && error.contains("raise max_file_store"), "{error}");
    assert_eq!(error.matches("insufficient storage").count(), 1, "{error}");
}

/// As `docs/nats.md` has them.
#[tokio::test]
async fn the_documented_permissions_are_enough() {
    let (server, _file) = configured(
        r#"accounts { A { jetstream: enabled, users: [{ user: a, password: p, permissions: {
            publish: ["feed.>", "$JS.API.>", "$JS.ACK.FEED_WORK.>"], subscribe: ["feed.>", "_INBOX.>"] } }] } }"#,
    );
    let bus = Bus::connect(&server.url().replace("//", "//a:p@")).await.unwrap();
    let jobs = NatsJobs::open(bus, Settings::default()).await.unwrap();
    jobs.put(&[Job::FanOut { author: UserNo(1) }]).await.unwrap();
    let delivery = jobs.take(Lane::Posts).await.unwrap();
    jobs.nack(delivery.id).await.unwrap();
    let delivery = jobs.take(Lane::Posts).await.unwrap();
    jobs.ack(delivery.id).await.unwrap();
    assert_eq!(jobs.pending().await.unwrap(), 0);
}
