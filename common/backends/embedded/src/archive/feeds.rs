//! Names and numbers of feeds. A process asks for them when it starts, and seldom later.

use compact_str::CompactString;
use feedgate_common::error::Result;
use feedgate_common::{FeedId, StoreError};

use super::tables::{Counters, Feeds};
use crate::view::{Read, Tx, View};

/// The number of each name; `None` for a name that has none.
pub(super) fn known(view: &View, names: &[CompactString]) -> Result<Vec<Option<FeedId>>> {
    names.iter().map(|name| view.get::<Feeds>(name)).collect()
}

/// The number of each name. A name that was never seen gets a new number.
pub(super) fn intern(tx: &mut Tx<'_>, names: &[CompactString]) -> Result<Vec<FeedId>> {
    let mut counters = tx.get::<Counters>(&())?.unwrap_or_default();
    let mut numbers = Vec::with_capacity(names.len());
    for name in names {
        let number = match tx.get::<Feeds>(name)? {
            Some(known) => known,
            None => {
                let next = counters.feeds.checked_add(1);
                counters.feeds =
                    next.ok_or_else(|| StoreError::unavailable("all 65,535 numbers of named feeds are given"))?;
                tx.put::<Feeds>(name, &FeedId(counters.feeds));
                tx.put::<Counters>(&(), &counters);
                FeedId(counters.feeds)
            }
        };
        numbers.push(number);
    }
    Ok(numbers)
}

/// The numbers of the main feed and of all named feeds.
pub(super) fn all(view: &View) -> Result<Vec<FeedId>> {
    let named = view.get::<Counters>(&())?.unwrap_or_default().feeds;
    Ok((FeedId::MAIN.0..=named).map(FeedId).collect())
}
