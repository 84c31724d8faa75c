//! Tokens that are revoked open nothing by HTTP, and never do again.

use feedgate_gateway::clock;
use jsonwebtoken::{EncodingKey, Header};
use serde_json::json;

use crate::server::{Server, TOKEN_KEY, request};

/// A token of bob with this `iat`, if any.
fn signed(iat: Option<i64>) -> String {
    let mut claims = json!({"sub": "bob", "exp": clock::now() / 1000 + 600});
    if let Some(iat) = iat {
        claims["iat"] = json!(iat);
    }
    jsonwebtoken::encode(&Header::default(), &claims, &EncodingKey::from_secret(TOKEN_KEY)).unwrap()
}

async fn opens(server: &Server, token: &str) -> bool {
    let answer = server.send(request("GET /v1/users/bob/feed", Some(token), None)).await;
    if answer.status == 401 {
        assert!(answer.text.contains("revoked; get a new one from your backend"), "{}", answer.text);
        return false;
    }
    answer.expect(200);
    true
}

#[tokio::test]
async fn what_was_issued_before_a_revocation_is_refused_and_what_comes_after_is_not() {
    let (server, dir) = Server::start().await;
    let now = clock::now() / 1000;
    let (minted, dated, undated) = (server.token("bob"), signed(Some(now - 10)), signed(None));
    let others = server.token("eve");
    for token in [&minted, &dated, &undated] {
        assert!(opens(&server, token).await, "nothing is revoked yet");
    }
    server.call("POST /v1/users/bob/revoke", None).await.expect(204);
    let refused = server.send(request("GET /v1/users/bob/feed", Some(&undated), None)).await.expect(401);
    assert!(refused.text.contains("the token has no iat"), "no other token without one opens it: {}", refused.text);
    let new = server.token("bob");
    let all_as_it_should_be = async |server: &Server| {
        for token in [&minted, &dated, &undated] {
            assert!(!opens(server, token).await);
        }
        assert!(opens(server, &new).await);
        server.send(request("GET /v1/users/eve/feed", Some(&others), None)).await.expect(200);
    };
    all_as_it_should_be(&server).await;
    server.close().await;
    let again = Server::open(dir.path()).await;
    all_as_it_should_be(&again).await;
    again.close().await;
}

#[tokio::test]
async fn a_user_who_was_never_seen_can_be_revoked_and_a_second_revocation_refuses_more() {
    let (server, _dir) = Server::start().await;
    let first = server.token("bob");
    server.call("POST /v1/users/bob/revoke", None).await.expect(204);
    let second = server.token("bob");
    assert!(!opens(&server, &first).await && opens(&server, &second).await);
    server.call("POST /v1/users/bob/revoke", None).await.expect(204);
    assert!(!opens(&server, &second).await && opens(&server, &server.token("bob")).await);
    server.close().await;
}
