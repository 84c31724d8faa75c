//! The two installations that are compared, with the same readers.
//!
//! ```text
//!   star  ◀── every reader           one post to all
//!   quiet ◀── the first reader       posts one after another
//!
//!   cluster:     backend ─▶ gateway-1,  devices ─▶ gateway-1 and gateway-2, one device ─▶ gateway-2
//!   standalone:  all at the one process
//!   crowd:       many gateways, each with its share of the readers
//! ```

use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Context;
use feedgate_tests::load::{Backend, Deliver, Engines, Fleet, Home, Plan, Server, Wire};

/// The author whom all readers follow.
pub(crate) const STAR: &str = "star";

/// The author whom only one reader follows.
pub(crate) const QUIET: &str = "quiet";

/// Inboxes made at a time.
const READING: usize = 16;

/// The processes of one run, with their engines. Fields are dropped in this order: processes before what they use.
pub(crate) struct World {
    /// What its figures are called.
    pub(crate) name: &'static str,
    /// The gateways first; backends are at the first of them.
    pub(crate) servers: Vec<Server>,
    pub(crate) engines: Option<Engines>,
    gateways: usize,
    tokens: Vec<String>,
    home: Home,
}

impl World {
    /// Starts one process over embedded stores.
    pub(crate) async fn standalone(binaries: &Path, readers: usize) -> anyhow::Result<Self> {
        let home = Home::make(binaries)?;
        let servers = vec![home.start("feedgate", &["feedgate", "serve"], "--listen", "").await?];
        Self { name: "standalone", servers, engines: None, gateways: 1, tokens: vec![], home }.people(readers).await
    }

    /// Two gateways and two workers over the three engines.
    pub(crate) async fn cluster(binaries: &Path, readers: usize) -> anyhow::Result<Self> {
        Self::over_engines("cluster", binaries, 2).await?.people(readers).await
    }

    /// Two gateways and two workers over the three engines, and `readers` who follow nobody yet.
    pub(crate) async fn busy(binaries: &Path, readers: usize) -> anyhow::Result<Self> {
        let mut world = Self::over_engines("busy", binaries, 2).await?;
        world.tokens = world.home.tokens((0..readers).map(Self::reader))?;
        Ok(world)
    }

    /// `gateways` gateways and two workers over the three engines, and no users yet.
    async fn over_engines(name: &'static str, binaries: &Path, gateways: usize) -> anyhow::Result<Self> {
        let home = Home::make(binaries)?;
        let engines = Engines::start()?;
        let settings = engines.settings();
        let mut servers = Vec::new();
        for n in 1..=gateways {
            servers.push(home.start(&format!("gateway-{n}"), &["gateway"], "--listen", &settings).await?);
        }
        for name in ["timeline-1", "timeline-2"] {
            servers.push(home.start(name, &["timeline"], "--health-listen", &settings).await?);
        }
        Ok(Self { name, servers, engines: Some(engines), gateways, tokens: vec![], home })
    }

    /// The name of a reader.
    pub(crate) fn reader(n: usize) -> String {
        format!("reader-{n}")
    }

    /// `gateways` gateways and two workers over the three engines. `readers` follow [`STAR`]; the neighbour, who has
    /// the first token, follows [`QUIET`]. The readers' inboxes are made when they subscribe.
    pub(crate) async fn crowd(binaries: &Path, readers: usize, gateways: usize) -> anyhow::Result<Self> {
        let mut world = Self::over_engines("crowd", binaries, gateways).await?;
        let users: Vec<String> = (0..readers).map(Self::reader).collect();
        let neighbour = ["neighbour".to_owned()];
        let backend = world.backend();
        backend.follow(&neighbour, QUIET).await?;
        for some in users.chunks(10_000) {
            backend.follow(some, STAR).await?;
            backend.quiet().await?;
        }
        world.tokens = world.home.tokens(neighbour.into_iter().chain(users))?;
        Ok(world)
    }

    /// The addresses to which devices connect.
    pub(crate) fn gateways(&self) -> &[Server] {
        &self.servers[..self.gateways]
    }

    /// The token of user `n`.
    pub(crate) fn token_of(&self, n: usize) -> anyhow::Result<String> {
        self.tokens.get(n).cloned().context("a user of this number")
    }

    /// Writes the tokens of a part of the crowd into a file, a line each, and gives its path.
    pub(crate) fn write_tokens(&self, part: Range<usize>) -> anyhow::Result<PathBuf> {
        let path = self.home.path().join(format!("tokens-{}", part.start));
        std::fs::write(&path, self.tokens[1..][part].join("\n"))?;
        Ok(path)
    }

    /// Sets the edges and makes every inbox, so that what follows measures posts.
    async fn people(mut self, readers: usize) -> anyhow::Result<Self> {
        let users: Vec<String> = (0..readers).map(Self::reader).collect();
        let backend = self.backend();
        backend.follow(&users, STAR).await?;
        backend.follow(&users[..1], QUIET).await?;
        self.tokens = self.home.tokens(users.into_iter())?;
        self.make_inboxes().await?;
        Ok(self)
    }

    /// Waits until all follows are brought, and reads a page of each reader, whose inbox is made by that.
    pub(crate) async fn make_inboxes(&self) -> anyhow::Result<()> {
        let backend = self.backend();
        backend.quiet().await?;
        let users: Vec<String> = (0..self.readers()).map(Self::reader).collect();
        for chunk in users.chunks(READING) {
            futures_util::future::try_join_all(chunk.iter().map(|user| backend.page(user))).await?;
        }
        backend.quiet().await
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.servers[0].backend
    }

    pub(crate) fn readers(&self) -> usize {
        self.tokens.len()
    }

    /// Connects every reader, one half at each gateway: neighbours in the order of readers lie in different buckets.
    pub(crate) async fn connect_all(&self, deliver: Deliver) -> anyhow::Result<Fleet> {
        Fleet::connect(Plan {
            addresses: &self.doors(),
            deliver,
            wire: Wire::Json,
            tokens: &self.tokens,
            stalled: 0..0,
            tls: None,
        })
        .await
    }

    /// Connects the reader of [`QUIET`] where the backend is not, if there is such a place.
    pub(crate) async fn connect_one(&self, deliver: Deliver) -> anyhow::Result<Fleet> {
        let doors = self.doors();
        let addresses = &doors[doors.len() - 1..];
        Fleet::connect(Plan {
            addresses,
            deliver,
            wire: Wire::Json,
            tokens: &self.tokens[..1],
            stalled: 0..0,
            tls: None,
        })
        .await
    }

    fn doors(&self) -> Vec<SocketAddr> {
        self.servers[..self.gateways].iter().map(Server::address).collect()
    }
}
