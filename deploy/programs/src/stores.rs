//! All stores of a process, and how to open the embedded ones.

use std::sync::Arc;

use anyhow::Context;
use feedgate_common::announce::Outlet;
use feedgate_common::metrics::{self, Registry};
use feedgate_common::{Archive, Doorbell, Inboxes, Jobs, Sessions};
use feedgate_embedded::{Embedded, Opening};

use crate::settings::Settings;

/// The name of the only node over embedded stores.
const STANDALONE: &str = "standalone";

/// All five stores of a process, open.
pub(crate) struct Stores {
    /// Users, items and edges. No other store can restore these.
    pub(crate) archive: Arc<dyn Archive>,
    /// The change logs of readers.
    pub(crate) inboxes: Arc<dyn Inboxes>,
    /// The session pool and device positions.
    pub(crate) sessions: Arc<dyn Sessions>,
    /// The queue of fan-out work.
    pub(crate) jobs: Arc<dyn Jobs>,
    /// The carrier of wakes between nodes.
    pub(crate) doorbell: Arc<dyn Doorbell>,
    /// Where events for other programs go; `None` if the Archive keeps them.
    pub(crate) outlet: Option<Arc<dyn Outlet>>,
    /// This process's name among the nodes.
    pub(crate) node: String,
    /// The connection to NATS, by which backends may send calls.
    #[cfg(feature = "cluster")]
    pub(crate) bus: Option<feedgate_nats::Bus>,
    /// The numbers of the calls to the servers of the stores. The start of the program adds the numbers of the process.
    pub(crate) registry: Registry,
    /// The embedded stores, to be synced to disk at the end; `None` in a cluster.
    pub(crate) embedded: Option<Embedded>,
}

impl Stores {
    /// Opens the stores in the data directory. With `accept_loss` they go on with what is left of their files. Cancel
    /// safe.
    pub(crate) async fn open_embedded(settings: &Settings, accept_loss: bool) -> anyhow::Result<Self> {
        let (path, buckets, policy) = (settings.data.clone(), settings.buckets, settings.policy());
        let opening = Opening { buckets, policy, accept_loss, kept: settings.events.embedded() };
        let embedded = tokio::task::spawn_blocking(move || Embedded::open_with(&path, opening)).await??;
        Ok(Self {
            archive: embedded.archive.clone(),
            inboxes: embedded.inboxes.clone(),
            sessions: embedded.sessions.clone(),
            jobs: embedded.jobs.clone(),
            doorbell: embedded.doorbell.clone(),
            outlet: None,
            node: STANDALONE.to_owned(),
            #[cfg(feature = "cluster")]
            bus: None,
            registry: metrics::registry(),
            embedded: Some(embedded),
        })
    }

    /// Closes the stores, and syncs embedded ones to disk. Data that was accepted is on disk already.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        let Some(embedded) = self.embedded else { return Ok(()) };
        // The drop of the last handle joins the threads of the stores.
        drop((self.archive, self.inboxes, self.sessions, self.jobs, self.doorbell));
        embedded.close().await.context("the stores did not close")
    }
}
