//! Where a feed ends that shows only so many of its newest adds. No IO: it says what to read.
//!
//! ```text
//!   what the log shows above its floor ─▶ enough? ─▶ the end
//!                                           └─ no ─▶ the rest from below the floor ─▶ the end, if there are so many
//! ```

use crate::DisplayKey;
use crate::archive::Below;

/// Where a feed that shows a limited number of adds ends.
pub(super) enum End {
    /// This is the last add that is shown; `None`: the feed ends by itself.
    At(Option<DisplayKey>),
    /// The last of these is, if there are as many as are asked for.
    Below(Below),
}

impl End {
    /// Of a feed whose log shows these above its floor, oldest first, and of which at most `most` are shown, at least
    /// 1.
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
