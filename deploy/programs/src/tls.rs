//! The certificate of a port: read from its files, and read again when one of the files has changed on disk.
//!
//! Invariants: files that cannot be used are reported once, and the certificate that was used before stays. No
//! connection is closed. A file is compared by its number, its length and the time of its last change, so that a file
//! that was moved into its place is noticed, and a link that leads to another file too.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use feedgate_gateway::{Pem, Tls, TlsError};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::settings::{PortFiles, Settings};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The files of a port on disk, and the TLS that serves them.
pub(crate) struct Files {
    paths: PortFiles,
    /// The stamps of the files from just before they were last read.
    known: Vec<Stamp>,
    tls: Tls,
}

/// The values by which a changed file is noticed, its rights too; `None` if there is no such file.
type Stamp = Option<(u64, u64, [i64; 4])>;

impl Files {
    /// Opens the files. Fails with the names of the files if one of them is not right.
    pub(crate) fn open(paths: PortFiles) -> anyhow::Result<Self> {
        // The stamps are taken first: a file that is replaced meanwhile is then read again.
        let known = paths.stamps();
        let tls = paths.with_contents(Tls::new)?;
        Ok(Self { paths, known, tls })
    }

    /// The TLS that serves the files.
    pub(crate) fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Reads the files again when they have changed, until `stop`.
    pub(crate) async fn keep(mut self, stop: CancellationToken) -> anyhow::Result<()> {
        while stop.run_until_cancelled(sleep(LOOK_EVERY)).await.is_some() {
            let now = self.paths.stamps();
            if now == self.known {
                continue;
            }
            self.known = now;
            match self.paths.with_contents(|pem| self.tls.replace(pem)) {
                Ok(()) => {
                    tracing::info!(certificate = %self.paths.certificate.display(), "a new certificate is served");
                }
                Err(error) => tracing::warn!("the certificate of before stays: {error:#}"),
            }
        }
        Ok(())
    }
}

/// Reads all files of TLS that a process reads at its start; a worker has no ports with TLS. Fails with everything that
/// is wrong with them.
pub(crate) fn check(settings: &Settings, is_gateway: bool) -> Result<(), Vec<String>> {
    let ports = [settings.tls.files(), settings.admin_tls.files()].into_iter().flatten().filter(|_| is_gateway);
    let errors = ports.filter_map(|paths| Files::open(paths).err());
    #[cfg(feature = "cluster")]
    let errors = errors.chain(settings.stores_tls.files().check().err().map(anyhow::Error::from));
    let problems: Vec<String> = errors.map(|error| crate::told(&error)).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

impl PortFiles {
    /// Reads the files and gives what `make` makes of them. An error names the files.
    fn with_contents<T>(&self, make: impl FnOnce(Pem<'_>) -> Result<T, TlsError>) -> anyhow::Result<T> {
        let Self { section, certificate, key, client_ca } = self;
        let read = |setting, path: &Path| {
            fs::read(path).map_err(|error| anyhow!("{section}.{setting}: {} cannot be read: {error}", path.display()))
        };
        let (chain, private) = (read("certificate", certificate)?, read("key", key)?);
        let authorities = client_ca.as_deref().map(|path| read("client_ca", path)).transpose()?;
        make(Pem { certificate: &chain, key: &private, client_ca: authorities.as_deref() }).with_context(|| {
            let clients = client_ca.as_deref().map(|path| format!(", {section}.client_ca {}", path.display()));
            let clients = clients.unwrap_or_default();
            format!("{section}.certificate {} with {section}.key {}{clients}", certificate.display(), key.display())
        })
    }

    fn stamps(&self) -> Vec<Stamp> {
        let stamp = |path: &Path| {
            let file = fs::metadata(path).ok()?;
            Some((file.ino(), file.len(), [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()]))
        };
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).map(|path| stamp(path)).collect()
    }
}
