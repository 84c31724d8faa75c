//! The shields that users have put up against others, as they see them. The edges hold them too.

use feedgate_common::UserNo;
use feedgate_common::graph::{Shield, Shields};

use super::{FollowLine, table};
use crate::codec::Code;

table! {
    /// By the user who asked, the kind and the user on the other side: the place in the list.
    ShieldsUp: b'b', Archive, (UserNo, Shield, UserNo) => u64
}

table! {
    /// Shields in the order in which they went up.
    ShieldList: b'c', Archive, (UserNo, Shield, u64) => FollowLine
}

impl Code for Shield {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Mute => 1,
            Self::Hide => 2,
            Self::Block => 3,
        });
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            1 => Some(Self::Mute),
            2 => Some(Self::Hide),
            3 => Some(Self::Block),
            _ => None,
        }
    }
}

impl Code for Shields {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Code::take(from).map(Self)
    }
}
