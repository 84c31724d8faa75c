//! What a port offers, so that what takes the API key can stay off the port that the world reaches.

use axum::http::request::Parts;

/// See the variants. Travels with each request as an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Everything.
    All,
    /// What devices and readers need: the WebSocket, the routes that a reader's token opens, health
    /// and documentation. The API key is nothing here, not even something to guess at.
    Readers,
}

impl Surface {
    /// Of the port that the request came in by.
    pub(crate) fn of(request: &Parts) -> Self {
        request.extensions.get().copied().unwrap_or(Self::All)
    }
}
