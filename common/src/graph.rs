//! Follows and shields: who sees whose items.
//!
//! ```text
//!   an edge is in effect  =  the reader follows, and no shield stands between the two
//!
//!   user mutes other      shield on user ─▶ other       "I do not see them"
//!   user hides from other shield on other ─▶ user       "they do not see me"
//!   user blocks other     shields on both
//! ```
//!
//! Fan-out sees only whether an edge is in effect ("on"). When a shield goes up, fan-out sees an unfollow; when the
//! shield goes down, a follow from now on, with the newest items from before. Lists of follows show the follows,
//! whatever shields are up.

use serde::{Deserialize, Serialize};

use crate::archive::Edge;
use crate::change::from_u8;
use crate::{Generation, Millis, OutboxSeq};

/// The kinds of shields that a user may put up between itself and another user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Shield {
    /// The user does not see the items of the other user.
    Mute = 1,
    /// The other user does not see the items of the user.
    Hide = 2,
    /// Neither sees the items of the other.
    Block = 3,
}

from_u8!(Shield { Mute, Hide, Block });

/// The shields on one edge, one bit each, so that taking one down leaves the others up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shields(pub u8);

impl Shields {
    /// The reader has muted the author.
    pub const MUTED: Self = Self(1);
    /// The author hides from the reader.
    pub const HIDDEN: Self = Self(2);
    /// The reader has blocked the author.
    pub const BLOCKED_BY_READER: Self = Self(4);
    /// The author has blocked the reader.
    pub const BLOCKED_BY_AUTHOR: Self = Self(8);

    /// Whether any of `others` is up.
    pub fn any_of(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether a block is up, by either side. If so, not even items addressed to the reader arrive.
    pub fn blocks(self) -> bool {
        self.any_of(Self(Self::BLOCKED_BY_READER.0 | Self::BLOCKED_BY_AUTHOR.0))
    }

    /// Gives these shields with `others` put up or taken down.
    #[must_use]
    pub fn with(self, others: Self, up: bool) -> Self {
        if up { Self(self.0 | others.0) } else { Self(self.0 & !others.0) }
    }
}

impl Shield {
    /// The bit on the edge on which the user is the reader, and the bit on the edge on which the user is the author;
    /// zero where there is none.
    pub fn bits(self) -> (Shields, Shields) {
        match self {
            Self::Mute => (Shields::MUTED, Shields(0)),
            Self::Hide => (Shields(0), Shields::HIDDEN),
            Self::Block => (Shields::BLOCKED_BY_READER, Shields::BLOCKED_BY_AUTHOR),
        }
    }
}

/// The place in a list by time of a follow or a shield that began at `since` (Unix ms). `number` orders those of one
/// millisecond, of which the last 22 bits count. So an imported follow takes the place of its own time. Two imported
/// follows of one millisecond may get the same place, and a home that stores places tells them apart.
pub fn listed_at(since: Millis, number: u64) -> u64 {
    const BITS: u32 = 22;
    let ms = since.max(0).cast_unsigned().min((1 << (63 - BITS)) - 1);
    ms << BITS | number & ((1 << BITS) - 1)
}

/// The edge that fan-out sees, from what is stored of (reader, author): `follows`, `shields`, and the generation and
/// `from` of the last change of the effect. If nothing is stored, pass `None`: the reader then follows if everyone
/// follows the author since `everyone_since`, the outbox head at that time.
pub fn effective_edge(held: Option<(bool, Shields, Generation, OutboxSeq)>, everyone_since: Option<OutboxSeq>) -> Edge {
    match (held, everyone_since) {
        (Some((follows, shields, generation, from)), _) => {
            Edge { on: follows && shields == Shields(0), generation, from }
        }
        (None, Some(from)) => Edge { on: true, generation: 0, from },
        (None, None) => Edge::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_is_in_effect_if_the_reader_follows_and_no_shield_is_up() {
        let edge = |follows, shields| effective_edge(Some((follows, shields, 5, 3)), Some(9));
        assert!(edge(true, Shields(0)).on);
        assert!(!edge(true, Shields::MUTED).on && !edge(false, Shields(0)).on);
        assert_eq!(effective_edge(None, Some(9)), Edge { on: true, generation: 0, from: 9 });
        assert_eq!(effective_edge(None, None), Edge::default());
    }

    #[test]
    fn a_list_is_by_time_and_within_a_millisecond_by_number() {
        assert!(listed_at(5, 9) < listed_at(6, 1) && listed_at(5, 8) < listed_at(5, 9));
        assert_eq!([listed_at(5, 9), listed_at(0, u64::MAX)], [5 << 22 | 9, (1 << 22) - 1]);
        assert!(listed_at(i64::MAX, u64::MAX) <= i64::MAX.cast_unsigned(), "a store may keep it with a sign");
    }

    #[test]
    fn a_shield_that_goes_down_leaves_the_others_up() {
        let both = Shields::MUTED.with(Shields::BLOCKED_BY_AUTHOR, true);
        assert!(both.blocks());
        assert_eq!(both.with(Shields::MUTED, true), both, "one that is up stays up");
        assert_eq!(both.with(Shields::BLOCKED_BY_AUTHOR, false), Shields::MUTED);
        assert!(!Shields::MUTED.blocks());
    }
}
