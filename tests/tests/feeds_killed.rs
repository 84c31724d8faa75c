//! The embedded product killed over and over, at named points and anywhere else, against the oracle.
//!
//! Each seed is a store on disk and a child over it (`src/killed.rs`), which is asked to accept, to serve and to
//! forget, and dies on the way at some failpoint's nth passing; a caller that lost an answer asks again. In the end
//! nothing is killed any more, and every device and every walk over pages must show what the oracle says.
//!
//! `FEEDGATE_SEED=n cargo test -p feedgate-tests --test feeds_killed` repeats one seed;
//! `FEEDGATE_SEEDS` and `FEEDGATE_SCHEDULE` are as in `schedules.rs`.

#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::collections::BTreeMap;
use std::sync::Mutex;

use feedgate_common::failpoint;
use feedgate_tests::oracle::{
    AUTHORS, Answer, Ask, BACKFILL, Device, Imagined, Inbox, NOTES, NOW, Op, Oracle, Serves, Shown, Survivor, USERS,
    given, hold, seeds, some_inbox, walk, whole_world,
};
use feedgate_tests::park::block_on;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

const CHILD: &str = env!("CARGO_BIN_EXE_feedgate-killed");
const SEEDS: u64 = 12;
const STEPS: usize = 400;

/// Passed by connections and by the sender of push notices; the child has none of them.
const ELSEWHERE: &[&str] =
    &["catch-up-batch", "push-noted", "push-taken", "push-called", "erasure-planned", "erasure-carried-out"];

/// Few children come to these before they are killed again, so they die at the first passing, and more are to die there
/// than at each other point.
const RARE: &[&str] = &["edge-step-done", "inbox-snapshot-written"];

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Step {
    Write(Op),
    Sync(Inbox),
    Walk(Inbox),
    Sleep(Inbox),
    /// All work is done. Without it, children die before work that comes rarely, such as an edge, reaches its point.
    Settle,
    /// Killed where it stands, and then at this point.
    Kill(String),
    /// Killed where it stands; then a follow shows the whole past, or no longer.
    WholePast(bool),
}

fn imagine(seed: u64) -> Vec<Step> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut history = Imagined::new(USERS, AUTHORS);
    let points = failpoint::NAMES.iter().copied().filter(|name| !ELSEWHERE.contains(name));
    let points: Vec<&str> = points.chain([RARE; 3].concat()).collect();
    let mut step = |at: usize| {
        let user = rng.random_range(0..USERS);
        let inbox = some_inbox(&mut rng, user);
        match rng.random_range(0..100) {
            // Kills at each failpoint in turn.
            0..7 => {
                let point = points[(seed as usize + at) % points.len()];
                let passing = if RARE.contains(&point) { 1 } else { rng.random_range(1..4) };
                Step::Kill(format!("{point}:{passing}"))
            }
            7..11 => Step::Settle,
            11..12 => Step::WholePast(rng.random_bool(0.6)),
            12..66 => Step::Write(history.op(&mut rng)),
            66..90 => Step::Sync(inbox),
            90..94 => Step::Walk(inbox),
            _ => Step::Sleep(inbox),
        }
    };
    (0..STEPS).map(&mut step).collect()
}

/// How often children were killed, and where.
fn live(steps: &[Step]) -> BTreeMap<String, u64> {
    let dir = tempfile::tempdir().unwrap();
    let survivor = Survivor::new(CHILD, dir.path());
    let mut oracle = Oracle::new(BACKFILL);
    let mut devices: BTreeMap<Inbox, Device> = whole_world().map(|inbox| (inbox, Device::default())).collect();
    for (now, step) in (NOW..).zip(steps) {
        oracle.set_time(now);
        match step {
            Step::Write(op) => {
                let (answer, deaths) = survivor.ask(&Ask::Write(op.clone(), now));
                let expected = Answer::Accepted(oracle.accept(op));
                assert!(answer == expected || deaths > 0, "{op:?} was answered {answer:?}");
            }
            Step::Sync(inbox) => _ = block_on(devices.entry(*inbox).or_default().sync(&survivor, *inbox, 2, 3)),
            Step::Walk(inbox) => _ = block_on(walk(&survivor, *inbox, 2)),
            Step::Sleep(inbox) => _ = survivor.ask(&Ask::Sleep(*inbox)),
            Step::Settle => _ = survivor.ask(&Ask::Settle),
            Step::Kill(failpoint) => survivor.kill(Some(failpoint.clone())),
            Step::WholePast(whole) => {
                survivor.change(*whole);
                oracle.set_whole_past(*whole);
            }
        }
    }
    survivor.kill(None);
    survivor.ask(&Ask::Settle);
    // Who comes by now may find an inbox missing, and what it is behind of becomes outstanding again.
    whole_world().for_each(|inbox| _ = block_on(walk(&survivor, inbox, 100)));
    survivor.ask(&Ask::Settle);
    for (inbox, mut device) in devices {
        if inbox.1 == NOTES {
            let told = block_on(survivor.lines(inbox.0));
            assert_eq!(told, oracle.lines(inbox.0), "S6/I14: the lines of {inbox:?}");
            let mut items: Vec<_> = block_on(walk(&survivor, inbox, 2)).iter().map(|shown| shown.item).collect();
            items.sort_unstable();
            assert!(block_on(device.sync(&survivor, inbox, usize::MAX, 3)));
            assert_eq!(device.items(), items, "I4/I14: the device of {inbox:?}");
            continue;
        }
        // An edit whose answer was lost was asked for twice: the number of versions says nothing here.
        let place = |shown: &Shown| (shown.rank, shown.item);
        let expected: Vec<_> = oracle.feed(inbox).iter().map(place).collect();
        let walked: Vec<_> = block_on(walk(&survivor, inbox, 2)).iter().map(place).collect();
        assert_eq!(walked, expected, "I7/I14: the pages of {inbox:?}");
        assert!(block_on(device.sync(&survivor, inbox, usize::MAX, 3)));
        let mut items: Vec<_> = oracle.logged(inbox).iter().map(|shown| shown.item).collect();
        items.sort_unstable();
        assert_eq!(device.items(), items, "I4/I14: the device of {inbox:?}");
    }
    survivor.deaths()
}

#[test]
fn i14_killed_anywhere_and_as_often_as_it_takes_every_device_ends_with_its_feed() {
    if let Some(steps) = given::<Step>("FEEDGATE_SCHEDULE") {
        live(&steps);
        return;
    }
    let deaths = Mutex::new(BTreeMap::<String, u64>::new());
    let seeds = seeds(SEEDS);
    let all = seeds.end - seeds.start >= SEEDS;
    for seed in seeds {
        hold(seed, imagine(seed), |steps| {
            let died = live(steps);
            let mut deaths = deaths.lock().unwrap();
            died.into_iter().for_each(|(at, times)| *deaths.entry(at).or_default() += times);
        });
    }
    let deaths = deaths.into_inner().unwrap();
    eprintln!("{} deaths: {deaths:?}", deaths.values().sum::<u64>());
    for name in failpoint::NAMES.iter().filter(|name| all && !ELSEWHERE.contains(name)) {
        assert!(deaths.contains_key(*name), "nobody died at {name}: {deaths:?}");
    }
}
