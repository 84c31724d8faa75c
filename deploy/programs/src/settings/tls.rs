//! The settings of TLS: on `listen`, on `admin_listen`, and with the stores of a cluster.

use std::path::{Path, PathBuf};

#[cfg(feature = "cluster")]
use feedgate_tls::StoreTls;
use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// The files with which `listen` serves TLS. Both must be given, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    /// The certificate as PEM, followed by the certificates between it and a root; empty: no TLS.
    pub(crate) certificate: PathBuf,
    /// The private key of the certificate as PEM; empty: no TLS.
    pub(crate) key: PathBuf,
}

impl Tls {
    /// Whether `listen` serves TLS.
    pub(crate) fn is_on(&self) -> bool {
        is_named(&self.certificate)
    }

    /// The files; `None` if there is no TLS.
    pub(crate) fn files(&self) -> Option<PortFiles> {
        let (certificate, key) = (self.certificate.clone(), self.key.clone());
        self.is_on().then_some(PortFiles { section: "tls", certificate, key, client_ca: None })
    }

    /// What is wrong if one file is named and the other is not.
    pub(super) fn problems(&self) -> Option<String> {
        both_or_none("tls", "for no TLS", &self.certificate, &self.key)
    }
}

/// The files with which `admin_listen` serves TLS. The first two may be left out together, and the last one alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AdminTls {
    /// The certificate as PEM, followed by the certificates between it and a root; empty: no TLS.
    pub(crate) certificate: PathBuf,
    /// The private key of the certificate as PEM; empty: no TLS.
    pub(crate) key: PathBuf,
    /// The certificates of the authorities of clients as PEM; empty: clients need no certificate.
    pub(crate) client_ca: PathBuf,
}

impl AdminTls {
    /// Whether `admin_listen` serves TLS.
    pub(crate) fn is_on(&self) -> bool {
        is_named(&self.certificate)
    }

    /// The files; `None` if there is no TLS.
    pub(crate) fn files(&self) -> Option<PortFiles> {
        self.is_on().then(|| PortFiles {
            section: "admin_tls",
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            client_ca: is_named(&self.client_ca).then(|| self.client_ca.clone()),
        })
    }

    /// What is wrong with the files that are named.
    pub(super) fn problems(&self) -> Option<String> {
        let pair = both_or_none("admin_tls", "for no TLS", &self.certificate, &self.key);
        let alone = || "admin_tls.certificate must name a file, because admin_tls.client_ca does".to_owned();
        pair.or_else(|| (is_named(&self.client_ca) && !self.is_on()).then(alone))
    }
}

/// The files of one port with TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortFiles {
    /// The section of the settings that names them.
    pub(crate) section: &'static str,
    /// The certificate, followed by the certificates between it and a root.
    pub(crate) certificate: PathBuf,
    /// The private key of the certificate.
    pub(crate) key: PathBuf,
    /// The authorities of clients, if clients must show a certificate.
    pub(crate) client_ca: Option<PathBuf>,
}

/// The files for TLS with the stores of a cluster. All may be left out. The URL of a store says whether TLS is used
/// with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoresTls {
    /// The certificates of the authorities of the stores as PEM; empty: the authorities that the system trusts.
    pub(crate) ca: PathBuf,
    /// The certificate that this process shows to stores as PEM; empty: it shows none.
    pub(crate) certificate: PathBuf,
    /// The private key of the certificate as PEM; empty: there is none.
    pub(crate) key: PathBuf,
}

impl StoresTls {
    /// The files, as stores take them.
    #[cfg(feature = "cluster")]
    pub(crate) fn files(&self) -> StoreTls {
        let named = |path: &PathBuf| is_named(path).then(|| path.clone());
        StoreTls { ca: named(&self.ca), client: named(&self.certificate).zip(named(&self.key)) }
    }

    /// What is wrong with the files that are named, for stores of this kind.
    pub(super) fn problems(&self, kind: Option<Kind>) -> Option<String> {
        let is_given = *self != Self::default();
        if is_given && kind == Some(Kind::Embedded) {
            return Some("stores_tls is for the stores of a cluster; leave it empty with embedded ones".to_owned());
        }
        both_or_none("stores_tls", "to show no certificate", &self.certificate, &self.key)
    }
}

fn is_named(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}

/// What is wrong if one of a certificate and its key is named, and the other is not.
fn both_or_none(section: &str, what_for: &str, certificate: &Path, key: &Path) -> Option<String> {
    let (given, missing) = match (is_named(certificate), is_named(key)) {
        (true, false) => ("certificate", "key"),
        (false, true) => ("key", "certificate"),
        _ => return None,
    };
    Some(format!("{section}.{missing} must name a file, because {section}.{given} does; leave both empty {what_for}"))
}
