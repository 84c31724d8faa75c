//! The URL of a store. It may hold a password, so it is shown without one wherever it is shown.
//!
//! Invariant: neither `Display`, `Debug` nor `Serialize` gives away what stands before the last `@` or behind a `?`.

use std::fmt::{Debug, Display, Formatter, Result};

use serde::{Deserialize, Serialize, Serializer};

/// See the module. Any text; [`crate::settings`] says which are right.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoreUrl(String);

impl StoreUrl {
    /// A URL as an operator wrote it.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// All of it, password included: for whoever connects.
    #[cfg(feature = "cluster")]
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// What stands before `://`; empty if there is none.
    pub(crate) fn scheme(&self) -> &str {
        self.0.split_once("://").map_or("", |(scheme, _)| scheme)
    }
}

impl Display for StoreUrl {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (scheme, rest) = match (self.0.split_once("://"), self.0.split_once(':')) {
            (Some(parts), _) => parts,
            (None, Some((scheme, ""))) => return write!(f, "{scheme}:"),
            // No URL; perhaps a password in the wrong place.
            (None, _) => return f.write_str("…"),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        if query.contains('@') {
            // Of a query, or of a password with a `?` in it: nobody can tell.
            return write!(f, "{scheme}://…");
        }
        // The last one, even behind a slash, which may be a password's.
        let shown = place.rsplit_once('@').map_or(place.to_owned(), |(_, place)| format!("***@{place}"));
        let query = if query.is_empty() { "" } else { "?…" };
        write!(f, "{scheme}://{shown}{query}")
    }
}

impl Debug for StoreUrl {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_what_could_be_a_password() {
        for (url, shown) in [
            ("embedded:", "embedded:"),
            ("postgres://db/feedgate", "postgres://db/feedgate"),
            ("postgres://ann:secret@db:5432/feedgate", "postgres://***@db:5432/feedgate"),
            ("postgres://ann:sec@r/et@db/feedgate", "postgres://***@db/feedgate"),
            ("postgres://db/feedgate?password=secret", "postgres://db/feedgate?…"),
            ("postgres://db/x?password=se@cret", "postgres://…"),
            ("postgres://ann:se?cret@db/x", "postgres://…"),
            ("redis://:secret@a:7000,b:7001", "redis://***@a:7000,b:7001"),
            ("nats://secret@c", "nats://***@c"),
            ("redis:secret", "…"),
            ("secret", "…"),
        ] {
            let url = StoreUrl::new(url);
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("{shown:?}"));
        }
    }
}
