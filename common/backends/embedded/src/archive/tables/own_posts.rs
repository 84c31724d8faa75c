//! Whether the items of authors stand in their own feeds, and what users have sent.

use feedgate_common::{DisplayKey, UserNo};

use super::{fields, table};

table! {
    /// Whether authors have an edge to themselves. Without a row no author has one.
    OwnPosts: b'$', Archive, () => OwnPostsRow
}

table! {
    /// The living items that a user has addressed to readers, in display order, without notifications.
    Sent: b'!', Archive, (UserNo, DisplayKey) => ()
}

/// The setting that the store was told, and for which authors the setting is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnPostsRow {
    pub(crate) on: bool,
    /// The last author for whom the setting is carried out; `None` if it is carried out for all.
    pub(crate) at: Option<UserNo>,
}

fields!(OwnPostsRow { on, at });
