//! The credentials of the console: a ticket, which can be used once, opens a session with a key of its own.
//!
//! ```text
//!   ticket (in a link, 10 minutes, once) ──enter──▶ session key (in the page, as good as the API key)
//! ```
//!
//! Invariants: a ticket opens at most one session. Only digests are kept, in memory alone, so all of this ends with the
//! process. The number of tickets and of sessions is bounded; the oldest makes room (I18).

use std::time::Duration;

use parking_lot::Mutex;

use super::secret::{digest, secret};
use crate::clock;

/// For how long a ticket can be used.
pub(crate) const TICKET_TTL: Duration = Duration::from_secs(10 * 60);

/// For how long a session lasts.
pub(crate) const SESSION_TTL: Duration = Duration::from_secs(8 * 3600);

/// The most tickets, and the most sessions, at a time.
const MOST: usize = 64;

/// The key of a session, and when that session ends.
pub(crate) struct Opened {
    /// What the page shows from now on, in place of the API key.
    pub(crate) key: String,
    /// When the session ends, in Unix milliseconds.
    pub(crate) expires_at: i64,
}

/// The tickets and the sessions of this process.
#[derive(Default)]
pub(crate) struct Console {
    tickets: Mutex<Kept>,
    sessions: Mutex<Kept>,
}

impl Console {
    /// Makes a ticket. Fails if the system gives no random bytes.
    pub(crate) fn ticket(&self) -> Result<String, getrandom::Error> {
        let ticket = secret()?;
        self.tickets.lock().keep(&ticket, clock::now(), TICKET_TTL);
        Ok(ticket)
    }

    /// Whether this ticket would open a session now.
    pub(crate) fn is_ticket(&self, ticket: &str) -> bool {
        self.tickets.lock().has(ticket, clock::now())
    }

    /// Uses up a ticket; false if the ticket was used before, is too old, or never existed.
    pub(crate) fn take(&self, ticket: &str) -> bool {
        self.tickets.lock().take(ticket, clock::now())
    }

    /// Opens a session. Fails if the system gives no random bytes.
    pub(crate) fn open(&self) -> Result<Opened, getrandom::Error> {
        let key = secret()?;
        let expires_at = self.sessions.lock().keep(&key, clock::now(), SESSION_TTL);
        Ok(Opened { key, expires_at })
    }

    /// Ends all sessions, and makes all tickets useless.
    pub(crate) fn end_all(&self) {
        self.tickets.lock().0.clear();
        self.sessions.lock().0.clear();
    }

    /// Whether this is the key of a session that lasts.
    pub(crate) fn is_key(&self, key: &str) -> bool {
        self.sessions.lock().has(key, clock::now())
    }
}

/// The digests of secrets, each with the time in Unix milliseconds at which it ends; the oldest first.
#[derive(Default)]
struct Kept(Vec<([u8; 32], i64)>);

impl Kept {
    fn keep(&mut self, secret: &str, now: i64, ttl: Duration) -> i64 {
        self.0.retain(|(_, end)| *end > now);
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        let end = now + i64::try_from(ttl.as_millis()).expect("hours fit");
        self.0.push((digest(secret), end));
        end
    }

    fn has(&self, secret: &str, now: i64) -> bool {
        self.place(secret, now).is_some()
    }

    fn take(&mut self, secret: &str, now: i64) -> bool {
        self.place(secret, now).map(|place| self.0.remove(place)).is_some()
    }

    /// The place of a secret that has not ended. Digests are compared: how long that takes tells nothing about a
    /// secret.
    fn place(&self, secret: &str, now: i64) -> Option<usize> {
        let digest = digest(secret);
        self.0.iter().position(|(kept, end)| *kept == digest && *end > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_millis(100);

    #[test]
    fn a_ticket_is_good_once() {
        let console = Console::default();
        let ticket = console.ticket().unwrap();
        assert!(console.is_ticket(&ticket) && console.take(&ticket));
        assert!(!console.is_ticket(&ticket) && !console.take(&ticket));
        assert!(!console.take("never made"));
    }

    #[test]
    fn a_ticket_is_no_key_and_a_key_is_no_ticket() {
        let console = Console::default();
        let (ticket, opened) = (console.ticket().unwrap(), console.open().unwrap());
        assert!(!console.is_key(&ticket) && !console.is_ticket(&opened.key));
        assert!(console.is_key(&opened.key));
        assert!(opened.expires_at <= clock::now() + 8 * 3600 * 1000);
    }

    #[test]
    fn what_is_kept_ends_with_its_time() {
        let mut kept = Kept::default();
        assert_eq!(kept.keep("a", 1000, TTL), 1100);
        assert!(kept.has("a", 1099) && !kept.has("a", 1100) && !kept.take("a", 1100));
    }

    #[test]
    fn i18_the_oldest_makes_room_and_what_has_ended_takes_none() {
        let mut kept = Kept::default();
        (0..=MOST).for_each(|n| _ = kept.keep(&n.to_string(), 0, TTL));
        assert!(!kept.has("0", 1) && kept.has("1", 1) && kept.0.len() == MOST);
        kept.keep("later", 100, TTL);
        assert_eq!(kept.0.len(), 1);
    }
}
