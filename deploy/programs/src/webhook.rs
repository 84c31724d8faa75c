//! Calls the webhook that tells of posts to readers who are away. The calls are signed as Standard Webhooks says.
//!
//! ```text
//!   webhook-id, webhook-timestamp, webhook-signature: v1,BASE64(HMAC-SHA256(key, "id.timestamp.body"))
//! ```

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, anyhow, ensure};
use arc_swap::ArcSwap;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use feedgate_common::{DeviceId, Millis, UserId};
use feedgate_gateway::clock;
use feedgate_timeline::Said;
use feedgate_timeline::push::{Answer, Call, Courier};
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, RETRY_AFTER};
use hyper::{Request, Response, StatusCode, Uri, header};
use serde::Deserialize;
use sha2::Sha256;
use tokio::time::timeout;

use crate::outbound::{self, Outbound, Reach};

/// The most bytes that are read of an answer: enough to name all devices of a call, and their longest names.
const ANSWER_MAX_BYTES: usize = 1024 * 1024;

/// The beginning of a key, before the base64 of its bytes.
const PREFIX: &str = "whsec_";

/// How many bytes a key may have, as Standard Webhooks says.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A key that signs calls. It has no `Debug`, so that no log can show it.
#[derive(Clone)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    /// Reads `whsec_` and base64; the error does not show the key.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let bytes = text.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
        let bytes = bytes.with_context(|| format!("the key must be {PREFIX} and base64"))?;
        let (least, most) = (KEY_BYTES.start(), KEY_BYTES.end());
        ensure!(KEY_BYTES.contains(&bytes.len()), "the key must have {least} to {most} bytes, it has {}", bytes.len());
        Ok(Self(bytes))
    }

    /// The text of a new key, from the system's random source.
    pub(crate) fn fresh() -> anyhow::Result<String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|e| anyhow!("the system gave no random bytes: {e}"))?;
        Ok(Self::text(&bytes))
    }

    /// The text of a key with these bytes.
    pub(crate) fn text(bytes: &[u8]) -> String {
        format!("{PREFIX}{}", STANDARD.encode(bytes))
    }

    fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length is one");
        mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// The receiver of all calls.
pub(crate) struct Webhook {
    url: Uri,
    /// The first key signs, and the second key signs too while it replaces the first.
    keys: ArcSwap<Vec<Key>>,
    within: Duration,
    outbound: Outbound,
    unread: Said,
}

impl Webhook {
    /// Makes calls of `url`, each of which must be answered `within` that time; at most `idle` connections are kept.
    /// Fails if the system has no certificates of authorities.
    pub(crate) fn new(url: Uri, keys: Vec<Key>, reach: Reach, within: Duration, idle: usize) -> anyhow::Result<Self> {
        let (keys, outbound) = (ArcSwap::from_pointee(keys), Outbound::new(reach, idle)?);
        Ok(Self { url, keys, within, outbound, unread: Said::default() })
    }

    /// Signs calls with these keys from now on.
    pub(crate) fn sign_by(&self, keys: Vec<Key>) {
        self.keys.store(Arc::new(keys));
    }

