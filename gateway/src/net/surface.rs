//! The routes that a port offers, so that the routes for the API key can stay off the public port.

use axum::http::request::Parts;

/// The routes that one port serves. Each request carries it as an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// All routes, those for the API key too.
    All,
    /// The routes that devices and readers need: the WebSocket, the routes that a reader's token opens, health and
    /// documentation. The API key opens nothing here, so it cannot be guessed here either.
    Readers,
}

impl Surface {
    /// The surface of the port that the request came in by; `All` if it came by no port.
    pub(crate) fn of(request: &Parts) -> Self {
        request.extensions.get().copied().unwrap_or(Self::All)
    }
}
