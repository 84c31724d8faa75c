//! Everything that an operator may set, as one value that is checked as a whole before anything starts.
//!
//! Settings are values; where they come from (file, environment, flags) is [`crate::layers`]. The only
//! secrets among them are passwords in URLs, which [`StoreUrl`] does not show, so they can be printed.

mod backfill;
mod comments;
mod events;
mod intake;
mod notify;
mod push;
mod search;
mod tls;
mod traces;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use compact_str::CompactString;
use feedgate_common::accept::Policy;
use feedgate_common::change::DEFAULT_PULL_ABOVE;
use feedgate_common::named::{CAP_MAX, NamedFeed, NamedFeeds};
use feedgate_common::{Archive, FeedId};
use serde::{Deserialize, Serialize};

pub(crate) use push::Push;
pub(crate) use tls::{AdminTls, PortFiles, StoresTls, Tls};
pub(crate) use traces::Traces;

use crate::kind::{EMBEDDED, Kind};
use crate::log::{self, LogFormat};
use crate::url::StoreUrl;
use backfill::Backfill;
use comments::Comments;
use events::Kept;
use intake::Intake;
use notify::Notify;
use search::Search;

/// The longest name of a node: it is a part of keys and subjects.
const NODE_MAX: usize = 64;

/// The most buckets: with more buckets, every fan-out would have very many tiny steps.
const BUCKETS_MAX: u16 = 1024;

/// The most days an inbox may be kept unread: longer than anybody stays away.
const UNREAD_DAYS_MAX: u32 = 3650;

const HOUR_MS: i64 = 3_600_000;

/// All settings; `default-config` prints them with comments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Where devices connect and, if this is a loopback address, backends too.
    pub(crate) listen: SocketAddr,
    /// Where backends connect when `listen` is not loopback, or one of the two serves TLS.
    pub(crate) admin_listen: SocketAddr,
    /// The directory of everything that this server keeps.
    pub(crate) data: PathBuf,
    /// The filter of what is logged to stderr, as `tracing_subscriber::EnvFilter` reads it.
    pub(crate) log: String,
    /// How a line of the log is written.
    pub(crate) log_format: LogFormat,
    /// The store that keeps items and edges.
    pub(crate) archive_url: StoreUrl,
    /// The store that keeps inboxes and sessions.
    pub(crate) inbox_url: StoreUrl,
    /// The store that carries jobs and wakes.
    pub(crate) bus_url: StoreUrl,
    /// How many seconds a start waits for stores that are not there yet.
    pub(crate) wait_for_stores_secs: u32,
    /// The directory of the two secrets; empty: `secrets` in `data`.
    pub(crate) secrets: PathBuf,
    /// The name of this process among others; empty: the machine's name.
    pub(crate) node: String,
    /// Where the worker `timeline` answers questions about its health.
    pub(crate) health_listen: SocketAddr,
    /// How many earlier items of an author a new follow shows.
    pub(crate) backfill: Backfill,
    /// Whether an author's items are also in the author's own feed.
    pub(crate) own_posts: bool,
    /// An author of class `auto` with more followers than this is pulled.
    pub(crate) pull_above: u64,
    /// How many days an inbox is kept if nobody reads it.
    pub(crate) unread_days: u32,
    /// The number of buckets into which fan-out divides the readers; fixed when the store is made.
    pub(crate) buckets: u16,
    /// The feeds besides the main one, by name. All nodes must have the same feeds.
    pub(crate) feeds: BTreeMap<CompactString, Feed>,
    /// The settings of notifications: for which deeds users get them.
    pub(crate) notify: Notify,
    /// The settings of comments: whose comments and reactions users see.
    pub(crate) comments: Comments,
    /// The certificate and the key of `listen`.
    pub(crate) tls: Tls,
    /// The certificate and the key of `admin_listen`, and the authorities of its clients.
    pub(crate) admin_tls: AdminTls,
    /// The files for TLS with the stores of a cluster.
    pub(crate) stores_tls: StoresTls,
    /// Limits and times of the gateway.
    pub(crate) gateway: feedgate_gateway::Settings,
    /// Calls of backends over NATS.
    pub(crate) intake: Intake,
    /// How long the events for other programs are kept.
    pub(crate) events: Kept,
    /// The fields of items that are searched.
    pub(crate) search: Search,
    /// The settings of the timeline worker.
    pub(crate) timeline: feedgate_timeline::Settings,
    /// The settings of push notifications for readers who are away.
    pub(crate) push: Push,
    /// Where traces of writes are sent.
    pub(crate) traces: Traces,
}

