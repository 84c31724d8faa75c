//! Tests of the subscription: inputs go in, actions come out. The names of the tests are the specification.

use super::*;

const HEAD_7: Position = at(1, 7);

const fn at(epoch: u64, offset: u64) -> Position {
    Position { epoch: Epoch(epoch), offset }
}

fn changes(first: u64, last: u64, head: u64) -> Input {
    Input::Found(Found::Changes { first, last, head })
}

fn head(epoch: u64, offset: u64) -> Input {
    Input::Found(Found::Head(at(epoch, offset)))
}

fn gone(epoch: u64, offset: u64) -> Input {
    Input::Found(Found::Gone(at(epoch, offset)))
}

fn after(offset: u64) -> Action {
    Action::Read(Ask::After(at(1, offset)))
}

fn opened(position: Position, was_recovering: bool, recovered: bool) -> Action {
    Action::Opened(Opened { position, was_recovering, recovered })
}

fn check(mut subscription: Subscription, steps: &[(Input, &[Action])]) {
    for (n, (input, wanted)) in steps.iter().enumerate() {
        let actions: Vec<Action> = subscription.on(*input).into_iter().collect();
        assert_eq!(actions, *wanted, "step {n}: {input:?}");
    }
}

fn opening(deliver: Deliver, start: Start) -> Subscription {
    Subscription::open(deliver, start, false).0
}

/// A subscription that has just begun at the head, offset 7.
fn live(deliver: Deliver) -> Subscription {
    let mut subscription = opening(deliver, Start::Head);
    let actions: Vec<Action> = subscription.on(head(1, 7)).into_iter().collect();
    assert_eq!(actions, [opened(HEAD_7, false, false)]);
    subscription
}

use Deliver::{Items, Notify};
use Input::{Failed, Wake, Writable};

#[test]
fn a_subscription_begins_with_the_read_that_decides_it() {
    let first = |deliver, start| Subscription::open(deliver, start, false).1;
    for deliver in [Items, Notify] {
        assert_eq!(first(deliver, Start::Head), Action::Read(Ask::Head));
        assert_eq!(first(deliver, Start::Lost), Action::Read(Ask::Head));
    }
    assert_eq!(first(Items, Start::At(at(1, 3))), after(3));
    assert_eq!(first(Notify, Start::At(at(1, 3))), Action::Read(Ask::Serves(at(1, 3))));
}

#[test]
fn a_read_is_cut_if_the_log_goes_on_after_it() {
    let cut = |last, head| Found::Changes { first: 4, last, head }.is_cut();
    assert!(cut(5, 9));
    assert!(!cut(9, 9));
    assert!(!Found::Head(HEAD_7).is_cut() && !Found::Gone(HEAD_7).is_cut());
}

#[test]
fn i9_recovered_names_the_devices_own_position_and_the_backlog_follows_as_pushes() {
    check(
        opening(Items, Start::At(at(1, 3))),
        &[
            (changes(4, 5, 9), &[opened(at(1, 3), true, true), Action::Push]),
            (Writable, &[after(5)]),
            (changes(6, 9, 9), &[Action::Push]),
            (Writable, &[]),
        ],
    );
}

#[test]
fn a_device_that_missed_nothing_is_recovered_and_gets_nothing() {
    check(opening(Items, Start::At(HEAD_7)), &[(changes(8, 7, 7), &[opened(HEAD_7, true, true)]), (Wake, &[after(7)])]);
}

#[test]
fn i9_a_position_that_is_gone_starts_at_the_head_unrecovered() {
    for deliver in [Items, Notify] {
        check(opening(deliver, Start::At(at(1, 3))), &[(gone(2, 9), &[opened(at(2, 9), true, false)])]);
        check(opening(deliver, Start::Lost), &[(head(2, 9), &[opened(at(2, 9), true, false)])]);
    }
}

#[test]
fn i9_a_device_that_rejects_unrecovered_is_refused_instead() {
    let lost = |start| Subscription::open(Items, start, true).0;
    check(lost(Start::At(at(1, 3))), &[(gone(2, 9), &[Action::RefuseUnrecovered])]);
    check(lost(Start::Lost), &[(head(2, 9), &[Action::RefuseUnrecovered])]);
    check(lost(Start::Head), &[(head(2, 9), &[opened(at(2, 9), false, false)])]);
}

#[test]
fn a_wake_reads_and_what_is_found_is_pushed() {
    check(live(Items), &[(Wake, &[after(7)]), (changes(8, 8, 8), &[Action::Push]), (Writable, &[])]);
}

#[test]
fn a_wake_during_a_read_is_kept() {
    check(live(Items), &[(Wake, &[after(7)]), (Wake, &[]), (changes(8, 7, 7), &[after(7)])]);
}

