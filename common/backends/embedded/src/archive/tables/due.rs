//! The outstanding events, oldest first.
//!
//! There is one row for each author, edge or reader, not for each record, since the work is to bring all that is new.
//! The row of the author, the edge or the reader says how far the event goes.

use feedgate_common::{Millis, UserNo};

use super::table;
use crate::codec::Code;

table! {
    /// The outstanding events, by the time since which each is outstanding.
    Due: b'v', Archive, (Millis, Owed) => ()
}

table! {
    /// The outstanding events that are edges, by reader and author.
    DueEdges: b'V', Archive, (UserNo, UserNo) => ()
}

/// The author, edge or reader to which an outstanding event belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owed {
    Outbox { author: UserNo },
    Edge { reader: UserNo, author: UserNo },
    Direct { reader: UserNo },
}

impl Owed {
    /// The greatest value, for the end of a range.
    pub(crate) const LAST: Self = Self::Direct { reader: UserNo(u32::MAX) };
}

impl Code for Owed {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Outbox { author } => (1u8, *author).put(out),
            Self::Edge { reader, author } => (2u8, *reader, *author).put(out),
            Self::Direct { reader } => (3u8, *reader).put(out),
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            1 => Some(Self::Outbox { author: Code::take(from)? }),
            2 => Some(Self::Edge { reader: Code::take(from)?, author: Code::take(from)? }),
            3 => Some(Self::Direct { reader: Code::take(from)? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};
    use proptest::prelude::*;

    fn owed() -> impl Strategy<Value = Owed> {
        prop_oneof![
            any::<u32>().prop_map(|n| Owed::Outbox { author: UserNo(n) }),
            any::<(u32, u32)>().prop_map(|(r, a)| Owed::Edge { reader: UserNo(r), author: UserNo(a) }),
            any::<u32>().prop_map(|n| Owed::Direct { reader: UserNo(n) }),
        ]
    }

    proptest! {
        #[test]
        fn events_come_back_and_sort_by_time_first(a in (any::<i64>(), owed()), b in (any::<i64>(), owed())) {
            prop_assert_eq!(value_of(&bytes_of(&a)), Some(a));
            prop_assert_eq!(a.cmp(&b), bytes_of(&a).cmp(&bytes_of(&b)));
            prop_assert!(a.1 <= Owed::LAST);
        }
    }
}
