//! The backend's own keys of items. A key stays with its item after the item is deleted, until a new item is published
//! with the key.

use compact_str::CompactString;
use feedgate_common::ItemId;

use super::table;

table! {
    /// The item of each key of the backend.
    ForeignIds: b'f', Archive, CompactString => ItemId
}
