//! The authors and readers of the server that is attacked.
//!
//! ```text
//!   quiet ◀── neighbour       what is measured
//!   loud  ◀── mallory         a page of large posts, which the attacker asks for
//!   star  ◀── every reader    a post to all of them
//! ```

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use feedgate_tests::load::{Home, Server};

use crate::options::Options;

/// The neighbour follows this author.
pub(crate) const QUIET: &str = "quiet";

/// All readers follow this author.
pub(crate) const STAR: &str = "star";

const LOUD: &str = "loud";

/// A page of an attacker: so many posts of so many bytes of text.
const PAGE: u64 = 100;
const POST_BYTES: usize = 60 * 1024;

/// Posts in one batch, which a request has room for.
const BATCH: u64 = 20;

/// Inboxes made at a time.
const READING: usize = 64;

/// The server that is attacked, and its readers.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) neighbour_token: String,
    attacker_token: String,
    reader_tokens: Vec<String>,
    api_key: String,
    /// The directory of the server. It is dropped after the server.
    _home: Home,
}

/// The attacker's address is a stranger's, other than that of the neighbour and of all readers, who stand for many. A
/// server from before there were limits per address knows no such setting.
fn settings(binaries: &Path) -> anyhow::Result<&'static str> {
    let known = Command::new(binaries.join("feedgate")).arg("default-config").output()?.stdout;
    let limits = String::from_utf8_lossy(&known).contains("trusted_proxies");
    Ok(if limits { "[gateway]\ntrusted_proxies = [\"127.0.0.1/32\"]\n" } else { "" })
}

/// What an attacker knows.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// A good token of a reader whose page is large.
    pub(crate) token: String,
    /// The tokens of the star's readers.
    pub(crate) reader_tokens: Vec<String>,
    /// The API key, for the star's posts, which are honest load.
    pub(crate) api_key: String,
}

impl World {
    /// Starts the server and fills it.
    pub(crate) async fn make(options: &Options, binaries: &Path) -> anyhow::Result<Self> {
        let home = Home::make(binaries)?;
        let server = home.start("server", &["feedgate", "serve"], "--listen", settings(binaries)?).await?;
        let backend = &server.backend;
        let readers: Vec<String> = (0..options.readers).map(|n| format!("reader-{n}")).collect();
        backend.classify(STAR, "push").await?;
        backend.follow(&readers, STAR).await?;
        backend.follow(&["neighbour".to_owned()], QUIET).await?;
        backend.follow(&["mallory".to_owned()], LOUD).await?;
        for _ in 0..PAGE / BATCH {
            backend.publish_burst(LOUD, POST_BYTES, BATCH).await?;
        }
        backend.quiet().await?;
        for chunk in readers.chunks(READING) {
            futures_util::future::try_join_all(chunk.iter().map(|user| backend.page(user))).await?;
        }
        backend.quiet().await?;
        let of = |user: &str| anyhow::Ok(home.tokens(std::iter::once(user.to_owned()))?.remove(0));
        let (neighbour_token, attacker_token) = (of("neighbour")?, of("mallory")?);
        let reader_tokens = home.tokens(readers.into_iter())?;
        let api_key = home.api_key().to_owned();
        Ok(Self { server, neighbour_token, attacker_token, reader_tokens, api_key, _home: home })
    }

    /// What an attacker gets to know.
    pub(crate) fn target(&self) -> Target {
        Target {
            address: self.server.address(),
            token: self.attacker_token.clone(),
            reader_tokens: self.reader_tokens.clone(),
            api_key: self.api_key.clone(),
        }
    }
}
