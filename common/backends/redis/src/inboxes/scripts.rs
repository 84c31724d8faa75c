//! The scripts of the inboxes, each one atomic step on one bucket, and their answers.

use feedgate_common::Position;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::inboxes::{EdgeStepped, KEEP, MARKS_MAX, NOTES_MAX};
use feedgate_common::{Epoch, Progress, Watermarks};
use redis::Value;

use super::layout::progress_of;
use super::{LONG, packed};
use crate::link::{Script, Verb};

/// Enters the bucket `KEYS[1]`, and reads along the field that `ARGV[2]` names, if it names one.
const ENTER: &str = "
local refused = enter(KEYS[1], ARGV[2] or 'epoch')
if refused then return refused end
";

/// All scripts of the inboxes. What a script does, and what it takes, is said in its file.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) advance: Script,
    pub(super) edges: Script,
    pub(super) take: Script,
    pub(super) begin: Script,
    pub(super) finish: Script,
    pub(super) present: Script,
    pub(super) oldest: Script,
    pub(super) trim: Script,
    pub(super) discard: Script,
    pub(super) read: Script,
    pub(super) log: Script,
    pub(super) stands: Script,
    pub(super) touch: Script,
    pub(super) progress: Script,
    pub(super) renew: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let bucket = include_str!("scripts/bucket.lua");
        let in_buckets = |verb: Verb, flags: &str, text: &str| {
            let bounds = format!("KEEP, LONG, MARKS_MAX, NOTES_MAX = {KEEP}, {LONG}, {MARKS_MAX}, {NOTES_MAX}");
            Script::new(verb, format!("#!lua{flags}\nlocal {bounds}\n{bucket}{text}"))
        };
        let script = |verb: Verb, flags: &str, text: &str| in_buckets(verb, flags, &format!("{ENTER}{text}"));
        Self {
            advance: in_buckets(Verb::Advance, "", include_str!("scripts/advance.lua")),
            edges: script(Verb::Edges, "", include_str!("scripts/edges.lua")),
            take: script(Verb::Take, "", include_str!("scripts/take.lua")),
            begin: script(Verb::Begin, "", include_str!("scripts/begin.lua")),
            finish: script(Verb::Finish, "", include_str!("scripts/finish.lua")),
            present: script(Verb::Present, " flags=no-writes", include_str!("scripts/present.lua")),
            oldest: script(Verb::Oldest, " flags=no-writes", include_str!("scripts/oldest.lua")),
            trim: script(Verb::Trim, " flags=allow-oom", include_str!("scripts/trim.lua")),
            discard: script(Verb::Discard, " flags=allow-oom", include_str!("scripts/discard.lua")),
            read: script(Verb::Read, " flags=no-writes", include_str!("scripts/read.lua")),
            log: script(Verb::Log, " flags=no-writes", include_str!("scripts/log.lua")),
            stands: script(Verb::Stands, " flags=no-writes", include_str!("scripts/stands.lua")),
            touch: Script::new(Verb::Touch, concat!("#!lua flags=allow-oom\n", include_str!("scripts/touch.lua"))),
            progress: script(Verb::Progress, " flags=no-writes", include_str!("scripts/progress.lua")),
            renew: Script::new(Verb::Renew, concat!("#!lua\n", include_str!("scripts/renew.lua"))),
        }
    }
}

/// What a script answers: a word, and what belongs to it.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) word: String,
    rest: std::vec::IntoIter<Value>,
}

impl Reply {
    pub(super) fn of(value: Value) -> Result<Self> {
        let mut rest = array(value)?.into_iter();
        let word = rest.next().map(bytes).transpose()?.and_then(|word| String::from_utf8(word).ok());
        Ok(Self { word: word.ok_or_else(|| StoreError::corrupt("a script answered without a word"))?, rest })
    }

    /// Reads the answer of a script that was called for one step. A script for several steps answers a list with one
    /// reply then.
    pub(super) fn of_one(value: Value) -> Result<Self> {
        let mut reply = Self::of(value)?;
        match &*reply.word {
            "steps" => reply.all_replies()?.pop().ok_or_else(|| reply.unexpected()),
            _ => Ok(reply),
        }
    }

    /// The error for an answer that this script cannot give.
    pub(super) fn unexpected(&self) -> StoreError {
        StoreError::corrupt(format_args!("a script answered {self:?}"))
    }

    fn next(&mut self) -> Result<Value> {
        self.rest.next().ok_or_else(|| StoreError::corrupt(format_args!("a script answered too little: {}", self.word)))
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>> {
        bytes(self.next()?)
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        number(&self.next()?)
    }

    pub(super) fn position(&mut self) -> Result<Position> {
        Ok(Position { epoch: Epoch(self.number()?), offset: self.number()? })
    }

    pub(super) fn watermarks(&mut self) -> Result<Watermarks> {
        Ok(Watermarks { pull: self.number()?, direct: self.number()? })
    }

    pub(super) fn progress(&mut self) -> Result<Progress> {
        progress_of(&self.bytes()?)
    }

    pub(super) fn all_bytes(&mut self) -> Result<Vec<Vec<u8>>> {
        array(self.next()?)?.into_iter().map(bytes).collect()
    }

    /// What became of each push step.
    pub(super) fn all_replies(&mut self) -> Result<Vec<Self>> {
        array(self.next()?)?.into_iter().map(Self::of).collect()
    }

    /// For each follow step what became of it, in a log of this epoch.
    pub(super) fn all_stepped(&mut self, epoch: Epoch) -> Result<Vec<EdgeStepped>> {
        let stepped = |value: Value| match &value {
            Value::BulkString(word) => match &word[..] {
                b"nothing" => Ok(EdgeStepped::Nothing),
                b"overtaken" => Ok(EdgeStepped::Overtaken),
                b"full" => Ok(EdgeStepped::Full),
                _ => Err(StoreError::corrupt(format_args!("a follow step answered {value:?}"))),
            },
            head => Ok(EdgeStepped::Applied(Position { epoch, offset: number(head)? })),
        };
        array(self.next()?)?.into_iter().map(stepped).collect()
    }

    pub(super) fn all_numbers(&mut self) -> Result<Vec<u64>> {
        array(self.next()?)?.iter().map(number).collect()
    }

    /// Pairs of epoch and offset in one string; epoch 0 for none.
    pub(super) fn packed_positions(&mut self) -> Result<Vec<Option<Position>>> {
        let numbers = packed::numbers(&self.bytes()?)?;
        let position = |pair: &[u64]| Position { epoch: Epoch(pair[0]), offset: pair[1] };
        Ok(numbers.chunks_exact(2).map(|pair| (pair[0] > 0).then(|| position(pair))).collect())
    }
}

pub(super) fn array(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(values) => Ok(values),
        other => Err(StoreError::corrupt(format_args!("Redis answered {other:?} where a list was due"))),
    }
}

pub(super) fn bytes(value: Value) -> Result<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        other => Err(StoreError::corrupt(format_args!("Redis answered {other:?} where a string was due"))),
    }
}

fn number(value: &Value) -> Result<u64> {
    match value {
        Value::Int(n) => u64::try_from(*n).ok(),
        _ => None,
    }
    .ok_or_else(|| StoreError::corrupt(format_args!("Redis answered {value:?} where a number was due")))
}
