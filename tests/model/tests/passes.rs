//! All states of every configuration are visited: no reachable state breaks a property, and there are as many states as
//! the crate's documentation says. If a change of the rules changes a number, first understand why, then change the
//! documentation.

#![expect(clippy::print_stdout, reason = "the numbers of states are what the tests show")]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use feedgate_model::configurations::{ALL, named};
use feedgate_model::{Fanout, Visited};
use stateright::{Checker, Model};

fn passes(name: &str) {
    let bounds = named(name).expect("a configuration");
    let model = Fanout::new(bounds);
    let Ok(Visited { states, depth }) = model.visit_all() else {
        let path =
            model.checker().spawn_bfs().join().discoveries().into_values().next().expect("what was found before");
        panic!("{name} breaks {:?}: {:#?}", model.broken(path.last_state()), path.into_actions());
    };
    println!("{name}: {states} states, depth {depth}");
    let documented = include_str!("../src/lib.rs").lines().find_map(|line| {
        let (_, states) = line.strip_prefix(&format!("//! | `{name}` |"))?.trim_end_matches('|').rsplit_once('|')?;
        states.replace(' ', "").parse().ok()
    });
    assert_eq!(Some(states), documented, "states of {name} as documented");
}

/// The two ways through a configuration that the crate has.
#[test]
fn a_visit_finds_the_states_that_the_checker_finds() {
    let model = Fanout::new(named("move_pulled").expect("a configuration"));
    let checker = model.checker().spawn_bfs().join();
    let found = Visited { states: checker.unique_state_count(), depth: checker.max_depth() };
    assert_eq!(model.visit_all().ok(), Some(found));
}

macro_rules! passing {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            passes(stringify!($name));
        })*

        #[test]
        fn every_configuration_is_a_test() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(ALL.iter().map(|bounds| bounds.name).collect::<Vec<_>>(), tested);
        }
    };
}

passing! {
    push push_in_batches push_to_two_readers
    follow follow_three_times follow_from_behind follow_two follow_inside_a_record
    cross_classes cross_classes_asleep
    pull pull_two pull_two_asleep pull_little_by_little pull_asleep
    follow_the_past pull_the_past past_and_trim past_of_two
    rebuild rebuild_overflows
    trim trim_two trim_and_refollow
    narrow narrow_and_follow narrow_to_two_readers narrow_pulled narrow_and_roll_back
    own
    move_and_follow move_asleep move_pulled move_and_trim move_in_the_past move_across_classes move_for_everyone
    move_narrowed move_and_roll_back move_direct
    replaced
    roll_back roll_back_two_workers roll_back_and_crash roll_back_two_rebuilds roll_back_unasked
    keep_followers keep_followers_and_refollow roll_back_across_classes
    feeds feeds_asleep feeds_named_meanwhile feeds_pulled feeds_direct
    direct direct_asleep
    shields everyone everyone_and_another
}
