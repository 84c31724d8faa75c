//! The setting `backfill`: how many earlier items of an author a new follow shows.

use feedgate_common::feed::DEFAULT_BACKFILL;
use serde::{Deserialize, Serialize};

/// The most items that a follow may bring: the log keeps at least this many changes.
const MAX: usize = 1000;

/// How many earlier items of the author a new follow shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Backfill {
    /// A follow shows at most this many of the newest items.
    Newest(usize),
    /// A follow shows all items.
    Past(Past),
}

/// The word for all items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Past {
    /// The word is written `all`.
    All,
}

impl Default for Backfill {
    fn default() -> Self {
        Self::Newest(DEFAULT_BACKFILL)
    }
}

impl Backfill {
    /// How many items a follow step brings at most.
    pub(crate) fn newest(self) -> usize {
        match self {
            Self::Newest(newest) => newest,
            Self::Past(Past::All) => DEFAULT_BACKFILL,
        }
    }

    /// Whether a follow that begins shows all items.
    pub(crate) fn is_all(self) -> bool {
        self == Self::Past(Past::All)
    }

    /// What is wrong with the value; `None` if it is right.
    pub(super) fn problem(self) -> Option<String> {
        let newest = self.newest();
        (newest > MAX).then(|| format!("backfill must be at most {MAX}, or \"all\", it is {newest}"))
    }
}
