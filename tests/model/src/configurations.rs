//! The configurations that pass. Each is so small that all its states are visited in seconds. For every two things that
//! can happen, there is a configuration in which both happen.

use feedgate_common::change::Class::{Everyone, Pull, Push};
use feedgate_timeline::fanout::StepSize;

use crate::{Bounds, Ranks};

/// A push step reaches one reader, so that progress stands inside records.
const ONE_READER: StepSize = StepSize { recipients: 1, appends: 1 };
/// A push step takes all records at once.
const ALL_RECORDS: StepSize = StepSize { recipients: 9, appends: 9 };
const NO_FOLLOWS: [bool; 2] = [false, false];
const SMALL: Bounds = Bounds::SMALL;

/// All of them; the names are those of the tests.
#[rustfmt::skip] // A line each, to be compared.
pub const ALL: &[Bounds] = &[
    Bounds { name: "push", executors: 2, records: 3, follows_changed: 1, sleeps: 1, ..SMALL },
    Bounds { name: "push_in_batches", records: 3, follows_changed: 2, step: ALL_RECORDS, sleeps: 1, ..SMALL },
    Bounds { name: "push_to_two_readers", readers: 2, devices: 0, executors: 2, follows_changed: 1, sleeps: 1, step: ONE_READER, ..SMALL },
    Bounds { name: "follow", follow_workers: 2, executors: 2, follows_changed: 2, crashes: 1, ..SMALL },
    Bounds { name: "follow_three_times", follow_workers: 2, follows_changed: 3, ..SMALL },
    Bounds { name: "follow_from_behind", follows: NO_FOLLOWS, records: 3, follows_changed: 2, classes_changed: 1, ..SMALL },
    Bounds { name: "follow_two", authors: 2, deletes: false, follows: [true, false], follows_changed: 2, sleeps: 1, ..SMALL },
    Bounds { name: "follow_inside_a_record", follows: NO_FOLLOWS, follows_changed: 2, step: ONE_READER, ..SMALL },
    Bounds { name: "cross_classes", records: 3, classes_changed: 2, follows_changed: 1, takers: 2, ..SMALL },
    Bounds { name: "cross_classes_asleep", classes_changed: 1, follows_changed: 1, sleeps: 1, rebuilds: 2, ..SMALL },
    Bounds { name: "pull", classes: [Pull; 2], edits: true, follows_changed: 2, takers: 2, ..SMALL },
    Bounds { name: "pull_two", authors: 2, classes: [Pull; 2], follows: [true, false], deletes: false, follows_changed: 2, takers: 2, remembers: true, ..SMALL },
    Bounds { name: "pull_two_asleep", authors: 2, classes: [Pull; 2], deletes: false, follows_changed: 1, sleeps: 1, ..SMALL },
    Bounds { name: "pull_little_by_little", authors: 2, classes: [Pull, Push], records: 3, deletes: false, follows_changed: 1, classes_changed: 1, news_limit: 1, remembers: true, ..SMALL },
    Bounds { name: "pull_asleep", classes: [Pull; 2], follows_changed: 2, sleeps: 1, ..SMALL },
    Bounds { name: "follow_the_past", follow_workers: 2, executors: 2, follows_changed: 2, whole_past: true, ..SMALL },
    Bounds { name: "pull_the_past", classes: [Pull; 2], edits: true, follows_changed: 2, whole_past: true, remembers: true, ..SMALL },
    Bounds { name: "past_and_trim", follows: NO_FOLLOWS, records: 3, deletes: false, follows_changed: 2, trims: 1, ranks: Ranks::Mixed, whole_past: true, ..SMALL },
    Bounds { name: "past_of_two", authors: 2, deletes: false, records: 3, follows: [true, false], follows_changed: 1, ranks: Ranks::Mixed, whole_past: true, ..SMALL },
    Bounds { name: "rebuild", follows_changed: 1, sleeps: 1, rebuilds: 2, crashes: 1, ..SMALL },
    Bounds { name: "rebuild_overflows", records: 3, follows_changed: 1, sleeps: 1, rebuilds: 2, notes: 1, ..SMALL },
    Bounds { name: "trim", records: 3, trims: 2, follows_changed: 1, ranks: Ranks::Reversed, follows: NO_FOLLOWS, ..SMALL },
    Bounds { name: "trim_two", authors: 2, records: 3, sleeps: 1, trims: 1, keep: 1, classes: [Push, Pull], ranks: Ranks::Mixed, ..SMALL },
    Bounds { name: "trim_and_refollow", records: 3, deletes: false, trims: 1, follows_changed: 2, classes: [Pull; 2], ranks: Ranks::Mixed, ..SMALL },
    Bounds { name: "narrow", records: 3, narrowed: 2, follows_changed: 1, sleeps: 1, step: ALL_RECORDS, ..SMALL },
    Bounds { name: "narrow_and_follow", records: 3, narrowed: 2, follows_changed: 2, step: ALL_RECORDS, ..SMALL },
    Bounds { name: "narrow_to_two_readers", readers: 2, devices: 0, executors: 2, narrowed: 1, follows_changed: 1, step: ONE_READER, ..SMALL },
    Bounds { name: "narrow_pulled", classes: [Pull; 2], records: 3, narrowed: 2, edits: true, follows_changed: 1, ..SMALL },
    Bounds { name: "narrow_and_roll_back", narrowed: 2, deletes: false, follows_changed: 1, rollbacks: 1, ..SMALL },
    Bounds { name: "own", readers: 2, devices: 2, own: true, narrowed: 1, follows_changed: 2, step: ONE_READER, ..SMALL },
    Bounds { name: "move_and_follow", moves: 2, follows_changed: 2, ..SMALL },
    Bounds { name: "move_asleep", moves: 1, follows_changed: 1, sleeps: 1, ..SMALL },
    Bounds { name: "move_pulled", classes: [Pull; 2], edits: true, moves: 1, follows_changed: 1, news_limit: 1, ..SMALL },
    Bounds { name: "move_and_trim", records: 3, moves: 1, follows_changed: 1, trims: 1, ..SMALL },
    Bounds { name: "move_in_the_past", moves: 1, follows_changed: 2, trims: 1, ranks: Ranks::Mixed, whole_past: true, ..SMALL },
    Bounds { name: "move_across_classes", moves: 1, classes_changed: 1, follows_changed: 1, ..SMALL },
    Bounds { name: "move_for_everyone", follows: NO_FOLLOWS, moves: 1, classes_changed: 1, everyone: true, follows_changed: 1, ..SMALL },
    Bounds { name: "move_narrowed", narrowed: 1, moves: 1, follows_changed: 1, sleeps: 1, step: ALL_RECORDS, ..SMALL },
    Bounds { name: "move_and_roll_back", records: 1, moves: 1, follows_changed: 1, rollbacks: 1, ..SMALL },
    Bounds { name: "move_direct", records: 0, addressed: 2, moves: 2, trims: 1, sleeps: 1, news_limit: 1, ..SMALL },
    Bounds { name: "replaced", records: 0, addressed: 2, replaced: 2, sleeps: 1, news_limit: 1, devices: 2, ..SMALL },
    Bounds { name: "roll_back", follows_changed: 1, rollbacks: 1, crashes: 1, ..SMALL },
    Bounds { name: "roll_back_two_workers", deletes: false, rollbacks: 1, executors: 2, sleeps: 1, ..SMALL },
    Bounds { name: "roll_back_and_crash", deletes: false, rollbacks: 1, executors: 2, crashes: 1, ..SMALL },
    Bounds { name: "roll_back_two_rebuilds", records: 1, deletes: false, sleeps: 1, rollbacks: 1, rebuilds: 2, ..SMALL },
    Bounds { name: "roll_back_unasked", unasked: true, deletes: false, rollbacks: 1, executors: 2, sleeps: 1, ..SMALL },
    Bounds { name: "keep_followers", keeps: true, authors: 2, deletes: false, follows_changed: 1, sleeps: 1, ..SMALL },
    Bounds { name: "keep_followers_and_refollow", keeps: true, records: 3, deletes: false, executors: 2, follows_changed: 2, ..SMALL },
    Bounds { name: "roll_back_across_classes", classes_changed: 1, rollbacks: 1, follows_changed: 1, ..SMALL },
    Bounds { name: "feeds", feeds: 2, devices: 2, executors: 2, records: 3, follows_changed: 1, step: ALL_RECORDS, ..SMALL },
    Bounds { name: "feeds_asleep", feeds: 2, devices: 2, deletes: false, follows_changed: 1, sleeps: 1, step: ALL_RECORDS, ..SMALL },
    Bounds { name: "feeds_named_meanwhile", feeds: 2, named_meanwhile: true, devices: 2, follows: NO_FOLLOWS, records: 1, follows_changed: 2, crashes: 1, ..SMALL },
    Bounds { name: "feeds_pulled", feeds: 2, named_meanwhile: true, devices: 2, classes: [Pull; 2], deletes: false, follows_changed: 1, ..SMALL },
    Bounds { name: "feeds_direct", feeds: 2, named_meanwhile: true, devices: 2, records: 0, addressed: 2, sleeps: 1, ..SMALL },
    Bounds { name: "direct", records: 1, addressed: 2, follows_changed: 1, shields_changed: 1, takers: 2, classes: [Pull; 2], ..SMALL },
    Bounds { name: "direct_asleep", records: 0, addressed: 3, sleeps: 2, takers: 2, crashes: 1, news_limit: 1, ..SMALL },
    Bounds { name: "shields", records: 2, follows_changed: 1, shields_changed: 2, classes: [Pull; 2], classes_changed: 1, remembers: true, ..SMALL },
    Bounds { name: "everyone", follows: NO_FOLLOWS, classes_changed: 1, everyone: true, follows_changed: 1, shields_changed: 1, sleeps: 1, ..SMALL },
    Bounds { name: "everyone_and_another", authors: 2, deletes: false, follows: [false, true], classes: [Everyone, Pull], follows_changed: 2, ..SMALL },
];

/// The configuration of this name.
pub fn named(name: &str) -> Option<Bounds> {
    ALL.iter().copied().find(|bounds| bounds.name == name)
}
