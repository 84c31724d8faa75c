//! What waits, what was joined, what was asked past.

use super::*;

fn head(author: u32, pull_seq: PullSeq) -> PullHead {
    PullHead { pull_seq, author: UserNo(author) }
}

fn from(asked: PullSeq) -> State {
    State { asked: Some(asked), ..State::default() }
}

#[test]
fn an_author_waits_once_for_the_greatest_number() {
    let mut state = from(0);
    assert!(state.add(head(1, 3)) && state.add(head(1, 5)) && state.add(head(1, 4)));
    assert_eq!((state.next(), state.next()), (Some(head(1, 5)), None));
    assert!(!state.add(head(1, 5)), "it was joined for that");
    assert!(state.add(head(1, 6)));
}

#[test]
fn what_was_joined_is_not_joined_again_when_it_is_asked_for() {
    let mut state = from(2);
    assert!(!state.add(head(9, 2)), "that was asked for");
    state.add(head(1, 4));
    state.next();
    assert!(state.asked(&[head(2, 3), head(1, 4), head(3, 5)]));
    assert_eq!((state.asked, state.joined.len(), state.waiting.len()), (Some(5), 0, 2));
    assert!(!state.add(head(1, 4)));
}

#[test]
fn a_join_that_failed_waits_again() {
    let mut state = from(0);
    state.add(head(1, 3));
    let taken = state.next().unwrap();
    state.put_back(taken);
    assert_eq!(state.next(), Some(head(1, 3)));
}

#[test]
fn i18_what_finds_no_room_is_not_asked_past() {
    let mut state = from(0);
    (1..=WAITING_MAX as u32).for_each(|author| assert!(state.add(head(author, author.into()))));
    let beyond = WAITING_MAX as u64 + 1;
    assert!(!state.add(head(0, beyond)), "there is no room");
    assert!(state.add(head(7, beyond)), "it has its place already");
    assert!(!state.asked(&[head(8, 8), head(0, beyond)]));
    assert_eq!((state.asked, state.waiting.len()), (Some(8), WAITING_MAX));
    state.next();
    assert!(state.asked(&[head(0, beyond)]));
    assert_eq!(state.asked, Some(beyond));
}
