//! A client of the running server's HTTP API.
//!
//! Invariant: only the answer of a success is passed on; everything else is an [`ApiError`] that a person can act on.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use feedgate_common::{DeviceId, UserId};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::client::legacy;
use serde::Deserialize;
use serde_json::json;

use crate::cli::Server;
use crate::outbound::told;
use crate::reach::{CA, CERTIFICATE, CERTIFICATE_KEY, Http, Reach};
use crate::settings::Settings;
use crate::{data, effective, secrets};

/// The most time for a whole request.
const WITHIN: Duration = Duration::from_secs(30);

/// The most time for an import of some thousand lines. Some lines, such as pins, are a commit each.
const IMPORT_WITHIN: Duration = Duration::from_secs(600);

/// The most bytes of an answer: more than a page of the largest items has.
const ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Why a call did not succeed, with what the caller may do next.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// No server listens at the address, or the connection broke. Another try may succeed later.
    Away(String),
    /// The server refused. Another try may succeed later if `status` is 500 or more, or 429.
    Refused {
        /// The HTTP status; 0 if the answer is not one of a Feedgate server.
        status: u16,
        /// The title and the detail of the problem.
        why: String,
    },
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Away(why) | Self::Refused { why, .. } => f.write_str(why),
        }
    }
}

impl std::error::Error for ApiError {}

impl ApiError {
    /// Whether the same call may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Away(_) => true,
            Self::Refused { status, .. } => *status >= 500 || *status == 429,
        }
    }
}

/// The address of a server, and the API key.
pub(crate) struct Client {
    reach: Reach,
    key: Option<String>,
    http: Http,
}

/// The parts of an RFC 9457 problem that are shown.
#[derive(Deserialize)]
struct Problem {
    title: String,
    detail: String,
}

impl Client {
    /// Finds the server by `--url` and `--key`; the one that is missing is read from the data directory.
    pub(crate) fn find(server: Server) -> anyhow::Result<Self> {
        let settings = match (&server.url, &server.key) {
            (Some(_), Some(_)) => None,
            _ => Some(effective::settings(&server.place)?),
        };
        let settings = || settings.as_ref().expect("read unless both are given");
        let reach = match server.url {
            Some(url) => Reach::new(&url)?,
            None => match data::server_url(&settings().data)? {
                Some(url) => Reach::new(&url).with_context(|| format!("{}/server.url", settings().data.display()))?,
                None => bail!(
                    "no server runs on the data directory {}; start it with: feedgate serve --data {0}, or say where it is with --url",
                    settings().data.display()
                ),
            },
        };
        Self::with_key(reach, server.key, || secrets::api_key(&settings().secrets_dir()))
    }

    /// The server that runs on the data directory of these settings, for a command that needs that directory too.
    pub(crate) fn on(settings: &Settings) -> anyhow::Result<Self> {
        let data = &settings.data;
        let url = data::server_url(data)?.with_context(|| {
            let show = data.display();
            format!("no server runs on the data directory {show}; start it with: feedgate serve --data {show}")
        })?;
        let reach = Reach::new(&url).with_context(|| format!("{}/server.url", data.display()))?;
        Self::with_key(reach, None, || secrets::api_key(&settings.secrets_dir()))
    }

    /// The server with the key that is given, or else with the key that `own` reads.
    fn with_key(
        reach: Reach,
        key: Option<String>,
        own: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<Self> {
        let key = key.map_or_else(own, Ok)?;
        ensure!(!key.is_empty() && key.bytes().all(|b| b.is_ascii_graphic()), "the API key must be printable ASCII");
        Ok(Self::new(reach, Some(key)))
    }

    /// The server at `url`, with this key, or with the key in the directory of the secrets.
    pub(crate) fn at(url: &str, key: Option<String>, secrets_dir: &Path) -> anyhow::Result<Self> {
        Self::with_key(Reach::new(url)?, key, || secrets::api_key(secrets_dir))
    }

    /// Another server with the same key.
    pub(crate) fn elsewhere(&self, url: &str) -> anyhow::Result<Self> {
        Ok(Self::new(Reach::new(url)?, self.key.clone()))
    }

    /// A client without a key, for routes that need none.
    pub(crate) fn anonymous(url: &str) -> anyhow::Result<Self> {
        Ok(Self::new(Reach::new(url)?, None))
    }

    fn new(reach: Reach, key: Option<String>) -> Self {
        Self { http: reach.http(), reach, key }
    }

    /// How the server is reached.
    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Sends a request, and gives the body of a success. `path` is already encoded. If the future is dropped, a write
    /// may or may not have happened.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<String, ApiError> {
        self.call_within(WITHIN, method, path, body).await
    }

    /// Sends lines to be imported, as `call` does.
    pub(crate) async fn import(&self, lines: Bytes) -> Result<String, ApiError> {
        self.call_within(IMPORT_WITHIN, Method::POST, "/v1/import", Some(lines)).await
    }

    async fn call_within(
        &self,
        within: Duration,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<String, ApiError> {
        let away = |error: &dyn std::fmt::Display| ApiError::Away(format!("{}: {error}", self.reach.url()));
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.reach.url()))
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request.body(Full::new(body.unwrap_or_default())).map_err(|error| away(&error))?;
        let exchange = async {
            let response = self.http.request(request).await.map_err(|error| self.unreached(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_MAX_BYTES).collect().await;
            let text = String::from_utf8_lossy(&body.map_err(|error| away(&error))?.to_bytes()).into_owned();
            if status.is_success() { Ok(text) } else { Err(refusal(status.as_u16(), &text)) }
        };
        match tokio::time::timeout(within, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(away(&format_args!("no answer within {} s", within.as_secs()))),
        }
    }