#[test]
fn a_wake_while_the_subscription_begins_is_kept() {
    check(
        opening(Items, Start::Head),
        &[(Wake, &[]), (head(1, 7), &[opened(HEAD_7, false, false), after(7)]), (changes(8, 8, 8), &[Action::Push])],
    );
    check(
        opening(Items, Start::At(at(1, 3))),
        &[(Wake, &[]), (gone(2, 9), &[opened(at(2, 9), true, false), Action::Read(Ask::After(at(2, 9)))])],
    );
}

#[test]
fn many_wakes_are_one_read() {
    check(live(Items), &[(Wake, &[after(7)]), (Wake, &[]), (Wake, &[]), (changes(8, 8, 8), &[Action::Push])]);
}

#[test]
fn i18_nothing_is_read_while_the_socket_still_holds_what_was_pushed() {
    check(
        live(Items),
        &[
            (Wake, &[after(7)]),
            (changes(8, 10, 5000), &[Action::Push]),
            (Wake, &[]),
            (Wake, &[]),
            (Writable, &[after(10)]),
        ],
    );
}

#[test]
fn catch_up_goes_on_batch_by_batch_without_another_wake() {
    check(
        live(Items),
        &[
            (Wake, &[after(7)]),
            (changes(8, 9, 11), &[Action::Push]),
            (Writable, &[after(9)]),
            (changes(10, 11, 11), &[Action::Push]),
            (Writable, &[]),
        ],
    );
}

#[test]
fn i9_a_live_position_that_is_gone_ends_the_connection_so_that_the_device_resets() {
    let insufficient = Action::Close(Close::InsufficientState);
    check(live(Items), &[(Wake, &[after(7)]), (gone(2, 1), &[insufficient])]);
    check(live(Notify), &[(Wake, &[Action::Read(Ask::Head)]), (head(2, 9), &[insufficient])]);
    check(live(Notify), &[(Wake, &[Action::Read(Ask::Head)]), (head(1, 6), &[insufficient])]);
}

#[test]
fn i2_changes_that_do_not_follow_the_position_are_never_passed_on() {
    for (first, last, head) in [(9, 9, 9), (7, 8, 8), (8, 9, 8)] {
        let broken = Action::Close(Close::ServerError);
        check(live(Items), &[(Wake, &[after(7)]), (changes(first, last, head), &[broken])]);
    }
}

#[test]
fn notify_mode_tells_the_new_head_once_for_many_changes() {
    check(
        live(Notify),
        &[
            (Wake, &[Action::Read(Ask::Head)]),
            (head(1, 16), &[Action::Behind(16)]),
            (Wake, &[]),
            (Writable, &[Action::Read(Ask::Head)]),
            (head(1, 16), &[]),
        ],
    );
}

#[test]
fn notify_mode_recovers_and_says_behind_at_once() {
    check(
        opening(Notify, Start::At(at(1, 3))),
        &[(head(1, 7), &[opened(at(1, 3), true, true), Action::Behind(7)]), (Writable, &[])],
    );
}

#[test]
fn a_failed_read_is_tried_again_later_and_the_subscription_stays() {
    check(
        live(Items),
        &[(Wake, &[after(7)]), (Failed, &[Action::Retry]), (Wake, &[after(7)]), (changes(8, 8, 8), &[Action::Push])],
    );
}

#[test]
fn a_wake_during_a_read_that_fails_waits_for_the_retry() {
    check(live(Items), &[(Wake, &[after(7)]), (Wake, &[]), (Failed, &[Action::Retry]), (Wake, &[after(7)])]);
}

#[test]
fn a_subscription_whose_first_read_fails_is_refused() {
    check(opening(Items, Start::Head), &[(Failed, &[Action::RefuseFailed])]);
}

#[test]
fn i12_sent_is_what_was_pushed_and_never_beyond_the_head() {
    let mut subscription = live(Items);
    for (input, sent) in [(Wake, 7), (changes(8, 9, 12), 9), (Writable, 9), (changes(10, 12, 12), 12)] {
        let _ = subscription.on(input);
        assert_eq!(subscription.position(), at(1, sent), "{input:?}");
    }
}

#[test]
fn a_subscription_that_may_send_no_more_waits_until_the_socket_can_take_it() {
    let mut subscription = live(Items);
    assert!(!subscription.awaits_writable());
    let _ = subscription.on(Wake);
    let _ = subscription.on(changes(8, 8, 9));
    assert!(subscription.awaits_writable());
    let _ = subscription.on(Writable);
    assert!(!subscription.awaits_writable());
}
