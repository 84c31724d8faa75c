//! A job as NATS carries it: its subject, and JSON with a version.
//!
//! Invariant: a message of a newer version is told apart from garbage, so that its jobs wait for a newer worker instead
//! of being lost. For that, a version whose jobs an older worker cannot read puts such jobs under subjects of its own:
//! a job of an older version must not be merged with a job that only a newer worker can do.

use feedgate_common::UserNo;
use feedgate_common::jobs::Job;
use serde::{Deserialize, Serialize};

/// The version of messages that this build reads and writes.
const VERSION: u32 = 1;

/// Why a message is no job that this version can do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A later version, with this number, has written the message.
    Newer(u32),
    /// No version of Feedgate has written the message.
    Garbage,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

#[derive(Serialize, Deserialize)]
struct Message {
    v: u32,
    #[serde(flatten)]
    body: Body,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Body {
    FanOut { author: UserNo },
    Edge { reader: UserNo, author: UserNo },
    Direct { reader: UserNo },
    Edges { reader: UserNo },
}

/// The job's own subject below `root`, which ends in a dot.
pub(crate) fn subject(root: &str, job: Job) -> String {
    match job {
        Job::FanOut { author } => format!("{root}fan-out.{}", author.0),
        Job::Edge { reader, author } => format!("{root}edge.{}.{}", reader.0, author.0),
        Job::Direct { reader } => format!("{root}direct.{}", reader.0),
        Job::Edges { reader } => format!("{root}edges.{}", reader.0),
    }
}

pub(crate) fn encode(job: Job) -> Vec<u8> {
    let body = match job {
        Job::FanOut { author } => Body::FanOut { author },
        Job::Edge { reader, author } => Body::Edge { reader, author },
        Job::Direct { reader } => Body::Direct { reader },
        Job::Edges { reader } => Body::Edges { reader },
    };
    serde_json::to_vec(&Message { v: VERSION, body }).expect("numbers and fixed names are JSON")
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Job, Unreadable> {
    match serde_json::from_slice(bytes) {
        Ok(Version { v }) if v > VERSION => return Err(Unreadable::Newer(v)),
        Ok(Version { v: VERSION }) => {}
        Ok(_) | Err(_) => return Err(Unreadable::Garbage),
    }
    let message: Message = serde_json::from_slice(bytes).map_err(|_| Unreadable::Garbage)?;
    Ok(match message.body {
        Body::FanOut { author } => Job::FanOut { author },
        Body::Edge { reader, author } => Job::Edge { reader, author },
        Body::Direct { reader } => Job::Direct { reader },
        Body::Edges { reader } => Job::Edges { reader },
    })
}

/// The fuzz target: a job that is understood comes back, and no newer version is taken for this one.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    match decode(bytes) {
        Ok(job) => assert_eq!(decode(&encode(job)), Ok(job)),
        Err(Unreadable::Newer(version)) => assert!(version > VERSION),
        Err(Unreadable::Garbage) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never edited: what a version has written is what a later one must read.
    #[test]
    fn every_version_is_read_and_written_as_it_always_was() {
        let fan_out = Job::FanOut { author: UserNo(7) };
        let edge = Job::Edge { reader: UserNo(3), author: UserNo(7) };
        let direct = Job::Direct { reader: UserNo(3) };
        let edges = Job::Edges { reader: UserNo(3) };
        for (job, subject_, bytes) in [
            (fan_out, "feed.work.fan-out.7", &include_bytes!("wire/fan-out.v1.json")[..]),
            (edge, "feed.work.edge.3.7", &include_bytes!("wire/edge.v1.json")[..]),
            (direct, "feed.work.direct.3", &include_bytes!("wire/direct.v1.json")[..]),
            (edges, "feed.work.edges.3", &include_bytes!("wire/edges.v1.json")[..]),
        ] {
            assert_eq!(decode(bytes), Ok(job));
            assert_eq!(String::from_utf8(encode(job)).unwrap(), String::from_utf8_lossy(bytes).trim_end());
            assert_eq!(subject("feed.work.", job), subject_);
        }
    }

    #[test]
    fn a_newer_version_is_told_from_garbage() {
        assert_eq!(decode(br#"{"v":2,"kind":"new","what":[]}"#), Err(Unreadable::Newer(2)));
        for garbage in [
            r#""#,
            r#"{}"#,
            r#"{"v":0}"#,
            r#"{"v":1,"kind":"new"}"#,
            r#"{"v":1,"kind":"fan-out"}"#,
            r#"{"v":1,"kind":"direct","author":7}"#,
            r#"{"v":1,"kind":"edges","author":7}"#,
        ] {
            assert_eq!(decode(garbage.as_bytes()), Err(Unreadable::Garbage), "{garbage}");
        }
    }
}
