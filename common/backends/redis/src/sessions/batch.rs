//! Calls about many sessions, cut into scripts of one bucket each.

use std::collections::BTreeMap;

use feedgate_common::error::{Result, StoreError};
use feedgate_common::{Bucket, UserNo};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::scripts::{bucket_key, devices_key};

/// Sessions of one script: a millisecond or two of the server's time.
const CHUNK: usize = 256;

/// Buckets that are called at the same time.
const AT_ONCE: usize = 8;

/// The part of a batch that one call of a script carries.
pub(super) struct Chunk {
    /// The places in the batch of the items of this chunk.
    places: Vec<usize>,
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) arguments: Vec<Vec<u8>>,
}

/// Cuts a batch into chunks, by bucket. The arguments of every script begin with `head`.
pub(super) fn cut<T, const N: usize>(
    items: &[T],
    buckets: u16,
    head: &[Vec<u8>],
    words: impl Fn(&T) -> (UserNo, [Vec<u8>; N]),
) -> Vec<Vec<Chunk>> {
    let mut by_bucket: BTreeMap<Bucket, Vec<Chunk>> = BTreeMap::new();
    for (place, item) in items.iter().enumerate() {
        let (user, words) = words(item);
        let bucket = user.bucket(buckets);
        let chunks = by_bucket.entry(bucket).or_default();
        if chunks.last().is_none_or(|chunk| chunk.places.len() == CHUNK) {
            chunks.push(Chunk { places: vec![], keys: vec![bucket_key(bucket)], arguments: head.to_vec() });
        }
        let Some(chunk) = chunks.last_mut() else { continue };
        chunk.places.push(place);
        chunk.keys.push(devices_key(bucket, user));
        chunk.arguments.extend(words);
    }
    by_bucket.into_values().collect()
}

/// Runs the chunks, those of one bucket in their order: an answer for each item, in the batch's order. `run` gives a
/// 0 or 1 for each item of a chunk.
pub(super) async fn run<F>(buckets: Vec<Vec<Chunk>>, run: impl Fn(Chunk) -> F) -> Result<Vec<u8>>
where
    F: Future<Output = Result<String>>,
{
    let run = &run;
    let one_bucket = |chunks: Vec<Chunk>| async move {
        let mut answers = vec![];
        for mut chunk in chunks {
            let places = std::mem::take(&mut chunk.places);
            let answer = run(chunk).await?;
            if answer.len() != places.len() {
                return Err(StoreError::corrupt(format_args!("{} sessions got {answer:?}", places.len())));
            }
            answers.extend(places.into_iter().zip(answer.bytes()));
        }
        Ok(answers)
    };
    let answers: Vec<Vec<(usize, u8)>> =
        stream::iter(buckets).map(one_bucket).buffer_unordered(AT_ONCE).try_collect().await?;
    let mut answers: Vec<(usize, u8)> = answers.into_iter().flatten().collect();
    answers.sort_unstable_by_key(|(place, _)| *place);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}
