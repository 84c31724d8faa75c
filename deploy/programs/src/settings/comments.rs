//! The settings of comments: whose comments and reactions users see.

use feedgate_common::around::Visible;
use serde::{Deserialize, Serialize};

/// The settings of comments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Comments {
    /// Whose comments and reactions users see.
    pub(crate) visible: Visible,
}
