//! What every request that is to become a session must pass: the limits of its address, and room on this node.

use std::sync::Arc;

use axum::body::Body;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::Ports;
use crate::net::address::Client;
use crate::net::address::shares::{Stay, TooMany};
use crate::net::lobby::Guest;
use crate::net::surface::Surface;
use crate::node::metrics::Admittance;
use crate::node::slot::Slot;

/// What a request needs to become a session.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) ports: Arc<Ports>,
    /// When the session was asked for, in milliseconds of the node's clock. The time of accepting would be wrong, since
    /// a proxy may use a connection that is old.
    pub(super) asked_ms: u64,
    /// What the port offers.
    pub(super) surface: Surface,
    /// The client that the request counts for.
    pub(super) client: Client,
    /// The HTTP connection of the request.
    pub(super) guest: Arc<Guest>,
}

impl Door {
    /// Counts the session for the address that asks for it; and the connection too, unless the connection is counted
    /// already. The connection of a proxy is not counted before, since it carries the requests of many addresses.
    pub(super) fn count(&self) -> Result<Option<Stay>, Refused> {
        let Client(Some(key)) = self.client else { return Ok(None) };
        let (shares, now) = (&self.ports.shares, self.ports.node.uptime.elapsed_ms());
        shares.upgrade(key, now).map_err(Refused::too_many)?;
        if self.guest.is_counted() { Ok(None) } else { shares.enter(key, now).map(Some).map_err(Refused::too_many) }
    }

    /// Takes a slot, unless the node is full or going away.
    pub(super) fn slot(&self) -> Result<Arc<Slot>, Refused> {
        let pool = &self.ports.node.local.pool;
        let full = |_| self.later("this node holds as many connections as it may");
        let slot = pool.arrive().map_err(full)?;
        // This is looked at only after the slot was taken: the drain closes every slot that was taken before it began.
        if self.ports.stopping.is_cancelled() {
            pool.depart(&slot);
            return Err(self.later("this node is going away"));
        }
        Ok(slot)
    }

    /// The refusal of a request that is right but comes at a bad time. Logs the refusal.
    fn later(&self, why: &'static str) -> Refused {
        let refused = Refused::new(StatusCode::SERVICE_UNAVAILABLE, why).with(header::RETRY_AFTER, "1");
        self.log(&refused);
        refused
    }

    /// Logs why the request was refused. A limit of an address is logged where it is counted.
    pub(super) fn log(&self, refused: &Refused) {
        self.ports.refusals.log(self.client, refused.why);
    }

    /// Counts what became of the request, by the status of its answer.
    pub(super) fn counts(&self, status: StatusCode) {
        self.ports.node.metrics.requests.of(Admittance::of(status)).inc();
    }

    /// The counted place of the session at its address: that of its HTTP connection, else the one that was counted now.
    pub(super) fn stay(&self, counted: Option<Stay>) -> Option<Box<Stay>> {
        self.guest.take_stay().or(counted).map(Box::new)
    }
}

/// A request that may not become a session, or not now.
pub(super) struct Refused {
    pub(super) status: StatusCode,
    /// What is wrong, and what would be right.
    pub(super) why: &'static str,
    header: Option<(HeaderName, &'static str)>,
}

impl Refused {
    pub(super) fn new(status: StatusCode, why: &'static str) -> Self {
        Self { status, why, header: None }
    }

    fn too_many(why: TooMany) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, why.text()).with(header::RETRY_AFTER, "1")
    }

    /// Adds a header to the answer.
    pub(super) fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
    }

    /// The answer, as a problem document.
    pub(super) fn response(self) -> Response<Body> {
        let problem = serde_json::json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": self.why,
        });
        let mut response = Response::new(Body::from(problem.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some((name, value)) = self.header {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
