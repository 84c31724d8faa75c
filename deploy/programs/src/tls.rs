//! The certificate of `listen`: read from two files, and read again when one of them has changed on disk.
//!
//! Invariants: what cannot be used is told once, and what was used before stays. No session is closed. A file is
//! compared by its number, its length and the time of its last change, so that a file that is moved into its place is
//! noticed, and a link that leads elsewhere too.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use feedgate_gateway::{Tls, TlsError};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::settings;

/// How often the two files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A certificate and its key on disk, and the TLS that serves them.
pub(crate) struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// The two files as they were before they were last read.
    known: [Stamp; 2],
    tls: Tls,
}

/// What tells that a file is another one than before; `None` if it is not there.
type Stamp = Option<(u64, u64, i64, i64)>;

impl Files {
    /// Opens the files that the settings name; `None` if `listen` serves no TLS. Fails with the name of the file that is
    /// not right.
    pub(crate) fn open(settings: &settings::Tls) -> anyhow::Result<Option<Self>> {
        if !settings.is_on() {
            return Ok(None);
        }
        let (certificate, key) = (settings.certificate.clone(), settings.key.clone());
        // The stamps come first: a file that is replaced meanwhile is then read again.
        let known = stamps(&certificate, &key);
        let tls = with_contents(&certificate, &key, Tls::new)?;
        Ok(Some(Self { certificate, key, known, tls }))
    }

    /// The TLS that serves the files.
    pub(crate) fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Reads the files again when they have changed, until `stop`.
    pub(crate) async fn keep(mut self, stop: CancellationToken) -> anyhow::Result<()> {
        while stop.run_until_cancelled(sleep(LOOK_EVERY)).await.is_some() {
            let now = stamps(&self.certificate, &self.key);
            if now == std::mem::replace(&mut self.known, now) {
                continue;
            }
            let replace = |certificate: &[u8], key: &[u8]| self.tls.replace(certificate, key);
            match with_contents(&self.certificate, &self.key, replace) {
                Ok(()) => tracing::info!(certificate = %self.certificate.display(), "a new certificate is served"),
                Err(error) => tracing::warn!("the certificate of before stays: {error:#}"),
            }
        }
        Ok(())
    }
}

/// Reads both files and gives what `make` makes of them. An error names the files.
fn with_contents<T>(
    certificate: &Path,
    key: &Path,
    make: impl FnOnce(&[u8], &[u8]) -> Result<T, TlsError>,
) -> anyhow::Result<T> {
    let read = |setting, path: &Path| {
        fs::read(path).map_err(|error| anyhow!("{setting}: {} cannot be read: {error}", path.display()))
    };
    let made = make(&read("tls.certificate", certificate)?, &read("tls.key", key)?);
    made.with_context(|| format!("tls.certificate {} with tls.key {}", certificate.display(), key.display()))
}

fn stamps(certificate: &Path, key: &Path) -> [Stamp; 2] {
    [certificate, key].map(|path| {
        let file = fs::metadata(path).ok()?;
        Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
    })
}