    /// The error for a request that has no answer.
    fn unreached(&self, error: &legacy::Error) -> ApiError {
        let url = self.reach.url();
        ApiError::Away(match error.is_connect() {
            true if !url.starts_with("https:") => {
                format!("no server answers at {url}; is it started, and is this its address?")
            }
            // The cause says whether a certificate is wrong.
            _ => {
                let why = told(error);
                format!("{url}: {why}{}", what_to_do(&why, url.starts_with("https:")))
            }
        })
    }

    /// Reads a long answer, and gives each part of a success to `take` as it comes.
    pub(crate) async fn stream(
        &self,
        path: &str,
        mut take: impl FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let away = |error: &dyn std::fmt::Display| ApiError::Away(format!("{}: {error}", self.reach.url()));
        let mut request = Request::builder().uri(format!("{}{path}", self.reach.url()));
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request.body(Full::default()).map_err(|error| away(&error))?;
        let in_time = |_| away(&format_args!("no answer within {} s", WITHIN.as_secs()));
        let asked = tokio::time::timeout(WITHIN, self.http.request(request)).await;
        let response = asked.map_err(in_time)?.map_err(|error| self.unreached(&error))?;
        let status = response.status();
        let mut body = response.into_body();
        if !status.is_success() {
            let body = Limited::new(body, ANSWER_MAX_BYTES).collect().await.map_err(|error| away(&error))?;
            return Err(refusal(status.as_u16(), &String::from_utf8_lossy(&body.to_bytes())).into());
        }
        while let Some(frame) = tokio::time::timeout(WITHIN, body.frame()).await.map_err(in_time)? {
            if let Ok(bytes) = frame.map_err(|error| away(&error))?.into_data() {
                take(&bytes)?;
            }
        }
        Ok(())
    }

    /// Gets a token for a user's device.
    pub(crate) async fn token(
        &self,
        user: &UserId,
        device: Option<&DeviceId>,
        ttl: Duration,
    ) -> Result<String, ApiError> {
        #[derive(Deserialize)]
        struct Minted {
            token: String,
        }
        let mut ask = json!({ "ttl": ttl.as_secs() });
        if let Some(device) = device {
            ask["device_id"] = device.as_str().into();
        }
        let answer = self.call(Method::POST, &format!("/v1/users/{user}/token"), Some(ask.to_string().into())).await?;
        serde_json::from_str::<Minted>(&answer).map(|minted| minted.token).map_err(|error| strange(&error))
    }
}

/// The error for an answer that no Feedgate server gives.
pub(crate) fn strange(error: &serde_json::Error) -> ApiError {
    ApiError::Refused { status: 0, why: format!("the answer is not that of a feedgate server: {error}") }
}

fn refusal(status: u16, text: &str) -> ApiError {
    let why = match serde_json::from_str::<Problem>(text) {
        Ok(Problem { title, detail }) => format!("{title}: {detail}"),
        Err(_) => format!("HTTP status {status} without an explanation; is this a feedgate server?"),
    };
    ApiError::Refused { status, why }
}

/// What a person may do about a connection that failed for this reason; empty if the reason says enough.
fn what_to_do(why: &str, by_tls: bool) -> String {
    match by_tls {
        false if why.contains("invalid HTTP version") => {
            "; if the server has TLS there, its URL begins with https://".to_owned()
        }
        true if why.contains("InvalidContentType") => {
            "; if the server has no TLS there, its URL begins with http://".to_owned()
        }
        true if why.contains("UnknownIssuer") => {
            format!("; let {CA} name the file of the authority that the server's certificate is from")
        }
        true if why.to_lowercase().replace(' ', "").contains("certificaterequired") => {
            format!("; let {CERTIFICATE} and {CERTIFICATE_KEY} name the files of a certificate that the server takes")
        }
        _ => String::new(),
    }
}

/// Encodes a text as the value of a query parameter.
pub(crate) fn query(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_problem_is_told_by_title_and_detail() {
        let ApiError::Refused { status, why } = refusal(404, r#"{"title":"Not found","detail":"no item 7","x":1}"#)
        else {
            unreachable!()
        };
        assert_eq!((status, why.as_str()), (404, "Not found: no item 7"));
        assert!(refusal(502, "<html>").to_string().contains("HTTP status 502"));
    }

    /// The error of a client with this scheme at a server that answers everything with these bytes.
    async fn error_at(scheme: &str, answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_u8().await.unwrap();
            stream.write_all(answer).await.unwrap();
            // Until the client has given up: a reset could overtake the answer.
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.unwrap();
        });
        let client = Client::anonymous(&url).unwrap();
        let said = client.call(Method::GET, "/readyz", None).await.unwrap_err().to_string();
        drop(client);
        served.await.unwrap();
        said
    }

    #[tokio::test]
    async fn a_client_with_the_wrong_scheme_is_told_the_other_one() {
        // An alert of TLS, and an answer of HTTP.
        let by_http = error_at("http", &[21, 3, 3, 0, 2, 2, 10]).await;
        assert!(by_http.ends_with("if the server has TLS there, its URL begins with https://"), "{by_http}");
        let by_tls = error_at("https", b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
        assert!(by_tls.ends_with("if the server has no TLS there, its URL begins with http://"), "{by_tls}");
    }

    #[test]
    fn a_query_value_is_encoded() {
        assert_eq!(query("a-1_b.~ &=/ü"), "a-1_b.~%20%26%3D%2F%C3%BC");
    }
}
