//! Whether the items of authors stand in their own feeds, and what users have sent.

use feedgate_common::{DisplayKey, UserNo};

use super::{fields, table};

table! {
    /// Whether authors have an edge to themselves. Without a row they have none.
    OwnPosts: b'$', Archive, () => OwnPostsRow
}

table! {
    /// The living items that a user has addressed to readers, in display order, without notifications.
    Sent: b'!', Archive, (UserNo, DisplayKey) => ()
}

/// What the store was told, and how far that is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnPostsRow {
    pub(crate) on: bool,
    /// The last author to whom it is carried out; `None` if it is for all.
    pub(crate) at: Option<UserNo>,
}

fields!(OwnPostsRow { on, at });
