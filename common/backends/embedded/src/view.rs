//! Reading and writing rows. A [`View`] reads what is durable; a [`Tx`] reads and writes as one operation.
//!
//! ```text
//!   Read ◀── View   what the last finished group left; for everyone
//!     ▲
//!     └───── Tx     that, the earlier operations of the group, and its own writes; writer thread only
//! ```

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use feedgate_common::StoreError;
use feedgate_common::error::Result;
use fjall::{Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace, SingleWriterWriteTx, Snapshot, UserValue};

use crate::table::{Space, Table, key_bytes, key_of, range_bytes, row_bytes, row_of};

/// The trees of the store, by [`Space`].
pub(crate) type Spaces = Arc<[SingleWriterTxKeyspace; Space::ALL.len()]>;

/// Rows of the store as they are at one moment.
///
/// Errors: `Corrupt`, naming table and key, if stored bytes are no row of the table; `Unavailable` if the disk does not
/// answer.
pub trait Read {
    #[doc(hidden)]
    fn raw_get(&self, space: Space, key: &[u8]) -> fjall::Result<Option<UserValue>>;

    #[doc(hidden)]
    fn raw_range(&self, space: Space, range: impl RangeBounds<Vec<u8>>) -> fjall::Iter;

    /// The row at `key`.
    fn get<T: Table>(&self, key: &T::Key) -> Result<Option<T::Row>> {
        let found = self.raw_get(T::SPACE, &key_bytes::<T>(key)).map_err(store_error)?;
        found.map(|bytes| row_of::<T>(key, &bytes)).transpose()
    }

    /// Whether there is a row at `key`.
    fn has<T: Table>(&self, key: &T::Key) -> Result<bool> {
        Ok(self.raw_get(T::SPACE, &key_bytes::<T>(key)).map_err(store_error)?.is_some())
    }

    /// The rows whose keys lie in `range`, in order of the keys; in reverse with `rev`. A range whose end lies before
    /// its start is empty.
    fn scan<T: Table>(&self, range: impl RangeBounds<T::Key>) -> Rows<T> {
        let range = range_bytes::<T>(range);
        let iter = holds_something(&range).then(|| self.raw_range(T::SPACE, range));
        Rows { iter, table: PhantomData }
    }
}

/// Rows in the order of their keys. A row is read when the iterator is asked for it.
pub struct Rows<T> {
    iter: Option<fjall::Iter>,
    table: PhantomData<fn() -> T>,
}

impl<T: Table> Rows<T> {
    fn row(guard: fjall::Guard) -> Result<(T::Key, T::Row)> {
        let (key, row) = guard.into_inner().map_err(store_error)?;
        let key = key_of::<T>(&key)?;
        let row = row_of::<T>(&key, &row)?;
        Ok((key, row))
    }
}

impl<T: Table> Iterator for Rows<T> {
    type Item = Result<(T::Key, T::Row)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.iter.as_mut()?.next().map(Self::row)
    }
}

impl<T: Table> DoubleEndedIterator for Rows<T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.iter.as_mut()?.next_back().map(Self::row)
    }
}

fn holds_something((from, to): &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from <= to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from < to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
    }
}

/// The store as the last finished group left it, for every reader. A view is cheap for the length of a call; a view
/// that is held for minutes keeps old versions of rows on disk.
pub struct View {
    pub(crate) snapshot: Snapshot,
    pub(crate) spaces: Spaces,
}

impl Read for View {
    fn raw_get(&self, space: Space, key: &[u8]) -> fjall::Result<Option<UserValue>> {
        self.snapshot.get(&self.spaces[space as usize], key)
    }

    fn raw_range(&self, space: Space, range: impl RangeBounds<Vec<u8>>) -> fjall::Iter {
        self.snapshot.range(&self.spaces[space as usize], range)
    }
}

/// One operation on the writer thread. It sees every earlier operation and its own writes. Nobody else sees its writes
/// before they are as durable as was asked. An operation that is dropped without a commit changes nothing.
pub struct Tx<'a> {
    inner: SingleWriterWriteTx<'a>,
    spaces: &'a Spaces,
    wrote: bool,
}

impl<'a> Tx<'a> {
    pub(crate) fn begin(store: &'a SingleWriterTxDatabase, spaces: &'a Spaces) -> Self {
        Self { inner: store.write_tx(), spaces, wrote: false }
    }

    /// Sets the row at `key`.
    pub fn put<T: Table>(&mut self, key: &T::Key, row: &T::Row) {
        self.wrote = true;
        self.inner.insert(&self.spaces[T::SPACE as usize], key_bytes::<T>(key), row_bytes::<T>(row));
    }

    /// Sets the bytes of a row as another store has them.
    pub(crate) fn put_raw(&mut self, space: Space, key: Vec<u8>, row: Vec<u8>) {
        self.wrote = true;
        self.inner.insert(&self.spaces[space as usize], key, row);
    }

    /// Removes the row at `key`, if there is one.
    pub fn remove<T: Table>(&mut self, key: &T::Key) {
        self.wrote = true;
        self.inner.remove(&self.spaces[T::SPACE as usize], key_bytes::<T>(key));
    }

    /// Makes the writes a part of the store, all together. Answers whether there were any writes.
    pub(crate) fn commit(self) -> fjall::Result<bool> {
        self.inner.commit()?;
        Ok(self.wrote)
    }
}

impl Read for Tx<'_> {
    fn raw_get(&self, space: Space, key: &[u8]) -> fjall::Result<Option<UserValue>> {
        self.inner.get(&self.spaces[space as usize], key)
    }

    fn raw_range(&self, space: Space, range: impl RangeBounds<Vec<u8>>) -> fjall::Iter {
        self.inner.range(&self.spaces[space as usize], range)
    }
}

/// The error for callers: `Unavailable` if the disk does not answer, `Corrupt` for damage, which a human has to look
/// at.
pub(crate) fn store_error(error: fjall::Error) -> StoreError {
    use fjall::{Error, LsmError};
    match error {
        Error::Poisoned => StoreError::unavailable("an earlier write to disk failed; restart once the disk is sound"),
        Error::Locked => StoreError::unavailable("another process has the data directory open"),
        Error::Io(cause) | Error::Storage(LsmError::Io(cause)) => StoreError::unavailable(&cause).with_source(cause),
        Error::KeyspaceDeleted => StoreError::unavailable(error),
        error => StoreError::corrupt(&error).with_source(error),
    }
}
