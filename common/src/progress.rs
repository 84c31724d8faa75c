//! How far the fan-out of one author has come in one bucket.
//!
//! ```text
//!   outbox   1  2  3  4  5            done = 2: records 1 and 2 have reached every reader
//!                  └ record 3         last = Some(r): record 3 has reached readers up to r
//! ```
//!
//! Every step compares the progress it read and moves it forward together with its appends, so a
//! repeated delivery, a crash or a second worker can neither repeat nor skip anything.

use serde::{Deserialize, Serialize};

use crate::{DirectSeq, OutboxSeq, PullSeq, UserNo};

/// Of one (author, bucket). Ordered: it only ever grows (I10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Progress {
    /// Every record up to here has reached every reader of the bucket.
    pub done: OutboxSeq,
    /// Record `done + 1` has reached the readers up to and including this one.
    pub last: Option<UserNo>,
}

impl Progress {
    /// All records up to `done`, none of the next.
    pub fn at(done: OutboxSeq) -> Self {
        Self { done, last: None }
    }

    /// The last record that push has already been past for `reader`: what someone who rebuilds
    /// from the Archive meanwhile has to take from there.
    pub fn cut_for(self, reader: UserNo) -> OutboxSeq {
        match self.last {
            Some(last) if reader <= last => self.done + 1,
            _ => self.done,
        }
    }
}

/// How far one inbox has taken in what no push brings: what its reader pulls, and what is addressed to
/// its reader. Only ever grows within an epoch (I10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Watermarks {
    /// Every record of route pull up to here has been taken in or passed by: one number, however many
    /// authors its reader follows.
    pub pull: PullSeq,
    /// Everything addressed to its reader up to here.
    pub direct: DirectSeq,
}

/// What whoever reads the Archive for one inbox and one author has to bring, and no more: the push
/// records that push has been past, the pull records that pull has been past.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Cut {
    /// Of (author, the reader's bucket).
    pub progress: Progress,
    /// The inbox's own watermark.
    pub pull: PullSeq,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_before_the_last_one_reached_is_one_record_further() {
        let half = Progress { done: 4, last: Some(UserNo(9)) };
        assert_eq!(half.cut_for(UserNo(9)), 5);
        assert_eq!(half.cut_for(UserNo(10)), 4);
        assert_eq!(Progress::at(4).cut_for(UserNo(1)), 4);
        assert!(Progress::at(4) < half && half < Progress::at(5));
    }
}
