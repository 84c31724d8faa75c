//! The index of search: what has which marks. It is derived from items and people, and may be built anew at any time.

use async_trait::async_trait;

use crate::error::Result;
use crate::search::{Hits, Look, TextFields};

/// Keeps an index of the items that live and of the users of whom something is said, by their
/// [marks](crate::search::marks_of_item). Whatever writes an item or a person lets the index follow: in the same
/// transaction, or by a row that says what is still to be indexed and that is a part of that transaction.
#[async_trait]
pub trait Search: Send + Sync + 'static {
    /// Makes the index one of the texts in `fields`; `None` ends the index, and frees its room on the disk. An index of
    /// other fields, or by other rules, begins anew and is built by [`Self::index`]. Durable when it answers; to ask
    /// again changes nothing.
    async fn index_of(&self, fields: Option<&TextFields>) -> Result<()>;

    /// Takes a step of what is outstanding for the index of `fields`: what was written since, and what is to be built.
    /// Answers whether there may be more to do; `false` if the index is of other fields, or another process is
    /// indexing. Any number of callers may call this at once. A dropped or failed step is taken again.
    async fn index(&self, fields: Option<&TextFields>) -> Result<bool>;

    /// The candidates of a look: nothing that matches is left out once all is indexed. It looks at a bounded number of
    /// rows, so it may find fewer than `limit` and yet go on. Nothing, and `building`, if the index is of other fields.
    async fn find(&self, fields: &TextFields, look: &Look) -> Result<Hits>;
}
