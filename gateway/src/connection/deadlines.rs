//! When a connection must do something by itself. One timer runs for the earliest of these.
//!
//! Times are milliseconds since the gateway started; [`NEVER`] is not armed.

use crate::settings::Settings;

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
    /// Pings that have no pong yet: more than one if pongs may take longer than the next ping.
    pub(crate) unanswered: u32,
    /// The device has been too slow to take what waits to be written.
    pub(crate) slow: u64,
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
        let [ping, pong, slow, expiry, reread, goodbye] = [NEVER; 6];
        Self { connect, ping, pong, unanswered: 0, slow, expiry, reread, goodbye }
    }

    /// The earliest.
    pub(crate) fn next(&self) -> u64 {
        let Self { connect, ping, pong, unanswered: _, slow, expiry, reread, goodbye } = *self;
        connect.min(ping).min(pong).min(slow).min(expiry).min(reread).min(goodbye)
    }

    /// A ping has gone out at `now`; times of `settings`, in milliseconds.
    pub(crate) fn pinged(&mut self, now: u64, settings: &Settings) {
        self.ping = now + u64::from(settings.ping_interval_secs) * 1000;
        self.pong = self.pong.min(now + u64::from(settings.pong_within_secs) * 1000);
        self.unanswered += 1;
    }

    /// A pong has come, for the oldest ping without one; false if there is none.
    pub(crate) fn ponged(&mut self, settings: &Settings) -> bool {
        let Some(left) = self.unanswered.checked_sub(1) else { return false };
        let interval = u64::from(settings.ping_interval_secs) * 1000;
        let oldest = self.ping.saturating_sub(interval.saturating_mul(left.into()));
        self.pong = if left == 0 { NEVER } else { oldest + u64::from(settings.pong_within_secs) * 1000 };
        self.unanswered = left;
        true
    }
}
