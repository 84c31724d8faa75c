//! TLS of a port: a certificate with its key, perhaps the authorities of clients, and the handshake.
//!
//! Invariants: TLS 1.2 and 1.3 alone; the only protocol inside is `http/1.1`. A new certificate holds for connections
//! that come after it, and ends none. Sessions are resumed by tickets that only this process can open, so a node keeps
//! nothing for a device that has gone. Where clients have to show a certificate, nothing is resumed: each handshake
//! checks the certificate of the client against the present authorities.

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use feedgate_tls::pem;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::{NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{self, ServerConfig};

use crate::net::maybe_tls::MaybeTls;

/// Why a certificate and a key cannot be used. The text says what is wrong and with which of the two.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The text of the certificate cannot be read as PEM, or holds none.
    #[error("the certificate is not right: {0}")]
    Certificate(String),
    /// The text of the key cannot be read as PEM, or holds none.
    #[error("the key is not right: {0}")]
    Key(String),
    /// The text of the authorities of clients cannot be read as PEM, or holds none.
    #[error("the authorities of clients are not right: {0}")]
    ClientCa(String),
    /// The certificate and the key do not belong together, or cannot be used for TLS.
    #[error("the certificate and the key cannot be used together: {0}")]
    Pair(rustls::Error),
    /// The system gives no random bytes for the secret of tickets.
    #[error("no tickets can be made: {0}")]
    Tickets(rustls::Error),
}

/// The texts that a port serves TLS with, all as PEM.
#[derive(Debug, Clone, Copy)]
pub struct Pem<'a> {
    /// The certificate, followed by those of the authorities between it and a root that clients trust.
    pub certificate: &'a [u8],
    /// The private key of the certificate.
    pub key: &'a [u8],
    /// The authorities of clients. If there are any, only a client that shows a certificate by one of them is let in.
    pub client_ca: Option<&'a [u8]>,
}

/// What a port serves TLS with. All clones share one configuration, so that a new certificate reaches every port.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ArcSwap<ServerConfig>>,
    /// Makes tickets. It outlives a certificate, so that sessions are resumed after a new certificate too.
    tickets: Arc<dyn ProducesTickets>,
}

impl Tls {
    /// TLS with these texts.
    pub fn new(pem: Pem<'_>) -> Result<Self, TlsError> {
        let tickets = ring::Ticketer::new().map_err(TlsError::Tickets)?;
        let config = config(pem, &tickets)?;
        Ok(Self { config: Arc::new(ArcSwap::from_pointee(config)), tickets })
    }

    /// Replaces the texts for connections that come from now on. If they are not right, the old ones stay.
    pub fn replace(&self, pem: Pem<'_>) -> Result<(), TlsError> {
        self.config.store(Arc::new(config(pem, &self.tickets)?));
        Ok(())
    }

    /// Does the handshake. The caller bounds its time; dropping the future ends the connection.
    pub(crate) async fn accept(&self, tcp: TcpStream) -> io::Result<MaybeTls> {
        let acceptor = TlsAcceptor::from(self.config.load_full());
        Ok(MaybeTls::encrypted(acceptor.accept(tcp).await?))
    }
}

fn config(texts: Pem<'_>, tickets: &Arc<dyn ProducesTickets>) -> Result<ServerConfig, TlsError> {
    let chain = pem::certificates(texts.certificate).map_err(TlsError::Certificate)?;
    let key = pem::key(texts.key).map_err(TlsError::Key)?;
    let provider = Arc::new(ring::default_provider());
    let clients = match texts.client_ca {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(text) => {
            let roots = Arc::new(pem::authorities(text).map_err(TlsError::ClientCa)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone()).build();
            verifier.map_err(|error| TlsError::ClientCa(error.to_string()))?
        }
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .and_then(|builder| builder.with_client_cert_verifier(clients).with_single_cert(chain, key))
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    if texts.client_ca.is_none() {
        config.ticketer = tickets.clone();
    } else {
        // A ticket would resume a session whose client certificate was checked against earlier authorities.
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}
