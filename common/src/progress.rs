//! How far the fan-out of one author has come in one bucket.
//!
//! ```text
//!   outbox   1  2  3  4  5            done = 2: records 1 and 2 have reached every reader
//!                  └ record 3         last = Some(r): record 3 has reached readers up to r
//! ```
//!
//! Every step compares the progress that it has read, and moves it forward together with what it appends. So a repeated
//! delivery, a crash or a second worker can neither repeat nor skip a record.

use serde::{Deserialize, Serialize};

use crate::{DirectSeq, OutboxSeq, PullSeq, UserNo};

/// The progress of one author in one bucket. Progress is ordered, and it only grows (I10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Progress {
    /// Each record up to this one has reached every reader of the bucket.
    pub done: OutboxSeq,
    /// Record `done + 1` has reached the readers up to and including this reader; `None` if it has reached no reader.
    pub last: Option<UserNo>,
}

impl Progress {
    /// The progress at which all records up to `done` have reached every reader, and the next record no reader.
    pub fn at(done: OutboxSeq) -> Self {
        Self { done, last: None }
    }

    /// The last record that push has already passed for `reader`. A rebuild or follow step that reads the Archive
    /// meanwhile has to bring the records up to there.
    pub fn cut_for(self, reader: UserNo) -> OutboxSeq {
        match self.last {
            Some(last) if reader <= last => self.done + 1,
            _ => self.done,
        }
    }
}

/// How far one inbox has taken in what no push brings: records that its reader pulls, and records addressed to its
/// reader. It only grows within an epoch (I10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Watermarks {
    /// Each record of route pull up to this number was taken in, or does not concern the inbox. One number is enough,
    /// however many authors the reader follows.
    pub pull: PullSeq,
    /// Each record addressed to the reader up to this number was taken in.
    pub direct: DirectSeq,
}

/// Which records a step has to bring when it reads the Archive for one inbox and one author: the records of route push
/// that push has passed, and those of route pull that pull has passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Cut {
    /// The progress of the author in the reader's bucket.
    pub progress: Progress,
    /// The number up to which the inbox has pulled.
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
