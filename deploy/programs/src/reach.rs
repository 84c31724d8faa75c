//! How commands reach a server: by TCP alone, or by TLS.
//!
//! For `https://` three variables of the environment name files in PEM: `FEEDGATE_CA` the authorities that the server's
//! certificate is checked with (by default, those of the system), and `FEEDGATE_CERTIFICATE` with
//! `FEEDGATE_CERTIFICATE_KEY` the certificate for a server that asks for one.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use feedgate_tls::pem;
use http_body_util::Full;
use hyper::Uri;
use hyper::body::Bytes;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::outbound::{is_without_user, shown};

/// The variable that names the authorities of the server.
pub(crate) const CA: &str = "FEEDGATE_CA";

/// The variable that names the certificate to show to a server.
pub(crate) const CERTIFICATE: &str = "FEEDGATE_CERTIFICATE";

/// The variable that names the private key of the certificate.
pub(crate) const CERTIFICATE_KEY: &str = "FEEDGATE_CERTIFICATE_KEY";

/// A client for requests to a server.
pub(crate) type Http = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The bytes of a connection, with or without TLS.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// The address of a server, and whether it is reached by TLS.
#[derive(Clone)]
pub(crate) struct Reach {
    host: String,
    port: u16,
    /// The settings of TLS; `None` for `http://`.
    tls: Option<Arc<ClientConfig>>,
}

impl Reach {
    /// The server at a URL. For `https://`, the files that the environment names are read.
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        let (host, port, is_tls) = parsed(url)?;
        let tls = if is_tls { Some(Arc::new(config().with_context(|| url.to_owned())?)) } else { None };
        Ok(Self { host, port, tls })
    }

    /// The server's address as `HOST:PORT`.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The URL, without a path.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// A client for requests.
    pub(crate) fn http(&self) -> Http {
        let config = self.tls.as_ref().map_or_else(trusting_nobody, |config| ClientConfig::clone(config));
        let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
        legacy::Client::builder(TokioExecutor::new()).build(connector)
    }

    /// Opens a separate connection to the server, for a WebSocket.
    pub(crate) async fn connect(&self) -> anyhow::Result<Box<dyn Duplex>> {
        let tcp = TcpStream::connect(self.authority()).await?;
        let Some(config) = self.tls.clone() else { return Ok(Box::new(tcp)) };
        let bare = self.host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare)?;
        Ok(Box::new(TlsConnector::from(config).connect(name, tcp).await?))
    }
}

/// The host and the port of a server's URL, and whether the URL asks for TLS.
fn parsed(url: &str) -> anyhow::Result<(String, u16, bool)> {
    let wrong = || format!("the URL of a server must be http://HOST:PORT or https://HOST:PORT, not {:?}", shown(url));
    let uri: Uri = url.parse().with_context(wrong)?;
    let authority = uri.authority().with_context(wrong)?;
    let (port, is_tls) = match uri.scheme_str() {
        Some("http") => (80, false),
        Some("https") => (443, true),
        _ => bail!(wrong()),
    };
    let plain = matches!(uri.path(), "" | "/") && uri.query().is_none() && is_without_user(&uri);
    ensure!(plain, wrong());
    Ok((authority.host().to_owned(), authority.port_u16().unwrap_or(port), is_tls))
}

/// The settings of TLS, made from the files that the environment names.
fn config() -> anyhow::Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    let builder = match read(CA)? {
        Some((path, text)) => {
            let roots = pem::authorities(&text).map_err(|why| anyhow!("{CA}: {}: {why}", path.display()))?;
            builder.with_root_certificates(roots)
        }
        None => {
            builder.with_native_roots().context("this system has no certificates of authorities; set FEEDGATE_CA")?
        }
    };
    let ((chain_path, chain), (key_path, key)) = match (read(CERTIFICATE)?, read(CERTIFICATE_KEY)?) {
        (Some(chain), Some(key)) => (chain, key),
        (None, None) => return Ok(builder.with_no_client_auth()),
        _ => bail!("{CERTIFICATE} and {CERTIFICATE_KEY} must both name a file, or none of them"),
    };
    let chain = pem::certificates(&chain).map_err(|why| anyhow!("{CERTIFICATE}: {}: {why}", chain_path.display()))?;
    let key = pem::key(&key).map_err(|why| anyhow!("{CERTIFICATE_KEY}: {}: {why}", key_path.display()))?;
    builder.with_client_auth_cert(chain, key).with_context(|| format!("{CERTIFICATE} with {CERTIFICATE_KEY}"))
}

/// The file that a variable names, and the contents of the file.
fn read(variable: &str) -> anyhow::Result<Option<(PathBuf, Vec<u8>)>> {
    let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()) else { return Ok(None) };
    let path = PathBuf::from(path);
    let text = std::fs::read(&path).with_context(|| format!("{variable}: {} cannot be read", path.display()))?;
    Ok(Some((path, text)))
}

/// TLS settings that trust no server, for a client that uses no TLS.
fn trusting_nobody() -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has what TLS 1.2 and 1.3 need")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_scheme_with_a_host_and_nothing_more() {
        let right = |url: &str| parsed(url).map(|(host, port, is_tls)| (format!("{host}:{port}"), is_tls)).unwrap();
        assert_eq!(right("http://127.0.0.1:8080"), ("127.0.0.1:8080".to_owned(), false));
        assert_eq!(right("http://feed.example/"), ("feed.example:80".to_owned(), false));
        assert_eq!(right("https://feed.example"), ("feed.example:443".to_owned(), true));
        assert_eq!(right("http://[::1]:9"), ("[::1]:9".to_owned(), false));
        for bad in ["", "127.0.0.1:8080", "ftp://a", "http://", "http://a/b", "http://a?b", "http://u:p@a"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
