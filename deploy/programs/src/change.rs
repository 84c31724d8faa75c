//! Which settings a running process takes at a reload, and how two sets of settings differ.
//!
//! [`SETTINGS`] is the only list of the settings that a reload takes. The reload, `GET /v1/settings`, `feedgate
//! check-config --against` and the table in `docs/operate.md` all follow it.

use std::borrow::Cow;

use feedgate_gateway::Shown;
use serde_json::Value;

use crate::layers;
use crate::settings::Settings;

/// What a running process does with another value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// The value is used for all that happens from then on, also in sessions that are open.
    AtOnce,
    /// The value is used for connections, sessions and tokens that come from then on.
    ForNew,
    /// The value from before stays until the process is started again.
    AtStart,
}

use Takes::{AtOnce, AtStart, ForNew};

/// Every setting, by its key with dots, in the order of `default.toml`. `NAME` stands for the name of any feed. A new
/// feed is taken as a whole.
pub(crate) const SETTINGS: [(&str, Takes); 101] = [
    ("listen", AtStart),
    ("admin_listen", AtStart),
    ("data", AtStart),
    ("log", AtOnce),
    ("log_format", AtStart),
    ("secrets", AtStart),
    ("archive_url", AtStart),
    ("inbox_url", AtStart),
    ("bus_url", AtStart),
    ("wait_for_stores_secs", AtStart),
    ("node", AtStart),
    ("health_listen", AtStart),
    ("backfill", AtStart),
    ("own_posts", AtStart),
    ("pull_above", AtStart),
    ("unread_days", AtStart),
    ("buckets", AtStart),
    ("feeds.NAME.cap", AtOnce),
    ("feeds.NAME.kinds", AtOnce),
    ("feeds.NAME.ranked", AtStart),
    ("feeds.NAME.ttl_hours", AtOnce),
    ("notify.reaction", AtOnce),
    ("notify.comment", AtOnce),
    ("notify.reply", AtOnce),
    ("notify.repost", AtOnce),
    ("notify.follow", AtOnce),
    ("notify.request", AtOnce),
    ("notify.accept", AtOnce),
    ("notify.mention", AtOnce),
    ("notify.grouped", AtOnce),
    ("comments.visible", AtOnce),
    ("tls.certificate", AtStart),
    ("tls.key", AtStart),
    ("admin_tls.certificate", AtStart),
    ("admin_tls.key", AtStart),
    ("admin_tls.client_ca", AtStart),
    ("stores_tls.ca", AtStart),
    ("stores_tls.certificate", AtStart),
    ("stores_tls.key", AtStart),
    ("gateway.connect_within_secs", ForNew),
    ("gateway.ping_interval_secs", AtStart),
    ("gateway.pong_within_secs", AtStart),
    ("gateway.refresh_grace_secs", ForNew),
    ("gateway.message_max_bytes", ForNew),
    ("gateway.write_buffer_max_bytes", AtOnce),
    ("gateway.commands_per_sec", AtOnce),
    ("gateway.connections_per_user", ForNew),
    ("gateway.connections", AtStart),
    ("gateway.responses_max_bytes", AtStart),
    ("gateway.reads_per_user", AtOnce),
    ("gateway.reads_per_user_per_sec", AtOnce),
    ("gateway.reads_per_address", AtOnce),
    ("gateway.reads_per_address_per_sec", AtOnce),
    ("gateway.http_connections", AtStart),
    ("gateway.connections_per_address", ForNew),
    ("gateway.unauthenticated_per_address", ForNew),
    ("gateway.upgrades_per_sec_per_address", ForNew),
    ("gateway.compress", AtOnce),
    ("gateway.batch", AtOnce),
    ("gateway.inline_changes", AtStart),
    ("gateway.reread_interval_secs", AtOnce),
    ("gateway.pull_repair_interval_secs", AtStart),
    ("gateway.pull_wakes_per_sec", AtOnce),
    ("gateway.save_interval_secs", AtStart),
    ("gateway.drain_ms", AtOnce),
    ("gateway.allowed_origins", ForNew),
    ("gateway.token_audience", ForNew),
    ("gateway.token_issuer", ForNew),
    ("gateway.jwks_url", AtStart),
    ("gateway.token_leeway_secs", ForNew),
    ("gateway.trusted_proxies", ForNew),
    ("gateway.client_address", ForNew),
    ("intake.open", AtStart),
    ("intake.in_flight", AtStart),
    ("intake.waiting_mb", AtStart),
    ("intake.refused_days", AtStart),
    ("intake.refused_mb", AtStart),
    ("events.kept_hours", AtStart),
    ("events.kept_mb", AtStart),
    ("search.fields", AtStart),
    ("timeline.in_flight", AtStart),
    ("timeline.buckets_at_once", AtStart),
    ("timeline.sweep_every_ms", AtStart),
    ("timeline.overdue_ms", AtStart),
    ("timeline.clean_every_ms", AtStart),
    ("timeline.retry_first_ms", AtStart),
    ("timeline.retry_max_ms", AtStart),
    ("timeline.drain_ms", AtStart),
    ("push.webhook_url", AtStart),
    ("push.allow_private", AtStart),
    ("push.debounce_secs", AtStart),
    ("push.min_interval_secs", AtStart),
    ("push.calls_per_sec", AtStart),
    ("push.calls_at_once", AtStart),
    ("push.batch", AtStart),
    ("push.timeout_secs", AtStart),
    ("push.retry_first_secs", AtStart),
    ("push.retry_max_secs", AtStart),
    ("push.tries", AtStart),
    ("traces.endpoint", AtStart),
    ("traces.sample", AtStart),
];

