//! The backend's own keys. One stays with its item when that is deleted, until a new item is published with it.

use compact_str::CompactString;
use feedgate_common::ItemId;

use super::table;

table! {
    /// See the module.
    ForeignIds: b'f', Archive, CompactString => ItemId
}
