//! Certificates and keys as PEM, the text format of their files.

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The certificates of a text, in their order. Fails if there is none.
pub fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    if found.is_empty() {
        return Err("it holds no section \"BEGIN CERTIFICATE\" of PEM".to_owned());
    }
    Ok(found)
}

/// The first private key of a text.
pub fn key(text: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| error.to_string())
}

/// The authorities of a text, whose certificates are trusted as roots. Fails if there is none, or one is no such
/// certificate.
pub fn authorities(text: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(text)? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(roots)
}