/// The settings of one named feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Feed {
    /// Items of these kinds go to this feed, and to no other feed.
    pub(crate) kinds: Vec<CompactString>,
    /// Whether the feed holds the rankings that a recommender gives. Then no kind of item goes to the feed.
    pub(crate) ranked: bool,
    /// How many of the newest items are shown.
    pub(crate) cap: usize,
    /// Items that were published more hours ago than this are not shown; 0 shows all.
    pub(crate) ttl_hours: u32,
}

impl Default for Feed {
    fn default() -> Self {
        Self { kinds: vec![], ranked: false, cap: CAP_MAX, ttl_hours: 0 }
    }
}

impl Feed {
    /// The feed with this name and this number.
    fn named(&self, name: &CompactString, id: FeedId) -> NamedFeed {
        let ttl = (self.ttl_hours > 0).then(|| i64::from(self.ttl_hours) * HOUR_MS);
        NamedFeed { id, name: name.clone(), kinds: self.kinds.clone(), ranked: self.ranked, cap: self.cap, ttl }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            admin_listen: SocketAddr::from(([127, 0, 0, 1], 8081)),
            data: PathBuf::from("data"),
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            archive_url: StoreUrl::new(EMBEDDED),
            inbox_url: StoreUrl::new(EMBEDDED),
            bus_url: StoreUrl::new(EMBEDDED),
            wait_for_stores_secs: 60,
            secrets: PathBuf::new(),
            node: String::new(),
            health_listen: SocketAddr::from(([127, 0, 0, 1], 8082)),
            backfill: Backfill::default(),
            own_posts: false,
            pull_above: DEFAULT_PULL_ABOVE,
            unread_days: 7,
            buckets: 16,
            feeds: BTreeMap::new(),
            notify: Notify::default(),
            comments: Comments::default(),
            tls: Tls::default(),
            admin_tls: AdminTls::default(),
            stores_tls: StoresTls::default(),
            gateway: feedgate_gateway::Settings::default(),
            intake: Intake::default(),
            events: Kept::default(),
            search: Search::default(),
            timeline: feedgate_timeline::Settings::default(),
            push: Push::default(),
            traces: Traces::default(),
        }
    }
}

impl Settings {
    /// Whether backends must use `admin_listen`: because `listen` can be reached from other machines; because `listen`
    /// serves TLS, whose certificate the commands on this machine would have to trust; or because `admin_listen` has
    /// TLS of its own.
    pub(crate) fn splits(&self) -> bool {
        !self.listen.ip().is_loopback() || self.tls.is_on() || self.admin_tls.is_on()
    }

    /// What is given for nothing: an `admin_listen` that is not opened.
    pub(crate) fn unused(&self) -> Option<String> {
        let given = self.admin_listen;
        (!self.splits() && given != Self::default().admin_listen).then(|| {
            format!(
                "admin_listen {given} is not opened: listen {} is a loopback address, no port has TLS, and so listen \
                 takes the API key too",
                self.listen
            )
        })
    }

    /// The directory of the two secrets.
    pub(crate) fn secrets_dir(&self) -> PathBuf {
        if self.secrets.as_os_str().is_empty() { self.data.join("secrets") } else { self.secrets.clone() }
    }

    /// How long an inbox is kept if nobody reads it.
    pub(crate) fn unread(&self) -> Duration {
        Duration::from_secs(24 * 3600) * self.unread_days
    }

    /// A loop of the worker that does not come round for this long hangs, since each of its calls ends within seconds.
    pub(crate) fn silence_max(&self) -> Duration {
        2 * self.timeline.sweep_every + Duration::from_secs(60)
    }

    /// The named feeds, with the numbers that the Archive gives them. The Archive is asked only if a feed is not among
    /// those `known`. Fails if the Archive fails, or if the feeds are wrong.
    pub(crate) async fn interned_feeds(&self, archive: &dyn Archive, known: &NamedFeeds) -> anyhow::Result<NamedFeeds> {
        let ids: Option<Vec<FeedId>> = self.feeds.keys().map(|name| known.by_name(name)).collect();
        let ids = match ids {
            Some(ids) => ids,
            None => {
                let names: Vec<CompactString> = self.feeds.keys().cloned().collect();
                archive.intern_feeds(&names).await.context("the feeds of [feeds] get no numbers")?
            }
        };
        self.named_feeds(&ids).map_err(|problem| anyhow!(problem))
    }

