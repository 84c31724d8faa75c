//! What a bad server is refused with.

use feedgate_engines::Nats;
use feedgate_nats::{Bus, BusError};

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

#[tokio::test]
async fn an_account_without_jetstream_is_told_what_to_set() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "accounts { A { users: [{ user: a, password: \"p@ss\" }] } }").unwrap();
    let server = Nats::start_with(&["--config", config.path().to_str().unwrap()]);
    let error = refused(&server.url().replace("//", "//a:p%40ss@")).await;
    assert!(matches!(error, BusError::NoJetStream { .. }), "{error}");
    assert!(error.to_string().contains("start nats-server with --jetstream"), "{error}");
}
