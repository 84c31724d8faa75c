//! Push steps as a script's keys and arguments, and what its answer means: no IO.

use feedgate_common::archive::Recipient;
use feedgate_common::error::Result;
use feedgate_common::inboxes::{APPENDS_MAX, Advance, Grown};
use feedgate_common::{Entry, InboxKey, UserNo, varint};

use super::layout::{beyond, bucket_key, field, inbox_key, mark_author, number, progress_text, shared_bytes};
use super::packed;
use super::scripts::Reply;

/// The arguments that steps of one author have in common: those before the arguments of the first step, without the
/// layout.
pub(super) fn of_author(author: UserNo) -> [Vec<u8>; 2] {
    [field(author), mark_author(author).to_vec()]
}

/// Divides steps among scripts. One script gets as many steps as append no more than the largest step may, so that no
/// script holds the server longer than a script with that step.
pub(super) fn in_scripts(steps: Vec<Advance>) -> Vec<Vec<Advance>> {
    let (mut scripts, mut appends) = (Vec::<Vec<Advance>>::new(), APPENDS_MAX);
    for step in steps {
        let more = step.recipients.len() * step.records.len().max(1);
        if appends + more > APPENDS_MAX || scripts.is_empty() {
            scripts.push(vec![]);
            appends = 0;
        }
        appends += more;
        scripts.last_mut().expect("one was begun").push(step);
    }
    scripts
}

/// A push step, ready to be sent.
pub(super) struct Push {
    pub(super) keys: Vec<Vec<u8>>,
    /// The arguments for this step alone.
    pub(super) arguments: Vec<Vec<u8>>,
    /// How many of the records each recipient gets, as far as is known here: the last ones.
    fresh: Vec<usize>,
}

impl Push {
    pub(super) fn of(step: &Advance) -> Result<Self> {
        let seqs: Vec<_> = step.records.iter().map(|record| record.seq).collect();
        let fresh: Vec<_> = step.recipients.iter().map(|to| beyond(&seqs, to.from)).collect();
        let inboxes = step.recipients.iter().map(|to| inbox_key(step.bucket, key_of(step, to)));
        let (mut edges, mut prefix) = (Vec::with_capacity(5 + 24 * fresh.len()), Vec::new());
        packed::list(&mut edges, 4 * fresh.len());
        for (to, fresh) in step.recipients.iter().zip(&fresh) {
            [number(to.generation)?, number(to.counter)?, *fresh as u64]
                .iter()
                .for_each(|n| packed::number(&mut edges, *n));
            prefix.clear();
            varint::put(&mut prefix, to.generation);
            packed::string(&mut edges, &prefix);
        }
        let [recipients, records] = [fresh.len(), seqs.len()].map(|count| count.to_string().into_bytes());
        let (expected, next) = (progress_text(step.expected), progress_text(step.next));
        let kept = if step.kept { b"kept".to_vec() } else { vec![] };
        let mut arguments = vec![expected, next, recipients, records, kept, edges, packed_numbers(&seqs)];
        arguments.extend(step.records.iter().map(|record| shared_bytes(&Entry::of(record, step.author, 0))));
        Ok(Self { keys: std::iter::once(bucket_key(step.bucket)).chain(inboxes).collect(), arguments, fresh })
    }

    /// Which inboxes have grown, and which of them are longer than they must be.
    pub(super) fn moved(&self, step: &Advance, reply: &mut Reply) -> Result<(Vec<Grown>, Vec<InboxKey>)> {
        let (heads, long, fewer) = (reply.packed_positions()?, reply.all_numbers()?, reply.all_numbers()?);
        if heads.len() != step.recipients.len() {
            return Err(reply.unexpected());
        }
        let mut fresh = self.fresh.clone();
        for pair in fewer.chunks_exact(2) {
            *fresh.get_mut(pair[0] as usize).ok_or_else(|| reply.unexpected())? = pair[1] as usize;
        }
        let grown = step.recipients.iter().zip(heads).zip(fresh).filter_map(|((to, head), fresh)| {
            Some(Grown { key: key_of(step, to), head: head?, appended: fresh as u32, generation: to.generation })
        });
        let long = long.iter().filter_map(|&at| step.recipients.get(at as usize));
        Ok((grown.collect(), long.map(|to| key_of(step, to)).collect()))
    }
}

fn key_of(step: &Advance, to: &Recipient) -> InboxKey {
    InboxKey { reader: to.reader, feed: step.feed }
}

/// A list of numbers.
fn packed_numbers(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(5 + 5 * numbers.len());
    packed::list(&mut out, numbers.len());
    numbers.iter().for_each(|n| packed::number(&mut out, *n));
    out
}

#[cfg(test)]
mod tests {
    use feedgate_common::change::Route;
    use feedgate_common::{Bucket, DisplayKey, FeedId, ItemId, Op, Progress, Record};

    use super::*;

    /// A step of so many records to so many readers.
    fn step(records: u64, readers: u32) -> Advance {
        let key = DisplayKey { rank: 0, item: ItemId(1) };
        let record = |seq| Record { seq, op: Op::Add, route: Route::Push, feed: FeedId::MAIN, key };
        let to = |n| Recipient { reader: UserNo(n), generation: 1, from: 0, counter: 1, listens: false };
        Advance {
            author: UserNo(9),
            bucket: Bucket(0),
            feed: FeedId::MAIN,
            expected: Progress::default(),
            next: Progress::at(records),
            records: (1..=records).map(record).collect(),
            recipients: (0..readers).map(to).collect(),
            kept: false,
        }
    }

    #[test]
    fn i18_a_script_takes_no_more_appends_than_the_largest_step_may_have() {
        let sizes = |steps: Vec<Advance>| in_scripts(steps).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes((0..16).map(|_| step(1, 12)).collect()), [16]);
        assert_eq!(sizes((0..16).map(|_| step(1, 1000)).collect()), [8, 8]);
        assert_eq!(sizes(vec![step(8, 1000), step(0, 0), step(1, 1), step(8, 1000)]), [2, 1, 1]);
        assert_eq!(sizes(vec![]), [0; 0]);
    }
}