    /// The named feeds, with the numbers `ids`.
    fn named_feeds(&self, ids: &[FeedId]) -> Result<NamedFeeds, String> {
        NamedFeeds::new(self.feeds.iter().zip(ids).map(|((name, feed), &id)| feed.named(name, id)).collect())
    }

    /// What is wrong with each named feed; if each is right, what is wrong with all of them together.
    fn problems_of_feeds(&self) -> Vec<String> {
        // The rules do not depend on the numbers, so any number will do.
        let alone = |(name, feed): (&CompactString, &Feed)| NamedFeeds::new(vec![feed.named(name, FeedId::MAIN)]).err();
        let problems: Vec<String> = self.feeds.iter().filter_map(alone).collect();
        if problems.is_empty() {
            return self.named_feeds(&vec![FeedId::MAIN; self.feeds.len()]).err().into_iter().collect();
        }
        problems
    }

    /// The rules for writes that these settings give.
    pub(crate) fn policy(&self) -> Policy {
        Policy { pull_above: self.pull_above, whole_past: self.backfill.is_all() }
    }

    /// Which kind of stores the three URLs name, or all that is wrong with the URLs.
    pub(crate) fn kind(&self) -> Result<Kind, Vec<String>> {
        Kind::of(&self.archive_url, &self.inbox_url, &self.bus_url)
    }

    /// All that is wrong with the settings, each with what would be right.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.kind().err().unwrap_or_default();
        if !(1..=BUCKETS_MAX).contains(&self.buckets) {
            problems.push(format!("buckets must be 1 to {BUCKETS_MAX}, it is {}", self.buckets));
        }
        problems.extend(self.backfill.problem());
        if !(1..=UNREAD_DAYS_MAX).contains(&self.unread_days) {
            problems.push(format!("unread_days must be 1 to {UNREAD_DAYS_MAX}, it is {}", self.unread_days));
        }
        if self.data.as_os_str().is_empty() {
            problems.push("data must name a directory, it is empty".to_owned());
        }
        // For port 0, the system chooses a different port each time.
        if self.splits() && self.listen == self.admin_listen && self.listen.port() != 0 {
            problems.push(format!("admin_listen must differ from listen, both are {}", self.listen));
        }
        if !is_node(&self.node) {
            let node = &self.node;
            problems.push(format!("node must be at most {NODE_MAX} of A-Za-z0-9_-, it is {node:?}"));
        }
        if let Err(error) = log::filter(&self.log) {
            problems.push(format!("log must be a filter such as \"info\" or \"info,feedgate_gateway=debug\": {error}"));
        }
        problems.extend(self.problems_of_feeds());
        problems.extend(self.notify.problems());
        problems.extend(self.tls.problems());
        problems.extend(self.admin_tls.problems());
        problems.extend(self.stores_tls.problems(self.kind().ok()));
        problems.extend(self.gateway.problems());
        problems.extend(self.intake.problems());
        if self.intake.open && self.kind() == Ok(Kind::Embedded) {
            let url = "bus_url = \"nats://HOST:PORT\"";
            problems
                .push(format!("intake.open takes calls from NATS, so it needs {url}; set it to false without NATS"));
        }
        problems.extend(self.events.problems());
        problems.extend(self.search.text().err());
        problems.extend(self.timeline.problems().into_iter().map(|problem| format!("timeline.{problem}")));
        problems.extend(self.push.problems());
        problems.extend(self.traces.problems(cfg!(feature = "otlp")));
        problems
    }
}

