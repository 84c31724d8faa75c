//! The files for TLS with stores: whom to trust, and who we are to them.
//!
//! The files hold for all stores alike. Whether a store is spoken to by TLS at all, its URL says. The files are read
//! again for each new connection, so a certificate that is renewed in time needs no restart.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::pem;

/// Which files to use for TLS with stores. By default there are none: then the authorities that the system trusts are
/// trusted, and stores see no certificate of ours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreTls {
    /// The certificates of the authorities that sign those of stores.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key, for stores that ask for one.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// What the files held when they were read, as PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The certificates of the authorities.
    pub ca: Option<Vec<u8>>,
    /// Our certificate and its key.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

/// Why the files cannot be used. The text names the file and its setting.
#[derive(Debug, Error)]
pub enum StoreTlsError {
    /// A file cannot be read.
    #[error("{setting}: {} cannot be read: {why}", path.display())]
    Unread {
        /// The setting that names the file.
        setting: &'static str,
        /// Where the file is.
        path: PathBuf,
        /// The error of the system.
        #[source]
        why: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{setting}: {} is not right: {why}", path.display())]
    Wrong {
        /// The setting that names the file.
        setting: &'static str,
        /// Where the file is.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The certificate and the key do not belong together.
    #[error("stores_tls.certificate {} with stores_tls.key {}: {why}", certificate.display(), key.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What TLS says of the two.
        #[source]
        why: rustls::Error,
    },
}

const CA: &str = "stores_tls.ca";
const CERTIFICATE: &str = "stores_tls.certificate";
const KEY: &str = "stores_tls.key";

impl StoreTls {
    /// Whether no file is named.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the files. Blocks.
    pub fn read(&self) -> Result<Contents, StoreTlsError> {
        let ca = self.ca.as_deref().map(|path| read(CA, path)).transpose()?;
        let client = match &self.client {
            Some((certificate, key)) => Some((read(CERTIFICATE, certificate)?, read(KEY, key)?)),
            None => None,
        };
        Ok(Contents { ca, client })
    }

    /// Reads the files, and fails if one of them cannot be used. Blocks.
    pub fn check(&self) -> Result<(), StoreTlsError> {
        let Contents { ca, client } = self.read()?;
        if let (Some(path), Some(text)) = (&self.ca, ca) {
            pem::authorities(&text).map_err(|why| wrong(CA, path, why))?;
        }
        if let (Some((certificate, key)), Some(texts)) = (&self.client, client) {
            let chain = pem::certificates(&texts.0).map_err(|why| wrong(CERTIFICATE, certificate, why))?;
            let private = pem::key(&texts.1).map_err(|why| wrong(KEY, key, why))?;
            let (certificate, key) = (certificate.clone(), key.clone());
            fit(chain, private).map_err(|why| StoreTlsError::Pair { certificate, key, why })?;
        }
        Ok(())
    }
}

fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, StoreTlsError> {
    fs::read(path).map_err(|why| StoreTlsError::Unread { setting, path: path.to_owned(), why })
}

fn wrong(setting: &'static str, path: &Path, why: String) -> StoreTlsError {
    StoreTlsError::Wrong { setting, path: path.to_owned(), why }
}

/// Whether a client can show this certificate with this key.
fn fit(
    chain: Vec<rustls::pki_types::CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<(), rustls::Error> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_client_auth_cert(chain, key)
        .map(drop)
}
