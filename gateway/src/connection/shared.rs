//! What all connections of a node share.

use std::sync::Arc;

use feedgate_common::archive::Names;

use super::bodies::Bodies;
use crate::auth::verifier::Verifier;
use crate::limits::budget::Budget;
use crate::node::Node;

/// What all connections of a node share; each command takes only the parts that it uses.
pub(crate) struct Shared {
    pub(super) node: Arc<Node>,
    /// The numbers of the users.
    pub(super) names: Arc<dyn Names>,
    pub(super) verifier: Arc<Verifier>,
    /// Limits the bytes of answers in memory.
    pub(super) budget: Arc<Budget>,
    /// Changes as JSON, encoded once for all readers.
    pub(super) bodies: Bodies,
}

impl Shared {
    pub(crate) fn new(
        node: Arc<Node>,
        names: Arc<dyn Names>,
        verifier: Arc<Verifier>,
        budget: Arc<Budget>,
    ) -> Arc<Self> {
        Arc::new(Self { node, names, verifier, budget, bodies: Bodies::new() })
    }
}
