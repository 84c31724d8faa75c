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
use std::time::Duration;

use feedgate_tests::load::{Deliver, Fleet, Home, Plan, Server, Wire};

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
    tokens: Vec<String>,
    /// The directory of the server. It is dropped after the server.
    _home: Home,
}

impl World {
    /// Starts the server, sets the edges and makes every inbox, so that what follows measures sessions.
    pub(crate) async fn make(options: Options, binaries: &Path) -> anyhow::Result<Self> {
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
        Ok(Self { options, server, tokens, _home: home })
    }

    pub(crate) fn sessions(&self) -> usize {
        self.tokens.len()
    }

    /// Connects every reader to the server.
    pub(crate) async fn connect(&self, deliver: Deliver, wire: Wire) -> anyhow::Result<Fleet> {
        let plan = Plan {
            addresses: &[self.server.address()],
            deliver,
            wire,
            tokens: &self.tokens,
            stalled: 0..0,
            tls: self.server.tls(),
        };
        Fleet::connect(plan).await
    }

    /// Connects the readers of [`LOUD`], of whom those in `stalled` stop reading.
    pub(crate) async fn connect_loud(&self, stalled: Range<usize>) -> anyhow::Result<Fleet> {
        let (addresses, tokens) = (&[self.server.address()], &self.tokens[LOUD_READERS]);
        Fleet::connect(Plan {
            addresses,
            deliver: Deliver::Items,
            wire: Wire::Json,
            tokens,
            stalled,
            tls: self.server.tls(),
        })
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
