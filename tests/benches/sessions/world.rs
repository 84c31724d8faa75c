//! The readers, with an inbox each, and the authors whom they follow.
//!
//! ```text
//!   star  ◀── every reader           posts to all, pushed however many they are
//!   idol  ◀── every reader           posts to all, pulled; only where that is measured
//!   loud  ◀── the first 201          large posts, for readers that stall
//!   quiet ◀── the last reader        single posts, for the latency
//! ```

use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use feedgate_tests::load::{Deliver, Fleet, Front, Home, Plan, Server, Wire};
use feedgate_tests::process::Memory;
use tokio_rustls::rustls::ClientConfig;

use crate::options::Options;

/// The author whom all readers follow, by push.
pub(crate) const STAR: &str = "star";

/// The author whom all readers follow, by pull.
pub(crate) const IDOL: &str = "idol";

/// The author whom the [`LOUD_READERS`] follow.
pub(crate) const LOUD: &str = "loud";

/// The author whom only one reader follows.
pub(crate) const QUIET: &str = "quiet";

/// The readers of [`LOUD`]. All but the last stop reading.
pub(crate) const LOUD_READERS: Range<usize> = 0..201;

/// How often the measured server pings. Shorter than the default of 25 s, so that a run is short.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(10);

/// How many inboxes are made at a time.
const READING: usize = 64;

/// The server that is measured, and a token for each reader.
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) server: Server,
    /// What stands between the devices and the server.
    front: Option<Front>,
    tokens: Vec<String>,
    /// The directory of the server. It is dropped after the server.
    _home: Home,
}

impl World {
    /// Starts the server, sets the edges and makes every inbox, so that what follows measures sessions.
    pub(crate) async fn make(options: Options, binaries: &Path) -> anyhow::Result<Self> {
        ensure!(!options.nginx || options.sessions <= 9_500, "--sessions: at most 9500 with --nginx");
        let home = Home::make(binaries)?;
        let settings = format!("[gateway]\nping_interval_secs = {}\n", PING_INTERVAL.as_secs());
        let mut server = if options.tls {
            home.start_with_tls("server", &settings).await?
        } else {
            home.start("server", &["feedgate", "serve"], "--listen", &settings).await?
        };
        let backend = &server.backend;
        let users: Vec<String> = (0..options.sessions).map(|n| format!("reader-{n}")).collect();
        backend.classify(STAR, "push").await?;
        backend.follow(&users, STAR).await?;
        if options.pull {
            backend.classify(IDOL, "pull").await?;
            backend.follow(&users, IDOL).await?;
        }
        backend.follow(&users[LOUD_READERS], LOUD).await?;
        backend.follow(&users[users.len() - 1..], QUIET).await?;
        backend.quiet().await?;
        for chunk in users.chunks(READING) {
            futures_util::future::try_join_all(chunk.iter().map(|user| backend.page(user))).await?;
        }
        backend.quiet().await?;
        server.restart().await?;
        let tokens = home.tokens(users.into_iter())?;
        let front = if options.nginx { Some(home.start_front(&server).await?) } else { None };
        Ok(Self { options, server, front, tokens, _home: home })
    }

    /// The address to which devices connect.
    fn address(&self) -> SocketAddr {
        self.front.as_ref().map_or_else(|| self.server.address(), Front::address)
    }

    /// The authorities that a device has to trust, if it connects by TLS.
    fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.front.as_ref().map(Front::tls).or_else(|| self.server.tls())
    }

    /// The processor time so far of all that serves devices, in seconds.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let front = self.front.as_ref().map(Front::cpu_seconds).transpose()?;
        Ok(self.server.cpu_seconds()? + front.unwrap_or_default())
    }

    /// The memory of all that serves devices, once that of the server stands still.
    pub(crate) async fn settled_memory(&self) -> anyhow::Result<Memory> {
        let mut memory = self.server.settled_memory().await?;
        if let Some(front) = &self.front {
            let beside = front.memory()?;
            memory.rss += beside.rss;
            memory.pss += beside.pss;
            memory.anonymous += beside.anonymous;
        }
        Ok(memory)
    }

    pub(crate) fn sessions(&self) -> usize {
        self.tokens.len()
    }

    /// Connects every reader to the server.
    pub(crate) async fn connect(&self, deliver: Deliver, wire: Wire) -> anyhow::Result<Fleet> {
        let plan =
            Plan { addresses: &[self.address()], deliver, wire, tokens: &self.tokens, stalled: 0..0, tls: self.tls() };
        Fleet::connect(plan).await
    }

    /// Connects the readers of [`LOUD`], of whom those in `stalled` stop reading.
    pub(crate) async fn connect_loud(&self, stalled: Range<usize>) -> anyhow::Result<Fleet> {
        let (addresses, tokens) = (&[self.address()], &self.tokens[LOUD_READERS]);
        Fleet::connect(Plan { addresses, deliver: Deliver::Items, wire: Wire::Json, tokens, stalled, tls: self.tls() })
            .await
    }

    /// Opens as many raw sockets to `address`.
    pub(crate) async fn connect_raw(&self, address: SocketAddr) -> anyhow::Result<Fleet> {
        let tokens = vec![String::new(); self.sessions()];
        Fleet::connect(Plan {
            addresses: &[address],
            deliver: Deliver::Raw,
            wire: Wire::Json,
            tokens: &tokens,
            stalled: 0..0,
            tls: None,
        })
        .await
    }
}
