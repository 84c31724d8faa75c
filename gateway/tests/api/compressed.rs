//! Pages that are compressed for a caller that asks for it.

use std::io::Read;

use axum::body::Body;
use axum::http::{Request, header};
use flate2::read::GzDecoder;
use http_body_util::BodyExt;

use crate::server::{API_KEY, Server, request};

/// What a page of ann's outbox with these items is answered with: `Content-Encoding`, `Vary` and the bytes.
async fn outbox(server: &Server, limit: usize, accepted: Option<&str>) -> (Option<String>, String, Vec<u8>) {
    let mut asked: Request<Body> = request(&format!("GET /v1/users/ann/outbox?limit={limit}"), Some(API_KEY), None);
    if let Some(accepted) = accepted {
        asked.headers_mut().insert(header::ACCEPT_ENCODING, accepted.parse().unwrap());
    }
    let answer = server.begin(asked).await;
    let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (coding, vary) = (header("content-encoding"), header("vary").unwrap_or_default());
    (coding, vary, answer.into_body().collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test]
async fn a_page_is_compressed_for_a_caller_that_asks_and_says_the_same() {
    let (server, _dir) = Server::start().await;
    for n in 0..20 {
        server.publish("ann", &format!("post {n} of a person who writes about the same things every day")).await;
    }
    let (coding, vary, plain) = outbox(&server, 20, None).await;
    assert_eq!((coding, &*vary), (None, "Accept-Encoding"));
    let (coding, vary, compressed) = outbox(&server, 20, Some("br, gzip")).await;
    assert_eq!((coding.as_deref(), &*vary), (Some("gzip"), "Accept-Encoding"));
    let mut whole = Vec::new();
    GzDecoder::new(&*compressed).read_to_end(&mut whole).unwrap();
    assert_eq!(String::from_utf8(whole).unwrap(), String::from_utf8(plain.clone()).unwrap());
    assert!(compressed.len() * 3 < plain.len(), "{} of {} bytes", compressed.len(), plain.len());
    let (coding, _, small) = outbox(&server, 1, Some("gzip")).await;
    assert_eq!((coding, small[0]), (None, b'{'), "one item fits a packet as it is");
    server.close().await;
}
