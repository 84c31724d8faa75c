//! What was fixed when the store was created, which version it has grown to, and the inbox store it last worked with.

use compact_str::CompactString;

use super::table;

table! {
    /// In how many buckets followers are laid out.
    Layout: b'1', Archive, () => u16
}

table! {
    /// The incarnation of the inbox store.
    Incarnation: b'2', Archive, () => CompactString
}

table! {
    /// What the rows tell, by the newest thing that had to be worked out for older ones.
    Grown: b'3', Archive, () => u8
}
