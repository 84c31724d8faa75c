//! The obvious store: fjall, a key per entry, a sync per ten steps.

use std::path::Path;
use std::time::Instant;

use feedgate_tests::process::{Used, directory_size};
use fjall::{Database, KeyspaceCreateOptions, PersistMode};

use super::{Wanted, figure};

/// Readers of a step.
const STEP: u32 = 1000;

/// Steps that share a sync.
const SHARED: u32 = 10;

/// Answers appends per second and per CPU-second.
pub(crate) fn run(dir: &Path, wanted: Wanted) -> anyhow::Result<(f64, f64)> {
    let store = Database::builder(dir).manual_journal_persist(true).open()?;
    let entries = store.keyspace("entries", KeyspaceCreateOptions::default)?;
    let mut heads = vec![0_u64; wanted.readers as usize];
    let groups = wanted.readers / STEP * wanted.naive_entries / SHARED;
    let (used, start) = (Used::now()?, Instant::now());
    for group in 0..groups {
        let mut batch = store.batch();
        for step in 0..SHARED {
            let n = u64::from(group * SHARED + step);
            for i in 0..STEP {
                // Spread over all readers, as the followers of one author are.
                let reader =
                    ((u64::from(i) * u64::from(wanted.readers / STEP) + n * 37) % u64::from(wanted.readers)) as u32;
                heads[reader as usize] += 1;
                batch.insert(&entries, key(reader, heads[reader as usize]), value(n));
            }
        }
        batch.commit()?;
        store.persist(PersistMode::SyncData)?;
    }
    let (seconds, used) = (start.elapsed().as_secs_f64(), used.since()?);
    let appends = f64::from(groups * SHARED * STEP);
    println!("naive N: {appends} appends, {groups} syncs");
    figure("naive durable appends", appends / seconds, "appends/s");
    figure("naive appends per CPU-second", appends / used, "appends/CPU-s");
    figure("naive data directory, as it is", directory_size(dir)? as f64 / appends, "B/entry");
    Ok((appends / seconds, appends / used))
}

/// Reader, feed and sequence id.
fn key(reader: u32, seq: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&reader.to_be_bytes());
    key[8..].copy_from_slice(&seq.to_be_bytes());
    key
}

/// A value with as many bytes as an entry holds.
fn value(n: u64) -> [u8; 24] {
    let mut value = [0; 24];
    value[..8].copy_from_slice(&n.to_be_bytes());
    value[8..16].copy_from_slice(&(1_764_000_000_000 + n * 20_011).to_be_bytes());
    value[16..].copy_from_slice(&((1_764_000_000_000 + n * 20_011) << 22).to_be_bytes());
    value
}