fn is_node(name: &str) -> bool {
    name.len() <= NODE_MAX && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_right_and_keep_to_loopback() {
        let settings = Settings::default();
        assert_eq!(settings.problems(), Vec::<String>::new());
        assert!(!settings.splits());
        assert!(settings.admin_listen.ip().is_loopback());
        assert_eq!(settings.push.settings(), feedgate_timeline::PushSettings::default());
    }

    #[test]
    fn a_named_feed_is_what_its_section_says_under_the_number_of_its_name() {
        let feed = |kind: &str, ttl_hours| Feed { kinds: vec![kind.into()], ranked: false, cap: 5, ttl_hours };
        let picks = Feed { ranked: true, ..Feed::default() };
        let all = [("stories", feed("story", 24)), ("picks", picks), ("likes", feed("like", 0))];
        let feeds = all.map(|(name, feed)| (name.into(), feed)).into();
        let settings = Settings { feeds, ..Settings::default() };
        let named = settings.named_feeds(&[FeedId(7), FeedId(9), FeedId(3)]).unwrap();
        assert_eq!([named.by_name("likes"), named.by_name("stories")], [Some(FeedId(7)), Some(FeedId(3))]);
        assert_eq!((named.of_kind(Some("story")), named.cap(FeedId(3))), (FeedId(3), Some(5)));
        assert_eq!([7, 9, 3].map(|id| named.is_ranked(FeedId(id))), [false, true, false]);
        let day = 24 * HOUR_MS;
        assert_eq!([7, 3].map(|id| named.expired_before(FeedId(id), day)), [None, Some(0)]);
    }

    #[tokio::test]
    async fn the_archive_is_asked_for_the_numbers_of_feeds_only_if_one_of_them_is_new() {
        let dir = tempfile::tempdir().unwrap();
        let stores = feedgate_embedded::Embedded::open(dir.path(), 1).unwrap();
        let feed = |kind: &str| Feed { kinds: vec![kind.into()], ..Feed::default() };
        let of = |names: &[&str]| Settings {
            feeds: names.iter().map(|name| ((*name).into(), feed(name))).collect(),
            ..Settings::default()
        };
        let known = of(&["likes"]).named_feeds(&[FeedId(7)]).unwrap();
        let same = of(&["likes"]).interned_feeds(&*stores.archive, &known).await.unwrap();
        assert_eq!(same.by_name("likes"), Some(FeedId(7)), "the Archive would have given 1");
        let more = of(&["likes", "posts"]).interned_feeds(&*stores.archive, &known).await.unwrap();
        assert_eq!(["likes", "posts"].map(|name| more.by_name(name)), [Some(FeedId(1)), Some(FeedId(2))]);
        assert_eq!(of(&[]).interned_feeds(&*stores.archive, &known).await.unwrap(), NamedFeeds::default());
    }

    #[test]
    fn every_wrong_value_is_named_in_one_go() {
        let wrong = Settings {
            listen: ([0, 0, 0, 0], 1).into(),
            admin_listen: ([0, 0, 0, 0], 1).into(),
            data: PathBuf::new(),
            log: "=".to_owned(),
            node: "a.b".to_owned(),
            archive_url: StoreUrl::new("mysql://ann:secret@db"),
            backfill: Backfill::Newest(1001),
            unread_days: 0,
            buckets: 0,
            feeds: BTreeMap::from([("likes".into(), Feed { cap: 0, kinds: vec!["like".into()], ..Feed::default() })]),
            notify: Notify { follow: "\n".into(), ..Notify::default() },
            tls: Tls { key: PathBuf::from("key.pem"), ..Tls::default() },
            admin_tls: AdminTls { client_ca: PathBuf::from("ca.pem"), ..AdminTls::default() },
            stores_tls: StoresTls { certificate: PathBuf::from("our.pem"), ..StoresTls::default() },
            gateway: feedgate_gateway::Settings { batch: 0, ..Default::default() },
            intake: Intake { in_flight: 0, ..Intake::default() },
            events: Kept { kept_hours: 0, ..Kept::default() },
            search: Search { fields: vec!["".into()] },
            timeline: feedgate_timeline::Settings { in_flight: 0, ..Default::default() },
            push: Push { tries: 0, ..Push::default() },
            traces: Traces { sample: 2.0, ..Traces::default() },
            ..Settings::default()
        };
        let problems = wrong.problems();
        let keys = [
            "archive_url",
            "buckets",
            "backfill",
            "unread_days",
            "data",
            "admin_listen",
            "node",
            "log",
            "feeds.likes.cap",
            "notify.follow",
            "tls.certificate",
            "admin_tls.certificate",
            "stores_tls.key",
            "gateway.batch",
            "intake.in_flight",
            "events.kept_hours",
            "search.fields",
            "timeline.in_flight",
            "push.tries",
            "traces.sample",
        ];
        assert_eq!(problems.len(), keys.len(), "{problems:#?}");
        for (key, problem) in keys.iter().zip(&problems) {
            assert!(problem.starts_with(key), "{problem}");
        }
        assert!(!problems.concat().contains("secret"));
    }
}
