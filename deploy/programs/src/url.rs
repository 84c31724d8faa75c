//! The URL of a store. The URL may hold a password, so it is always shown without one.
//!
//! Invariant: neither `Display`, `Debug` nor `Serialize` shows what is before the last `@` or after a `?`.

use std::fmt::{Debug, Display, Formatter, Result};

use serde::{Deserialize, Serialize, Serializer};

/// The URL of a store, which may be any text; [`crate::settings`] checks it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoreUrl(String);

impl StoreUrl {
    /// Keeps a URL as an operator wrote it.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The whole URL with its password, for the code that connects.
    #[cfg(feature = "cluster")]
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The part before `://`; empty if there is none.
    pub(crate) fn scheme(&self) -> &str {
        self.0.split_once("://").map_or("", |(scheme, _)| scheme)
    }
}

impl Display for StoreUrl {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (scheme, rest) = match (self.0.split_once("://"), self.0.split_once(':')) {
            (Some(parts), _) => parts,
            (None, Some((scheme, ""))) => return write!(f, "{scheme}:"),
            (None, None) if self.0.is_empty() => return Ok(()),
            // This is no URL, but it may be a password in the wrong place.
            (None, _) => return f.write_str("…"),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        if query.contains('@') {
            // The `@` may be of the query, or of a password with a `?` in it, so nothing is shown.
            return write!(f, "{scheme}://…");
        }
        // The last `@` counts, even after a slash, since a slash may be in the password.
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
            // As from a variable or a file that is there and empty.
            ("", ""),
        ] {
            let url = StoreUrl::new(url);
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("{shown:?}"));
        }
    }
}
