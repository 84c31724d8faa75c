//! When a connection must do something by itself. One timer runs for the earliest of these.
//!
//! Times are milliseconds since the gateway started; [`NEVER`] is not armed.

/// Not armed.
pub(crate) const NEVER: u64 = u64::MAX;

/// See the module.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// `connect` must have come.
    pub(crate) connect: u64,
    /// The next ping goes out, whatever else is sent.
    pub(crate) ping: u64,
    /// The pong must have come.
    pub(crate) pong: u64,
    /// The token and its grace are over: no frame after this.
    pub(crate) expiry: u64,
    /// The session looks at its log again: every wake may have been lost, or a read has failed.
    pub(crate) reread: u64,
    /// The goodbye has taken long enough.
    pub(crate) goodbye: u64,
}

impl Deadlines {
    /// Only `connect` is armed.
    pub(crate) fn until_connect(connect: u64) -> Self {
        Self { connect, ping: NEVER, pong: NEVER, expiry: NEVER, reread: NEVER, goodbye: NEVER }
    }

    /// The earliest.
    pub(crate) fn next(&self) -> u64 {
        let Self { connect, ping, pong, expiry, reread, goodbye } = *self;
        connect.min(ping).min(pong).min(expiry).min(reread).min(goodbye)
    }
}
