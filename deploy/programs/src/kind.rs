//! Which stores three URLs name: those of this process alone, or those that several processes share.
//!
//! ```text
//!   archive_url   inbox_url            bus_url
//!   embedded:     embedded:            embedded:        one data directory, one process
//!   postgres://   redis:// rediss://   nats:// tls://   any number of processes (feature `cluster`)
//! ```
//!
//! Invariant: all three are embedded or none is. No other process can see what one process holds in its own files, so
//! the parts of a mixed cluster would not know of each other.

use crate::url::StoreUrl;

/// The URL of a store that this process holds in its own files.
pub(crate) const EMBEDDED: &str = "embedded:";

/// Who can use the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The stores belong to this process alone.
    Embedded,
    /// The stores are shared with other processes.
    Cluster,
}

impl Kind {
    /// The kind of the stores that the URLs of the Archive, the inboxes and the bus name, or all that is wrong with the
    /// URLs.
    pub(crate) fn of(archive: &StoreUrl, inbox: &StoreUrl, bus: &StoreUrl) -> Result<Self, Vec<String>> {
        let urls = [
            ("archive_url", archive, &["postgres", "postgresql"], "postgres://USER@HOST/DATABASE"),
            ("inbox_url", inbox, &["redis", "rediss"], "redis://HOST:PORT"),
            ("bus_url", bus, &["nats", "tls"], "nats://HOST:PORT"),
        ];
        let is_embedded = |url: &StoreUrl| *url == StoreUrl::new(EMBEDDED);
        let (embedded, shared): (Vec<_>, Vec<_>) = urls.into_iter().partition(|(_, url, ..)| is_embedded(url));
        let problems: Vec<String> = shared
            .iter()
            .filter(|(_, url, schemes, _)| !schemes.contains(&url.scheme()))
            .map(|(key, url, _, right)| format!("{key} must be \"{EMBEDDED}\" or \"{right}\", it is \"{url}\""))
            .collect();
        let keys =
            |urls: &[(&'static str, _, _, _)]| urls.iter().map(|(key, ..)| *key).collect::<Vec<_>>().join(" and ");
        match (shared.is_empty(), embedded.is_empty()) {
            _ if !problems.is_empty() => Err(problems),
            (true, _) => Ok(Self::Embedded),
            (false, false) => Err(vec![format!(
                "{} must not be \"{EMBEDDED}\" while {} {} not: what this process holds in its own files no other \
                 process sees, so all three are embedded or none is",
                keys(&embedded),
                keys(&shared),
                if shared.len() == 1 { "is" } else { "are" }
            )]),
            (false, true) if cfg!(not(feature = "cluster")) => Err(vec![format!(
                "archive_url is \"{}\", and this build holds the embedded stores only; build with: cargo build \
                 --release --features cluster",
                archive
            )]),
            (false, true) => Ok(Self::Cluster),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(archive: &str, inbox: &str, bus: &str) -> Result<Kind, Vec<String>> {
        let [archive, inbox, bus] = [archive, inbox, bus].map(StoreUrl::new);
        Kind::of(&archive, &inbox, &bus)
    }

    #[test]
    fn all_urls_are_embedded_or_none_is() {
        assert_eq!(kind_of(EMBEDDED, EMBEDDED, EMBEDDED), Ok(Kind::Embedded));
        let mixed = kind_of("postgres://ann:secret@db/x", EMBEDDED, EMBEDDED).unwrap_err().concat();
        assert!(
            mixed.starts_with("inbox_url and bus_url must not be \"embedded:\" while archive_url is not"),
            "{mixed}"
        );
        let mixed = kind_of("postgres://ann:secret@db/x", EMBEDDED, "nats://a").unwrap_err().concat();
        assert!(mixed.contains("while archive_url and bus_url are not"), "{mixed}");
    }

    #[test]
    fn each_url_has_its_own_schemes() {
        let wrong = kind_of("redis://:secret@a", "nats://secret@b", "postgres://c").unwrap_err();
        for (problem, right) in wrong.iter().zip([
            "archive_url must be \"embedded:\" or \"postgres://USER@HOST/DATABASE\", it is \"redis://***@a\"",
            "inbox_url must be \"embedded:\" or \"redis://HOST:PORT\", it is \"nats://***@b\"",
            "bus_url must be \"embedded:\" or \"nats://HOST:PORT\", it is \"postgres://c\"",
        ]) {
            assert_eq!(problem, right);
        }
        assert_eq!(wrong.len(), 3);
    }

    #[test]
    fn shared_stores_need_the_build_that_has_them() {
        let shared = kind_of("postgres://ann:secret@db/x", "rediss://:secret@a:7000,b:7001", "nats://secret@c");
        match shared {
            Ok(kind) => assert!(cfg!(feature = "cluster") && kind == Kind::Cluster),
            Err(problems) => {
                let problems = problems.concat();
                assert!(cfg!(not(feature = "cluster")) && problems.contains("--features cluster"), "{problems}");
                assert!(problems.contains("postgres://***@db/x") && !problems.contains("secret"), "{problems}");
            }
        }
    }
}
