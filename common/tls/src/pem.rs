//! Certificates and keys as PEM, the text format of their files.

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The certificates of a text, in their order. Fails if there is none.
pub fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    if found.is_empty() {
        return Err("it holds no section \"BEGIN CERTIFICATE\" of PEM".to_owned());
    }
    Ok(found)
}

/// The first private key of a text. Fails if there is none, or it has a passphrase.
pub fn key(text: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound if text.windows(9).any(|words| words == b"ENCRYPTED") => {
            "its private key has a passphrase; take it off with: openssl pkey -in OLD -out NEW".to_owned()
        }
        pem::Error::NoItemsFound => "it holds no section \"BEGIN PRIVATE KEY\" of PEM".to_owned(),
        error => error.to_string(),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_key_and_a_key_with_a_passphrase_are_told_apart() {
        let section = |name: &str| format!("-----BEGIN {name}-----\nAAAA\n-----END {name}-----\n");
        let no_key = key(section("CERTIFICATE").as_bytes()).unwrap_err();
        assert_eq!(no_key, "it holds no section \"BEGIN PRIVATE KEY\" of PEM");
        let locked = key(section("ENCRYPTED PRIVATE KEY").as_bytes()).unwrap_err();
        assert!(locked.starts_with("its private key has a passphrase"), "{locked}");
        assert!(key(section("PRIVATE KEY").as_bytes()).is_ok());
    }
}