/// One setting that differs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    /// The key of the setting, with dots.
    pub(crate) name: String,
    /// The value that the process runs with; `None` if it has no such setting.
    pub(crate) before: Option<Value>,
    /// The value in the other settings; `None` if these settings do not have it.
    pub(crate) after: Option<Value>,
}

/// All settings that differ, sorted by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Changes {
    /// The settings that a reload takes.
    pub(crate) reload: Vec<Change>,
    /// The settings that need a restart.
    pub(crate) restart: Vec<Change>,
}

/// What a running process does with another value of the setting with this key.
fn takes(key: &str) -> Takes {
    let key = named(key);
    SETTINGS.iter().find(|(known, _)| *known == key).map_or(AtStart, |(_, takes)| *takes)
}

/// The key as it is written in [`SETTINGS`]: with `NAME` for the name of a feed.
fn named(key: &str) -> Cow<'_, str> {
    match feed_of(key).and_then(|feed| key.strip_prefix(feed)) {
        Some(rest) => Cow::Owned(format!("feeds.NAME{rest}")),
        None => Cow::Borrowed(key),
    }
}

/// The section of the feed to which this key belongs, as `feeds.likes`; `None` for any other setting.
fn feed_of(key: &str) -> Option<&str> {
    let name = key.strip_prefix("feeds.")?;
    Some(&key[..key.len() - name.len() + name.find('.')?])
}

/// These settings as `GET /v1/settings` shows them, sorted by name.
pub(crate) fn shown(settings: &Settings) -> Vec<Shown> {
    let shown = |(name, value): (String, toml::Value)| {
        let value = serde_json::to_value(value).expect("a value of TOML is one of JSON");
        Shown { reloads: takes(&name) != AtStart, name, value }
    };
    layers::values(settings).into_iter().map(shown).collect()
}

/// The differences between the settings `running`, which are in use, and the settings `file`. The running process says
/// which settings a reload takes. A new feed is taken too; any other setting that only one side has needs a restart.
pub(crate) fn between(running: &[Shown], file: &[Shown]) -> Changes {
    let find = |all: &[Shown], name: &str| all.iter().find(|shown| shown.name == name).cloned();
    let mut names: Vec<&String> = running.iter().chain(file).map(|shown| &shown.name).collect();
    names.sort_unstable();
    names.dedup();
    let mut changes = Changes::default();
    for name in names {
        let (before, after) = (find(running, name), find(file, name));
        let comes = feed_of(name).is_some_and(|feed| running.iter().all(|shown| feed_of(&shown.name) != Some(feed)));
        let reloads = comes || before.as_ref().is_some_and(|before| before.reloads && after.is_some());
        let [before, after] = [before, after].map(|shown| shown.map(|shown| shown.value));
        if before != after {
            let list = if reloads { &mut changes.reload } else { &mut changes.restart };
            list.push(Change { name: name.clone(), before, after });
        }
    }
    changes
}

