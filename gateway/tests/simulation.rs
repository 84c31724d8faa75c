//! The subscription against a model of everything around it, from a seed.
//!
//! ```text
//!   log ──appends──▶ wakes (lost, repeated, reordered) ──▶ bit ──▶ Subscription ──▶ pipe ──▶ device
//!    └── trims, new epochs                      reads (early, late, failed) ┘      └── slow, cut in the middle
//! ```
//!
//! The dice choose every step. The oracle watches each frame: no gap, no duplicate, nothing beyond
//! the head (I2, I9, I12); and after everything has come to rest the device shows the feed (I4).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

#[path = "simulation/dice.rs"]
mod dice;
#[path = "simulation/phone.rs"]
mod phone;
#[path = "simulation/store.rs"]
mod store;
#[path = "simulation/world.rs"]
mod world;

use feedgate_gateway::subscription::Deliver;
use world::{Weather, World};

const SEEDS: u64 = 400;

fn run(seed: u64, weather: Weather, deliver: Deliver) -> World {
    let mut world = World::new(seed, weather, deliver);
    // Many short lives: only the last changes before a rest show a wake that was lost.
    for rest in 0..20 {
        world.live(25);
        world.settle();
        assert_eq!(world.phone.shown(), world.store.feed(), "I4: seed {seed}, rest {rest}");
    }
    world
}

fn every_run_ends_with_the_feed(weather: Weather, deliver: Deliver) {
    let mut pushed = 0;
    for seed in 0..SEEDS {
        pushed += run(seed, weather, deliver).frames;
    }
    assert!(pushed > SEEDS * 20, "the runs must do something: {pushed} frames");
}

#[test]
fn i4_by_wakes_alone_without_loss_and_without_ticks_every_device_ends_with_the_feed() {
    every_run_ends_with_the_feed(Weather::CALM, Deliver::Items);
    every_run_ends_with_the_feed(Weather::CALM, Deliver::Notify);
}

#[test]
fn i4_with_lost_repeated_and_reordered_wakes_every_device_ends_with_the_feed() {
    every_run_ends_with_the_feed(Weather::LOSSY, Deliver::Items);
    every_run_ends_with_the_feed(Weather::LOSSY, Deliver::Notify);
}

#[test]
fn i9_through_cuts_trims_and_new_epochs_a_device_is_whole_or_told_to_reset() {
    every_run_ends_with_the_feed(Weather::STORM, Deliver::Items);
    every_run_ends_with_the_feed(Weather::STORM, Deliver::Notify);
}

#[test]
fn a_storm_meets_resets_recoveries_and_failed_reads() {
    let (mut resets, mut recoveries, mut failures) = (0, 0, 0);
    for seed in 0..SEEDS {
        let world = run(seed, Weather::STORM, Deliver::Items);
        resets += world.resets;
        recoveries += world.recoveries;
        failures += world.failures;
    }
    assert!(resets > 100 && recoveries > 100 && failures > 100, "{resets} {recoveries} {failures}");
}

#[test]
fn the_same_seed_gives_the_same_transcript() {
    for seed in 0..20 {
        let transcript = || run(seed, Weather::STORM, Deliver::Items).transcript;
        let first = transcript();
        assert!(first.len() > 20);
        assert_eq!(first, transcript(), "seed {seed}");
    }
}
