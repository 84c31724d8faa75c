//! Finds the end of a feed that shows only a limited number of its newest adds. No IO: the answer says what to read.
//!
//! ```text
//!   what the log shows above its floor ─▶ enough? ─▶ the end
//!                                           └─ no ─▶ the rest from below the floor ─▶ the end, if there are so many
//! ```

use crate::DisplayKey;
use crate::archive::Below;

/// Where a feed that shows a limited number of adds ends.
pub(super) enum End {
    /// The last add that is shown; `None` if the feed shows fewer adds than it may.
    At(Option<DisplayKey>),
    /// The last add of this read of the Archive is the last that is shown, if the read gives as many adds as it asks
    /// for.
    Below(Below),
}

impl End {
    /// The end of a feed whose log shows the adds `shown` above its floor, oldest first. The feed shows at most `most`
    /// adds, and `most` is at least 1.
    pub(super) fn of(shown: &[DisplayKey], floor: Option<DisplayKey>, most: usize) -> Self {
        match (shown.len().checked_sub(most), floor) {
            (Some(last), _) => Self::At(Some(shown[last])),
            (None, None) => Self::At(None),
            (None, Some(floor)) => {
                let (before, limit) = (floor.just_above(), most - shown.len());
                Self::Below(Below { before, least_rank: None, limit })
            }
        }
    }
}
