//! What all connections of a node share.

use std::sync::Arc;

use feedgate_common::StoreError;
use feedgate_common::archive::Names;

use super::bodies::Bodies;
use crate::auth::verifier::Verifier;
use crate::limits::budget::Budget;
use crate::limits::log_limit::LogLimit;
use crate::node::lease::Lease;
use crate::node::metrics::Metrics;
use crate::node::revocations::Revocations;
use crate::node::uptime::Uptime;
use crate::node::watches::Watches;
use crate::node::{LocalSessions, Node, Reads};
use crate::settings::LiveSettings;

/// The log lines about damage that sessions have found.
static DAMAGE: LogLimit = LogLimit::new();

/// What all connections of a node share; each command takes only the parts that it uses.
pub(crate) struct Shared {
    pub(super) settings: Arc<LiveSettings>,
    pub(super) reads: Arc<Reads>,
    pub(super) local: Arc<LocalSessions>,
    pub(super) revocations: Arc<Revocations>,
    pub(super) watches: Arc<Watches>,
    pub(super) lease: Arc<Lease>,
    pub(super) uptime: Uptime,
    pub(super) metrics: Arc<Metrics>,
    /// The numbers of the users.
    pub(super) names: Arc<dyn Names>,
    pub(super) verifier: Arc<Verifier>,
    /// Limits the bytes of answers in memory.
    pub(super) budget: Arc<Budget>,
    /// Changes as JSON, encoded once for all readers.
    pub(super) bodies: Bodies,
}

impl Shared {
    pub(crate) fn new(node: &Node, names: Arc<dyn Names>, verifier: Arc<Verifier>, budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            settings: node.settings.clone(),
            reads: node.reads.clone(),
            local: node.local.clone(),
            revocations: node.revocations.clone(),
            watches: node.watches.clone(),
            lease: node.lease.clone(),
            uptime: node.uptime,
            metrics: node.metrics.clone(),
            names,
            verifier,
            budget,
            bodies: Bodies::new(),
        })
    }

    /// Returns whether the call of a session failed because a store is damaged. If so, counts this and logs what was
    /// found.
    pub(super) fn found_damage(&self, error: &StoreError) -> bool {
        let StoreError::Corrupt(what) = error else { return false };
        self.metrics.damage.inc();
        if let Some(suppressed) = DAMAGE.admit() {
            tracing::error!(%what, suppressed, "a session found a store damaged");
        }
        true
    }
}