    fn request(&self, call: &Call) -> anyhow::Result<Request<Full<Bytes>>> {
        let timestamp = clock::now() / 1000;
        let signatures: Vec<String> =
            self.keys.load().iter().map(|key| key.sign(&call.id, timestamp, &call.body)).collect();
        let request = Request::post(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("feedgate/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", &call.id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signatures.join(" "));
        Ok(request.body(Full::from(call.body.clone()))?)
    }

    /// The answer of the receiver, whose head has come. Notices that were taken stay taken, whatever the body says.
    async fn read(&self, answer: Response<Incoming>) -> Answer {
        let (status, after) = (answer.status(), retry_after(answer.headers(), clock::now()));
        if !status.is_success() {
            return unlike_success(status, after);
        }
        let gone = match timeout(self.within, outbound::body(answer, ANSWER_MAX_BYTES)).await {
            Ok(Ok(body)) => gone(&body),
            Ok(Err(error)) => self.unread(&error),
            Err(late) => self.unread(&late.into()),
        };
        Answer::Took { gone }
    }

    fn unread(&self, error: &anyhow::Error) -> Vec<(UserId, DeviceId)> {
        if let Some(times) = self.unread.due() {
            tracing::warn!(times, "an answer of the webhook could not be read, so no device was taken away: {error:#}");
        }
        vec![]
    }
}

#[async_trait]
impl Courier for Webhook {
    /// The head of the answer must come within the time, and its body within the same time again.
    async fn call(&self, call: &Call) -> Answer {
        let asked = async { self.outbound.send(self.request(call)?).await };
        match timeout(self.within, asked).await {
            Ok(Ok(answer)) => self.read(answer).await,
            Ok(Err(error)) => Answer::Failed { why: format!("{error:#}"), after: None },
            Err(_) => Answer::Failed { why: format!("no answer within {:?}", self.within), after: None },
        }
    }
}

/// The meaning of an answer that is no success.
fn unlike_success(status: StatusCode, after: Option<Duration>) -> Answer {
    const NOT_NOW: [StatusCode; 3] =
        [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    let why = format!("the answer is {status}");
    match status {
        StatusCode::GONE => Answer::Gone,
        status if status.is_redirection() => {
            let why = format!("{why}, and no redirect is followed; set push.webhook_url to where it leads");
            Answer::Failed { why, after }
        }
        status if status.is_client_error() && !NOT_NOW.contains(&status) => Answer::Refused(why),
        _ => Answer::Failed { why, after },
    }
}

/// The devices that an answer names as gone. A body of any other form names none.
fn gone(body: &[u8]) -> Vec<(UserId, DeviceId)> {
    #[derive(Deserialize)]
    struct Taken {
        #[serde(default)]
        gone: Vec<Gone>,
    }
    #[derive(Deserialize)]
    struct Gone {
        user: UserId,
        device: DeviceId,
    }
    let taken: Option<Taken> = serde_json::from_slice(body).ok();
    taken.map_or_else(Vec::new, |taken| taken.gone.into_iter().map(|Gone { user, device }| (user, device)).collect())
}

/// How long `Retry-After` asks to wait: its value is a number of seconds or a date.
fn retry_after(headers: &HeaderMap, now: Millis) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(now).ok()?);
            httpdate::parse_http_date(text).ok()?.duration_since(now).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn a_call_is_signed_as_the_specification_shows() {
        let key = Key::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_call_is_signed_by_each_key_and_by_others_after_an_exchange() {
        let key = |byte| Key(vec![byte; 32]);
        let reach = Reach::Public { but: vec![].into() };
        let url = Uri::from_static("https://push.example/");
        let webhook = Webhook::new(url, vec![key(1)], reach, Duration::from_secs(1), 1).unwrap();
        let call = Call { id: "msg_1".into(), body: "{}".into() };
        let is_signed_by = |keys: &[Key]| {
            let request = webhook.request(&call).unwrap();
            let header = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
            let at = header("webhook-timestamp").parse().unwrap();
            let right: Vec<String> = keys.iter().map(|key| key.sign(&call.id, at, &call.body)).collect();
            header("webhook-signature") == right.join(" ")
        };
        assert!(is_signed_by(&[key(1)]));
        webhook.sign_by(vec![key(2), key(1)]);
        assert!(is_signed_by(&[key(2), key(1)]));
        webhook.sign_by(vec![key(2)]);
        assert!(is_signed_by(&[key(2)]) && !is_signed_by(&[key(1)]));
    }

    #[test]
    fn a_key_that_is_none_is_refused_without_being_shown() {
        for (text, wants) in [
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_ and base64"),
            ("whsec_%%%", "whsec_ and base64"),
            ("whsec_c2hvcnQ=", "24 to 64 bytes, it has 5"),
        ] {
            let error = Key::parse(text).err().unwrap().to_string();
            assert!(error.contains(wants) && !error.contains(text), "{error}");
        }
        assert!(Key::parse(&Key::text(&[7; 32])).is_ok());
    }

    #[test]
    fn each_status_says_what_is_to_be_done() {
        let of = |status: u16| unlike_success(StatusCode::from_u16(status).unwrap(), None);
        assert_eq!(of(410), Answer::Gone);
        for refused in [400, 401, 404, 413, 422] {
            assert!(matches!(of(refused), Answer::Refused(_)), "{refused}");
        }
        for failed in [301, 302, 307, 408, 425, 429, 500, 502, 503] {
            assert!(matches!(of(failed), Answer::Failed { .. }), "{failed}");
        }
    }

    #[test]
    fn an_answer_names_devices_that_are_gone_or_nothing() {
        let named = gone(br#"{"gone":[{"user":"bob","device":"phone","why":"unregistered"}],"more":1}"#);
        assert_eq!(named, [("bob".parse().unwrap(), "phone".parse().unwrap())]);
        for nothing in ["", "ok", "{}", "[]", r#"{"gone":[{"user":"b b","device":"d"}]}"#] {
            assert_eq!(gone(nothing.as_bytes()), []);
        }
    }

    #[tokio::test]
    async fn a_long_answer_is_read_whole() {
        let body = format!(r#"{{"gone":[{{"user":"bob","device":"phone"}}],"more":"{}"}}"#, "x".repeat(70 * 1024));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let webhook = Webhook::new(url.parse().unwrap(), vec![], Reach::All, Duration::from_secs(60), 0).unwrap();
        let answered = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.read_exact(&mut [0; 16]).await.unwrap();
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            stream
        };
        let call = Call { id: "msg_1".into(), body: "{}".into() };
        let (answer, _) = tokio::join!(webhook.call(&call), answered);
        assert_eq!(answer, Answer::Took { gone: vec![("bob".parse().unwrap(), "phone".parse().unwrap())] });
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        // Wed, 21 Oct 2015 07:28:00 GMT
        let now = 1_445_412_480_000;
        let of = |text: &str| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]), now);
        assert_eq!(of("120"), Some(Duration::from_secs(120)));
        assert_eq!(of("Wed, 21 Oct 2015 07:28:09 GMT"), Some(Duration::from_secs(9)));
        assert_eq!([of("soon"), of("Wed, 21 Oct 2015 07:00:00 GMT")], [None, None]);
    }
}
