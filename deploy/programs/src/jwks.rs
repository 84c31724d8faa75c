//! Fetches the keys that the signer of readers' tokens publishes as a JWKS, for as long as the process runs.
//!
//! ```text
//!   every REFRESH, or sooner when a token names a key that is not known ──▶ GET ──▶ the gateway uses the new set
//!                                                                            └ failed ──▶ the last good set serves on,
//!                                                                                         for STALE_MAX at most
//! ```
//!
//! Invariants: only the host of the settings is asked, and no redirect is followed. Two fetches are at least PAUSE
//! apart, however many tokens name unknown keys. Time and size of an answer are bounded.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use feedgate_gateway::KeySet;
use feedgate_gateway::auth::Verifier;
use http_body_util::Full;
use hyper::{Request, StatusCode, Uri, header};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::outbound::{self, Outbound, Reach};

/// How long a set is used before it is fetched again.
const REFRESH: Duration = Duration::from_secs(300);

/// The least time between two fetches.
const PAUSE: Duration = Duration::from_secs(5);

/// The longest time between two fetches while they fail.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long the last good set is used if no other can be fetched: a key that was withdrawn must not serve for ever.
const STALE_MAX: Duration = Duration::from_secs(24 * 3600);

/// The most time for a whole fetch.
const WITHIN: Duration = Duration::from_secs(10);

/// The most bytes of a set.
const SET_MAX_BYTES: usize = 256 * 1024;

/// Fetches the set of `source` for `verifier` until `stop`. Never fails: a failed fetch is logged and tried again.
pub(crate) async fn keep(verifier: Arc<Verifier>, source: Source, stop: CancellationToken) -> anyhow::Result<()> {
    // Until the first set has come, a client with a token of an unknown key is told to try again.
    verifier.publish(None);
    tokio::select! {
        () = stop.cancelled() => {}
        () = keep_fetching(&verifier, &source) => {}
    }
    Ok(())
}

async fn keep_fetching(verifier: &Verifier, source: &Source) {
    let (mut fetched, mut pause) = (Instant::now(), PAUSE);
    loop {
        match source.fetch().await {
            Ok(set) => {
                tracing::info!(url = %source.url, keys = set.count(), left_out = ?set.left_out(), "the keys of tokens were fetched");
                verifier.publish(Some(&set));
                (fetched, pause) = (Instant::now(), PAUSE);
                sleep(PAUSE).await;
                // A token may have named an unknown key before this fetch too; then one more fetch brings nothing new.
                let _ = timeout(REFRESH - PAUSE, verifier.unknown_key()).await;
            }
            Err(error) => {
                tracing::warn!(url = %source.url, "the keys of tokens could not be fetched: {error:#}");
                if fetched.elapsed() > STALE_MAX {
                    verifier.publish(None);
                }
                sleep(pause).await;
                pause = PAUSE_MAX.min(2 * pause);
            }
        }
    }
}

/// The URL at which a set is published, and the client that fetches it.
pub(crate) struct Source {
    url: Uri,
    outbound: Outbound,
}

impl Source {
    /// Fails if the system has no certificates of authorities.
    pub(crate) fn new(url: Uri) -> anyhow::Result<Self> {
        Ok(Self { url, outbound: Outbound::new(Reach::All, 0)? })
    }

    async fn fetch(&self) -> anyhow::Result<KeySet> {
        let text = timeout(WITHIN, self.get()).await.with_context(|| format!("no answer within {WITHIN:?}"))??;
        KeySet::parse(&text).map_err(anyhow::Error::msg)
    }

    async fn get(&self) -> anyhow::Result<String> {
        let request = Request::get(&self.url).header(header::ACCEPT, "application/jwk-set+json, application/json");
        let answer = self.outbound.send(request.body(Full::default())?).await?;
        match answer.status() {
            StatusCode::OK => {}
            status if status.is_redirection() => {
                bail!("the answer is {status}, and no redirect is followed; give the URL that it leads to")
            }
            status => bail!("the answer is {status}"),
        }
        let text = String::from_utf8(outbound::body(answer, SET_MAX_BYTES).await?.into());
        ensure!(text.is_ok(), "the answer is no UTF-8");
        Ok(text?)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const SET: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

    /// What is made of this answer to the one request that is served.
    async fn fetched(head: &str, body: &str) -> Result<usize, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks.json", listener.local_addr().unwrap()).parse().unwrap();
        let answer = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
            }
            // A client that has read enough may be gone by then.
            let _ = stream.write_all(answer.as_bytes()).await;
        });
        let set = Source::new(url).unwrap().fetch().await;
        serving.await.unwrap();
        set.map(|set| set.count()).map_err(|error| format!("{error:#}"))
    }

    #[tokio::test]
    async fn a_set_is_fetched_and_any_other_answer_says_what_is_wrong() {
        assert_eq!(fetched("200 OK", SET).await, Ok(1));
        for (head, body, wants) in [
            ("302 Found\r\nlocation: http://elsewhere.example/", "", "no redirect is followed"),
            ("404 Not Found", SET, "404"),
            ("200 OK", "<html>", "no JWKS"),
            ("200 OK", &" ".repeat(SET_MAX_BYTES + 1), "at most 262144 bytes"),
        ] {
            let error = fetched(head, body).await.unwrap_err();
            assert!(error.contains(wants), "{error}");
        }
    }
}
