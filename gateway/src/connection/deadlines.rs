//! When a connection must do something by itself. One timer runs for the earliest deadline.
//!
//! Times are milliseconds since the node was made; a deadline that is [`NEVER`] is not set.

use crate::protocol::Close;
use crate::settings::Settings;

/// If a deadline is noticed this many milliseconds late, the process or its machine was stopped meanwhile.
const STOOD_STILL_MS: u64 = 2000;

/// The value of a deadline that is not set.
pub(crate) const NEVER: u64 = u64::MAX;

/// The deadlines of one connection.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// By when `connect` must have come.
    pub(crate) connect: u64,
    /// When the next ping is sent, whatever else is sent.
    pub(crate) ping: u64,
    /// By when the next pong must have come.
    pub(crate) pong: u64,
    /// How many pings have no pong yet: more than one if a pong may take longer than the next ping.
    pub(crate) unanswered: u32,
    /// When the device is too slow to receive what waits to be written.
    pub(crate) slow: u64,
    /// When the token and its grace are over: no frame is sent after this.
    pub(crate) expiry: u64,
    /// When the subscriptions look at their logs again, since wakes may have been lost, or a read has failed.
    pub(crate) reread: u64,
    /// When a connection that is ending is cut.
    pub(crate) goodbye: u64,
}

impl Deadlines {
    /// The deadlines of a new connection: only `connect` is set.
    pub(crate) fn until_connect(connect: u64) -> Self {
        let [ping, pong, slow, expiry, reread, goodbye] = [NEVER; 6];
        Self { connect, ping, pong, unanswered: 0, slow, expiry, reread, goodbye }
    }

    /// The earliest of all deadlines. The deadline for `connect` is left out if `is_connecting`: the command has come,
    /// and waits for the stores. The deadline for a pong is left out unless the connection `hears`, which means that it
    /// reads what comes: the pong may lie behind bytes that are not read yet.
    pub(crate) fn next(&self, is_connecting: bool, hears: bool) -> u64 {
        let Self { connect, ping, pong, unanswered: _, slow, expiry, reread, goodbye } = *self;
        let connect = if is_connecting { NEVER } else { connect };
        let pong = if hears { pong } else { NEVER };
        connect.min(ping).min(pong).min(slow).min(expiry).min(reread).min(goodbye)
    }

    /// Whether one of the deadlines `slow`, `expiry`, `reread` and `ping` has come, which do not depend on what the
    /// peer has sent.
    pub(crate) fn are_due(&self, now: u64, hears: bool) -> bool {
        now >= self.slow.min(self.expiry).min(self.reread) || self.is_ping_due(now, hears)
    }

    /// Whether a ping is to be sent. While a pong is overdue, no further ping is sent, unless nothing that comes is
    /// read: a peer that gets no pings closes the connection.
    pub(crate) fn is_ping_due(&self, now: u64, hears: bool) -> bool {
        now >= self.ping && (now < self.pong || !hears)
    }

    /// The code to close with if the peer has not sent in time what it must send: a `connect`, unless `is_connecting`,
    /// or a pong, if the connection `hears`. If that is noticed as late as [`STOOD_STILL_MS`], the peer gets the whole
    /// time again: the ping that it has to answer may have left only now.
    pub(crate) fn overdue(&mut self, now: u64, is_connecting: bool, hears: bool, settings: &Settings) -> Option<Close> {
        let connect = (!is_connecting).then_some((&mut self.connect, settings.connect_within_secs, Close::Stale));
        let pong = hears.then_some((&mut self.pong, settings.pong_within_secs, Close::NoPong));
        for (deadline, within_secs, close) in connect.into_iter().chain(pong) {
            if now < *deadline {
                continue;
            }
            if now < deadline.saturating_add(STOOD_STILL_MS) {
                return Some(close);
            }
            *deadline = now + u64::from(within_secs) * 1000;
        }
        None
    }

    /// Notes that a ping was sent at `now`, in milliseconds.
    pub(crate) fn pinged(&mut self, now: u64, settings: &Settings) {
        self.ping = now + u64::from(settings.ping_interval_secs) * 1000;
        self.pong = self.pong.min(now + u64::from(settings.pong_within_secs) * 1000);
        self.unanswered += 1;
    }

    /// Notes that a pong has come, for the oldest ping without one; false if there is no such ping.
    pub(crate) fn ponged(&mut self, settings: &Settings) -> bool {
        let Some(left) = self.unanswered.checked_sub(1) else { return false };
        let interval = u64::from(settings.ping_interval_secs) * 1000;
        let oldest = self.ping.saturating_sub(interval.saturating_mul(left.into()));
        self.pong = if left == 0 { NEVER } else { oldest + u64::from(settings.pong_within_secs) * 1000 };
        self.unanswered = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_late_unless_it_is_this_process_that_is_late() {
        let settings = Settings { connect_within_secs: 10, pong_within_secs: 8, ..Settings::default() };
        let silent = || Deadlines::until_connect(10_000);
        assert_eq!(silent().overdue(9_999, false, true, &settings), None);
        assert_eq!(silent().overdue(10_000, false, true, &settings), Some(Close::Stale));
        assert_eq!(silent().overdue(10_000, true, true, &settings), None, "the stores are late, not the peer");
        let mut stopped = silent();
        assert_eq!(stopped.overdue(12_000, false, true, &settings), None);
        assert_eq!(stopped.overdue(22_000, false, true, &settings), Some(Close::Stale), "it got the time once more");

        let mut pinged = Deadlines::until_connect(NEVER);
        pinged.pinged(1_000, &settings);
        assert_eq!(pinged.overdue(8_999, false, true, &settings), None);
        assert_eq!(pinged.overdue(12_000, false, true, &settings), None);
        assert_eq!(pinged.overdue(20_000, false, true, &settings), Some(Close::NoPong));
    }
    #[test]
    fn no_pong_is_missed_while_nothing_is_read() {
        let settings = Settings { ping_interval_secs: 25, pong_within_secs: 8, ..Settings::default() };
        let mut waiting = Deadlines::until_connect(NEVER);
        waiting.pinged(1_000, &settings);
        assert_eq!((waiting.next(false, true), waiting.next(false, false)), (9_000, 26_000));
        assert_eq!(waiting.overdue(9_000, false, false, &settings), None);
        assert!(!waiting.is_ping_due(26_000, true) && waiting.is_ping_due(26_000, false));
        waiting.pinged(26_000, &settings);
        assert_eq!(waiting.next(false, false), 51_000, "the timer waits for what is still to come");
        assert_eq!(waiting.overdue(26_001, false, true, &settings), None, "it has the time anew once all is read");
    }
}