/// The differences between the settings `running`, which are in use, and the settings `file`; also the URL of a store
/// if only its password differs.
pub(crate) fn of(running: &Settings, file: &Settings) -> Changes {
    let mut changes = between(&shown(running), &shown(file));
    let urls = |settings: &Settings| {
        let Settings { archive_url, inbox_url, bus_url, .. } = settings.clone();
        [("archive_url", archive_url), ("inbox_url", inbox_url), ("bus_url", bus_url)]
    };
    for ((name, before), (_, after)) in urls(running).into_iter().zip(urls(file)) {
        if before != after && !changes.restart.iter().any(|change| change.name == name) {
            let told = |url: crate::url::StoreUrl| Some(Value::String(url.to_string()));
            changes.restart.push(Change { name: name.to_owned(), before: told(before), after: told(after) });
        }
    }
    changes
}

/// The settings `running` with all values of `file` that a reload takes. A feed that `file` does not have stays
/// unchanged.
pub(crate) fn taken(running: &Settings, file: &Settings) -> Settings {
    let is_taken = |key: &str| match feed_of(key).and_then(|feed| feed.strip_prefix("feeds.")) {
        Some(feed) if !running.feeds.contains_key(feed) => true,
        _ => takes(key) != AtStart,
    };
    layers::with_values(running, layers::values(file).into_iter().filter(|(key, _)| is_taken(key)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::Feed;
    use crate::url::StoreUrl;

    fn names(changes: &[Change]) -> Vec<&str> {
        changes.iter().map(|change| change.name.as_str()).collect()
    }

    /// Settings that differ from the defaults in each of these values.
    fn with(values: &[(&str, toml::Value)]) -> Settings {
        layers::with_values(&Settings::default(), values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())))
    }

    #[test]
    fn every_setting_is_named_once_with_what_becomes_of_another_value() {
        let feeds = [("likes".into(), Feed::default())].into();
        let all = layers::values(&Settings { feeds, ..Settings::default() });
        let named: BTreeSet<Cow<'_, str>> = SETTINGS.iter().map(|(key, _)| Cow::Borrowed(*key)).collect();
        assert_eq!(named.len(), SETTINGS.len(), "a setting is named twice");
        let exist: BTreeSet<Cow<'_, str>> = all.keys().map(|key| self::named(key)).collect();
        assert_eq!(named, exist);
    }

    #[test]
    fn the_page_for_operators_lists_what_the_code_does() {
        let page = include_str!("../../../docs/operate.md");
        let section = |key: &'static str| key.rsplit_once('.').map_or("", |(section, _)| section);
        for of in SETTINGS.iter().map(|(key, _)| section(key)).collect::<BTreeSet<_>>() {
            let keys = |which: Takes| {
                let keys = SETTINGS.iter().filter(|(key, takes)| section(key) == of && *takes == which);
                let names =
                    keys.map(|(key, _)| format!("`{}`", key.rsplit('.').next().expect("a key has a last part")));
                names.collect::<Vec<_>>().join(", ")
            };
            let name = if of.is_empty() { "at the top".to_owned() } else { format!("`[{of}]`") };
            let row = format!("| {name} | {} | {} | {} |\n", keys(AtOnce), keys(ForNew), keys(AtStart));
            assert!(page.contains(&row), "docs/operate.md lacks this row:\n{row}");
        }
    }

    #[test]
    fn what_differs_is_told_by_what_it_takes_and_nothing_else_is() {
        let (running, file) = (
            Settings::default(),
            with(&[
                ("log", "warn".into()),
                ("gateway.batch", 7.into()),
                ("gateway.allowed_origins", vec!["https://a.example"].into()),
                ("buckets", 32.into()),
                ("timeline.in_flight", 1.into()),
            ]),
        );
        assert_eq!(of(&running, &running), Changes::default());
        let changes = of(&running, &file);
        assert_eq!(names(&changes.reload), ["gateway.allowed_origins", "gateway.batch", "log"]);
        assert_eq!(names(&changes.restart), ["buckets", "timeline.in_flight"]);
        assert_eq!((&changes.reload[1].before, &changes.reload[1].after), (&Some(100.into()), &Some(7.into())));
    }

    #[test]
    fn another_password_of_a_store_needs_a_restart_and_is_not_shown() {
        let of_url = |url: &str| Settings { archive_url: StoreUrl::new(url), ..Settings::default() };
        let changes = of(&of_url("postgres://ann:pa55@db/x"), &of_url("postgres://ann:hidden@db/x"));
        assert_eq!((names(&changes.reload), names(&changes.restart)), (vec![], vec!["archive_url"]));
        let told = format!("{changes:?} {:?}", shown(&of_url("postgres://ann:pa55@db/x")));
        assert!(!told.contains("pa55") && !told.contains("hidden"), "{told}");
    }

    #[test]
    fn a_reload_takes_what_can_change_and_leaves_the_rest_with_its_passwords() {
        let running =
            Settings { bus_url: StoreUrl::new("nats://secret@a"), ..with(&[("gateway.connections", 5.into())]) };
        let file = Settings {
            bus_url: StoreUrl::new("nats://b"),
            ..with(&[("gateway.batch", 7.into()), ("buckets", 32.into())])
        };
        let taken = taken(&running, &file);
        let mut right = running.clone();
        right.gateway.batch = 7;
        assert_eq!(taken, right);
        assert_eq!(names(&of(&taken, &file).restart), ["buckets", "bus_url", "gateway.connections"]);
        assert_eq!(names(&of(&taken, &file).reload), Vec::<&str>::new());
    }

    #[test]
    fn a_feed_that_comes_is_taken_as_a_whole_and_one_that_goes_stays_until_a_restart() {
        let of_feeds = |feeds: &[(&str, Feed)]| Settings {
            feeds: feeds.iter().map(|(name, feed)| ((*name).into(), feed.clone())).collect(),
            ..Settings::default()
        };
        let feed = |kind: &str, cap| Feed { kinds: vec![kind.into()], cap, ..Feed::default() };
        let best = Feed { ranked: true, ..Feed::default() };
        let running = of_feeds(&[("a", feed("x", 10)), ("b", feed("y", 10))]);
        let file = of_feeds(&[("a", feed("z", 20)), ("best", best.clone())]);
        let changes = of(&running, &file);
        let comes = ["feeds.best.cap", "feeds.best.kinds", "feeds.best.ranked", "feeds.best.ttl_hours"];
        assert_eq!(names(&changes.reload), [&["feeds.a.cap", "feeds.a.kinds"], &comes[..]].concat());
        let goes = ["feeds.b.cap", "feeds.b.kinds", "feeds.b.ranked", "feeds.b.ttl_hours"];
        assert_eq!(names(&changes.restart), goes);
        assert_eq!(
            taken(&running, &file),
            of_feeds(&[("a", feed("z", 20)), ("b", feed("y", 10)), ("best", best.clone())])
        );
        let changes = of(&running, &of_feeds(&[("a", feed("x", 10)), ("b", best)]));
        assert_eq!(
            (names(&changes.reload), names(&changes.restart)),
            (vec!["feeds.b.cap", "feeds.b.kinds"], vec!["feeds.b.ranked"])
        );
    }

    #[test]
    fn the_running_process_says_what_it_takes_and_a_setting_that_it_does_not_know_needs_a_restart() {
        let one = |name: &str, value: i32, reloads| Shown { name: name.into(), value: value.into(), reloads };
        let running = [one("a", 1, true), one("b", 1, false), one("old", 1, true)];
        let changes = between(&running, &[one("a", 2, false), one("b", 2, true), one("new", 1, true)]);
        assert_eq!((names(&changes.reload), names(&changes.restart)), (vec!["a"], vec!["b", "new", "old"]));
    }
}
