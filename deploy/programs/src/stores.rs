//! Opens the stores of the five traits, as three URLs name them.
//!
//! ```text
//!   archive_url   inbox_url            bus_url
//!   embedded:     embedded:            embedded:     one data directory, one process
//!   postgres://   redis:// rediss://   nats://       any number of processes (feature `cluster`)
//! ```
//!
//! Invariant: all three are embedded or none is. No other process can see what one process holds in its own files, so a
//! mixture would be a cluster whose parts do not know of each other.

use std::sync::Arc;

use anyhow::Context;
use feedgate_common::{Archive, Doorbell, Inboxes, Jobs, Sessions};
use feedgate_embedded::{Embedded, Opening};

use crate::settings::Settings;
use crate::url::StoreUrl;

/// The URL of a store that this process holds in its own files.
pub(crate) const EMBEDDED: &str = "embedded:";

/// The name of the only node over embedded stores.
const STANDALONE: &str = "standalone";

/// Who can use the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The stores belong to this process alone.
    Embedded,
    /// The stores are shared with other processes.
    Cluster,
}

impl Kind {
    /// What the URLs say, or all that is wrong with them.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Vec<String>> {
        let urls = [
            ("archive_url", &settings.archive_url, &["postgres", "postgresql"], "postgres://USER@HOST/DATABASE"),
            ("inbox_url", &settings.inbox_url, &["redis", "rediss"], "redis://HOST:PORT"),
            ("bus_url", &settings.bus_url, &["nats", "tls"], "nats://HOST:PORT"),
        ];
        let is_embedded = |url: &StoreUrl| *url == StoreUrl::new(EMBEDDED);
        let (embedded, shared): (Vec<_>, Vec<_>) = urls.into_iter().partition(|(_, url, ..)| is_embedded(url));
        let problems: Vec<String> = shared
            .iter()
            .filter(|(_, url, schemes, _)| !schemes.contains(&url.scheme()))
            .map(|(key, url, _, right)| format!("{key} must be \"{EMBEDDED}\" or \"{right}\", it is \"{url}\""))
            .collect();
        let keys =
            |urls: &[(&'static str, _, _, _)]| urls.iter().map(|(key, ..)| *key).collect::<Vec<_>>().join(" and ");
        match (shared.is_empty(), embedded.is_empty()) {
            _ if !problems.is_empty() => Err(problems),
            (true, _) => Ok(Self::Embedded),
            (false, false) => Err(vec![format!(
                "{} must not be \"{EMBEDDED}\" while {} is not: what this process holds in its own files no other \
                 process sees, so all three are embedded or none is",
                keys(&embedded),
                keys(&shared)
            )]),
            (false, true) if cfg!(not(feature = "cluster")) => Err(vec![format!(
                "archive_url is \"{}\", and this build holds the embedded stores only; build with: cargo build \
                 --release --features cluster",
                settings.archive_url
            )]),
            (false, true) => Ok(Self::Cluster),
        }
    }
}

/// All five stores of a process, open.
pub(crate) struct Stores {
    /// Users, items and edges: what no other store can replace.
    pub(crate) archive: Arc<dyn Archive>,
    /// The change logs of readers.
    pub(crate) inboxes: Arc<dyn Inboxes>,
    /// The session pool and device positions.
    pub(crate) sessions: Arc<dyn Sessions>,
    /// The queue of fan-out work.
    pub(crate) jobs: Arc<dyn Jobs>,
    /// The carrier of wakes between nodes.
    pub(crate) doorbell: Arc<dyn Doorbell>,
    /// This process's name among the nodes.
    pub(crate) node: String,
    /// The embedded stores, if these are they, to be synced to disk at the end.
    pub(crate) embedded: Option<Embedded>,
}

impl Stores {
    /// Opens the stores that the settings name. With `accept_loss`, embedded stores go on with what is left of their
    /// files. Cancel safe.
    pub(crate) async fn open(settings: &Settings, accept_loss: bool) -> anyhow::Result<Self> {
        #[cfg(feature = "cluster")]
        if Kind::of(settings) == Ok(Kind::Cluster) {
            return crate::cluster::open(settings).await;
        }
        let (path, buckets, pull_above) = (settings.data.clone(), settings.buckets, settings.pull_above);
        let opening = Opening { buckets, pull_above, accept_loss };
        let embedded = tokio::task::spawn_blocking(move || Embedded::open_with(&path, opening)).await??;
        Ok(Self {
            archive: embedded.archive.clone(),
            inboxes: embedded.inboxes.clone(),
            sessions: embedded.sessions.clone(),
            jobs: embedded.jobs.clone(),
            doorbell: embedded.doorbell.clone(),
            node: STANDALONE.to_owned(),
            embedded: Some(embedded),
        })
    }

    /// Closes the stores, and syncs embedded ones to disk. What was *accepted* is on disk already.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        let Some(embedded) = self.embedded else { return Ok(()) };
        // The drop of the last handle joins the threads of the stores.
        drop((self.archive, self.inboxes, self.sessions, self.jobs, self.doorbell));
        embedded.close().await.context("the stores did not close")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(archive: &str, inbox: &str, bus: &str) -> Settings {
        let [archive_url, inbox_url, bus_url] = [archive, inbox, bus].map(StoreUrl::new);
        Settings { archive_url, inbox_url, bus_url, ..Settings::default() }
    }

    #[test]
    fn all_urls_are_embedded_or_none_is() {
        assert_eq!(Kind::of(&settings(EMBEDDED, EMBEDDED, EMBEDDED)), Ok(Kind::Embedded));
        let mixed = Kind::of(&settings("postgres://ann:secret@db/x", EMBEDDED, EMBEDDED)).unwrap_err().concat();
        assert!(
            mixed.starts_with("inbox_url and bus_url must not be \"embedded:\" while archive_url is not"),
            "{mixed}"
        );
    }

    #[test]
    fn each_url_has_its_own_schemes() {
        let wrong = Kind::of(&settings("redis://:secret@a", "nats://secret@b", "postgres://c")).unwrap_err();
        for (problem, right) in wrong.iter().zip([
            "archive_url must be \"embedded:\" or \"postgres://USER@HOST/DATABASE\", it is \"redis://***@a\"",
            "inbox_url must be \"embedded:\" or \"redis://HOST:PORT\", it is \"nats://***@b\"",
            "bus_url must be \"embedded:\" or \"nats://HOST:PORT\", it is \"postgres://c\"",
        ]) {
            assert_eq!(problem, right);
        }
        assert_eq!(wrong.len(), 3);
    }

    #[test]
    fn shared_stores_need_the_build_that_has_them() {
        let shared = settings("postgres://ann:secret@db/x", "rediss://:secret@a:7000,b:7001", "nats://secret@c");
        match Kind::of(&shared) {
            Ok(kind) => assert!(cfg!(feature = "cluster") && kind == Kind::Cluster),
            Err(problems) => {
                let problems = problems.concat();
                assert!(cfg!(not(feature = "cluster")) && problems.contains("--features cluster"), "{problems}");
                assert!(problems.contains("postgres://***@db/x") && !problems.contains("secret"), "{problems}");
            }
        }
    }
}
