//! Reads the settings and the secrets of a running process again, when it gets SIGHUP.
//!
//! ```text
//!   SIGHUP ──▶ file, environment, secrets ──▶ checked as a whole ──▶ what can change holds at once ──▶ a line in the log
//!                                               └ anything wrong ──▶ nothing changes, and the log says what is wrong
//! ```
//!
//! Invariants: everything is read and checked before anything changes, and no change can fail. No session is closed.
//! The log names settings and files of secrets, and shows no value.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use arc_swap::ArcSwap;
use feedgate_common::feed::Feeds;
use feedgate_common::named::NamedFeeds;
use feedgate_gateway::{Gateway, Keys, Shown};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::change::{self, Change, Changes};
use crate::settings::Settings;
use crate::webhook::{Key, Webhook};
use crate::{log, secrets};

/// Reads the settings of this process from where they were read at its start.
pub(crate) type Source = Arc<dyn Fn() -> anyhow::Result<Settings> + Send + Sync>;

/// The settings that are in use now. All clones share them.
#[derive(Clone)]
pub(crate) struct Current(Arc<ArcSwap<Settings>>);

impl Current {
    /// The settings that were read at the start.
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(settings)))
    }

    /// All settings by name, for `GET /v1/settings`.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        change::shown(&self.0.load())
    }
}

/// The source of the settings of a process, and the parts that take them in every process.
pub(crate) struct Given {
    /// The function that reads the settings.
    pub(crate) source: Source,
    /// The settings that are in use now.
    pub(crate) current: Current,
    /// The filter of the log.
    pub(crate) filter: log::Filter,
}

/// The parts of a process that take settings or secrets while they run.
pub(crate) struct Users {
    /// The directory of the secrets.
    pub(crate) secrets: PathBuf,
    /// The feeds, whose Archive tells users of what happens.
    pub(crate) feeds: Arc<Feeds>,
    /// The gateway of this process with the settings that it was made with, if there is one.
    pub(crate) gateway: Option<(Gateway, feedgate_gateway::Settings)>,
    /// The caller of the webhook, if there is one.
    pub(crate) webhook: Option<Arc<Webhook>>,
}

impl Users {
    /// The digests of all secrets that are used here.
    fn digests(&self) -> anyhow::Result<BTreeMap<String, [u8; 32]>> {
        let of_gateway: &[&str] = if self.gateway.is_some() { &["api_key", "token_key"] } else { &[] };
        let of_webhook: &[&str] = if self.webhook.is_some() { &["webhook_key"] } else { &[] };
        secrets::digests(&self.secrets, &[of_gateway, of_webhook].concat())
    }
}

/// The part of a process that reloads.
pub(crate) struct Reload {
    given: Given,
    users: Users,
    digests: Mutex<BTreeMap<String, [u8; 32]>>,
}

/// All that was read, after the checks.
struct Checked {
    changes: Changes,
    settings: Settings,
    filter: EnvFilter,
    gateway: Option<(feedgate_gateway::Settings, Keys)>,
    webhook_keys: Option<Vec<Key>>,
    named: NamedFeeds,
    digests: BTreeMap<String, [u8; 32]>,
}

impl Reload {
    /// Fails if the secrets cannot be read.
    pub(crate) fn new(given: Given, users: Users) -> anyhow::Result<Self> {
        let digests = Mutex::new(users.digests()?);
        Ok(Self { given, users, digests })
    }

    /// Reloads whenever `signal` comes, until `stop`. Never fails: a reload that is refused is logged.
    pub(crate) async fn at_each(self, mut signal: Signal, stop: CancellationToken) -> anyhow::Result<()> {
        let reload = Arc::new(self);
        loop {
            tokio::select! {
                Some(()) = signal.recv() => {}
                () = stop.cancelled() => return Ok(()),
            }
            let reload = reload.clone();
            tokio::task::spawn_blocking(move || reload.once()).await?;
        }
    }

    /// Reads, checks and takes everything, or nothing. Blocks, so no thread of the runtime may call it.
    fn once(&self) {
        if let Err(error) = self.check().and_then(|checked| self.take(checked)) {
            let why = crate::told(&error).replace("\n  ", "; ");
            tracing::error!("the settings were read again and are not taken, so all stays as it was: {why}");
        }
    }

    fn check(&self) -> anyhow::Result<Checked> {
        let file = (self.given.source)()?;
        let now = self.given.current.0.load_full();
        let (changes, settings) = (change::of(&now, &file), change::taken(&now, &file));
        // The two are right separately, but together they might not be.
        let problems = settings.problems();
        ensure!(
            problems.is_empty(),
            "the settings are wrong with those that need a restart\n  {}",
            problems.join("\n  ")
        );
        let Users { secrets, gateway, webhook, feeds } = &self.users;
        let named = Handle::current().block_on(settings.interned_feeds(&**feeds.archive(), &feeds.named()))?;
        let digests = self.users.digests()?;
        let gateway = gateway.as_ref().map(|(_, made_with)| {
            // The gateway was made with room for fewer connections, if the process may open few files.
            let made = Settings { gateway: made_with.clone(), ..Settings::clone(&now) };
            let settings = change::taken(&made, &file).gateway;
            let keys = secrets::reread(secrets)?.keys(secrets, &settings)?;
            anyhow::Ok((settings, keys))
        });
        let webhook_keys = webhook.as_ref().map(|_| secrets::webhook_keys(secrets));
        let (gateway, webhook_keys, filter) =
            (gateway.transpose()?, webhook_keys.transpose()?, log::filter(&settings.log).context("log")?);
        Ok(Checked { changes, settings, filter, gateway, webhook_keys, named, digests })
    }

    fn take(&self, checked: Checked) -> anyhow::Result<()> {
        let Checked { changes, settings, filter, gateway, webhook_keys, named, digests } = checked;
        if let (Some((running, _)), Some((settings, keys))) = (&self.users.gateway, gateway) {
            running.reload(settings, &keys).map_err(|problem| anyhow!(problem))?;
        }
        if let (Some(webhook), Some(keys)) = (&self.users.webhook, webhook_keys) {
            webhook.sign_by(keys);
        }
        self.users.feeds.hold(named, settings.comments.visible);
        settings.notify.hold(&self.users.feeds);
        self.given.current.0.store(Arc::new(settings));
        let secrets = differing(&std::mem::replace(&mut *self.digests.lock(), digests.clone()), &digests);
        let say = || {
            let [changed, restart] = [&changes.reload, &changes.restart].map(|changes| names(changes));
            tracing::info!(
                changed,
                secrets = secrets.join(" "),
                needs_restart = restart,
                "the settings were read again"
            );
        };
        // The line is written if either filter lets it through.
        let is_heard = tracing::enabled!(tracing::Level::INFO);
        if is_heard {
            say();
        }
        // This fails only if the log has ended.
        let _ = self.given.filter.reload(filter);
        if !is_heard {
            say();
        }
        Ok(())
    }
}

fn names(changes: &[Change]) -> String {
    changes.iter().map(|change| change.name.as_str()).collect::<Vec<_>>().join(" ")
}

/// The names of the files that only one of the two has, or that differ in contents.
fn differing(before: &BTreeMap<String, [u8; 32]>, after: &BTreeMap<String, [u8; 32]>) -> Vec<String> {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let mut names: Vec<String> = names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect();
    names.sort_unstable();
    names
}
