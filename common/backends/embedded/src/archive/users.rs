//! The names and numbers of users, kept in memory.
//!
//! Invariant: a pair of a name and a number is remembered only once it is durable, and a pair never changes. So a
//! remembered pair is right for every reader and for the writer.

use feedgate_common::error::Result;
use feedgate_common::{StoreError, UserId, UserNo};
use quick_cache::sync::Cache;

use super::tables::{Names, Users};
use crate::view::{Read, Tx, View};

/// How many pairs are remembered in each direction; about 100 bytes each.
const REMEMBERED: usize = 100_000;

fn stored_id(from: &impl Read, no: UserNo) -> Result<UserId> {
    let text = from.get::<Users>(&no)?;
    let text = text.ok_or_else(|| StoreError::corrupt(format_args!("user {} has no name", no.0)))?;
    text.parse().map_err(|error| {
        StoreError::corrupt(format_args!("the name {text:?} of user {}: {error}", no.0)).with_source(error)
    })
}

/// Remembered pairs of names and numbers, in both directions.
pub(super) struct KnownUsers {
    by_name: Cache<UserId, UserNo>,
    by_no: Cache<UserNo, UserId>,
}

impl Default for KnownUsers {
    fn default() -> Self {
        Self { by_name: Cache::new(REMEMBERED), by_no: Cache::new(REMEMBERED) }
    }
}

impl KnownUsers {
    /// The number of a name, which is remembered from now on.
    pub(super) fn learn_no(&self, view: &View, name: &UserId) -> Result<Option<UserNo>> {
        if let Some(no) = self.by_name.get(name) {
            return Ok(Some(no));
        }
        let found = view.get::<Names>(&name.as_str().into())?;
        if let Some(no) = found {
            self.by_name.insert(name.clone(), no);
        }
        Ok(found)
    }

    /// The name of a number, which is remembered from now on. `Corrupt` if the number was never given, since only
    /// stored rows hold numbers.
    pub(super) fn learn_id(&self, view: &View, no: UserNo) -> Result<UserId> {
        if let Some(name) = self.by_no.get(&no) {
            return Ok(name);
        }
        let name = stored_id(view, no)?;
        self.by_no.insert(no, name.clone());
        Ok(name)
    }

    /// The name of a number as an operation sees it. The name may not be durable yet, so it is not remembered.
    pub(super) fn peek_id(&self, tx: &Tx<'_>, no: UserNo) -> Result<UserId> {
        self.by_no.get(&no).map_or_else(|| stored_id(tx, no), Ok)
    }

    /// The number of a name as an operation sees it. The number may not be durable yet, so it is not remembered.
    pub(super) fn peek_no(&self, tx: &Tx<'_>, name: &UserId) -> Result<Option<UserNo>> {
        match self.by_name.get(name) {
            Some(no) => Ok(Some(no)),
            None => tx.get::<Names>(&name.as_str().into()),
        }
    }
}
