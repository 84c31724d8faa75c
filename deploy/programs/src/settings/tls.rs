//! The settings of TLS on `listen`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The files that `listen` serves TLS with, both or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    /// The certificate as PEM, followed by those between it and a root; empty: no TLS.
    pub(crate) certificate: PathBuf,
    /// The private key of the certificate as PEM; empty: no TLS.
    pub(crate) key: PathBuf,
}

impl Tls {
    /// Whether `listen` serves TLS.
    pub(crate) fn is_on(&self) -> bool {
        !self.certificate.as_os_str().is_empty()
    }

    /// What is wrong if one file is named and the other is not.
    pub(super) fn problems(&self) -> Option<String> {
        let (given, missing) = match (self.is_on(), self.key.as_os_str().is_empty()) {
            (true, true) => ("certificate", "key"),
            (false, false) => ("key", "certificate"),
            _ => return None,
        };
        Some(format!("tls.{missing} must name a file, because tls.{given} does; leave both empty for no TLS"))
    }
}
