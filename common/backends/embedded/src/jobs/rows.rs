//! The two tables of waiting jobs: one in the order of putting, one by job so that equal ones merge.

use feedgate_common::jobs::Job;

use crate::codec::Code;
use crate::table::{Space, Table};

/// Every job that is not acknowledged, by the order in which it was put.
pub(super) struct ByOrder;

impl Table for ByOrder {
    const SPACE: Space = Space::Jobs;
    const TAG: u8 = 1;
    const NAME: &'static str = "jobs by order";
    type Key = u64;
    type Row = Job;
}

/// The order of each job that is not acknowledged.
pub(super) struct ByJob;

impl Table for ByJob {
    const SPACE: Space = Space::Jobs;
    const TAG: u8 = 2;
    const NAME: &'static str = "jobs by name";
    type Key = Job;
    type Row = u64;
}

const FAN_OUT: u8 = 1;
const EDGE: u8 = 2;
const DIRECT: u8 = 3;
const EDGES: u8 = 4;

impl Code for Job {
    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::FanOut { author } => (FAN_OUT, author).put(out),
            Self::Edge { reader, author } => (EDGE, reader, author).put(out),
            Self::Direct { reader } => (DIRECT, reader).put(out),
            Self::Edges { reader } => (EDGES, reader).put(out),
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            FAN_OUT => Some(Self::FanOut { author: Code::take(from)? }),
            EDGE => Some(Self::Edge { reader: Code::take(from)?, author: Code::take(from)? }),
            DIRECT => Some(Self::Direct { reader: Code::take(from)? }),
            EDGES => Some(Self::Edges { reader: Code::take(from)? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::UserNo;

    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn a_job_comes_back_whole_and_other_bytes_are_no_job() {
        let edge = Job::Edge { reader: UserNo(1), author: UserNo(u32::MAX) };
        for job in [
            Job::FanOut { author: UserNo(7) },
            edge,
            Job::Direct { reader: UserNo(7) },
            Job::Edges { reader: UserNo(7) },
        ] {
            let bytes = bytes_of(&job);
            assert_eq!(value_of::<Job>(&bytes), Some(job));
            assert_eq!(value_of::<Job>(&bytes[1..]), None);
            assert_eq!(value_of::<Job>(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(value_of::<Job>(&[5, 0, 0, 0, 7]), None);
    }
}
