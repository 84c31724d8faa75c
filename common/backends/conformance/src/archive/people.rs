//! Tests of what backends say of users (S7): it outlives a restart, one read serves any number of users, and
//! nothing of it is lost or mixed up.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Known, Write};
use feedgate_common::people::{Card, Person, attrs};
use feedgate_common::{UserId, UserNo};

use super::{number, post, user, write};

fn person(name: Option<&str>, avatar: Option<&str>, json: Option<&str>) -> Person {
    let card = Card { name: name.map(Into::into), avatar: avatar.map(Into::into) };
    Person { card, attrs: json.map(|json| attrs(json.to_owned()).unwrap()) }
}

fn named(name: &str) -> Person {
    person(Some(name), None, None)
}

async fn put(archive: &dyn Archive, user: UserNo, person: &Person) -> bool {
    archive.put_people(vec![(user, person.clone())], Known::Replaced).await.unwrap()[0]
}

pub(super) async fn s7_a_person_is_replaced_as_a_whole_and_outlives_a_restart(
    open: impl AsyncFn(&str) -> Arc<dyn Archive>,
) {
    let archive = open("people").await;
    let (ann, bob) = (number(&*archive, "ann").await, number(&*archive, "bob").await);
    assert_eq!(archive.cards(&[ann, bob]).await.unwrap(), [None, None]);
    assert_eq!(archive.person(ann).await.unwrap(), None);
    assert!(!archive.remove_person(ann).await.unwrap(), "nothing is there");
    let long = format!("/{}", "x".repeat(2047));
    let steps = [
        person(
            Some("O'Brien \"x\"; DROP TABLE people; -- \\ 王小明 👩‍👩‍👧"),
            Some(&long),
            Some("{\"a\" : \"\\u0000\",\n\"a\":1.0}"),
        ),
        person(None, Some("https://cdn.example/%00"), None),
        named("ann"),
        person(None, None, Some("{}")),
        person(None, None, None),
    ];
    for step in &steps {
        for changes in [true, false] {
            assert_eq!(put(&*archive, ann, step).await, changes, "{step:?}");
            assert_eq!(archive.person(ann).await.unwrap().as_ref(), Some(step));
            assert_eq!(archive.cards(&[ann]).await.unwrap(), [Some(step.card.clone())]);
        }
    }
    put(&*archive, ann, &steps[0]).await;
    put(&*archive, bob, &named("bob")).await;
    assert!(archive.remove_person(bob).await.unwrap());
    drop(archive);
    let archive = open("people").await;
    assert_eq!(archive.cards(&[bob, ann]).await.unwrap(), [None, Some(steps[0].card.clone())]);
    assert_eq!(archive.person(ann).await.unwrap().as_ref(), Some(&steps[0]));
    assert_eq!(archive.person(bob).await.unwrap(), None);
}

pub(super) async fn s7_cards_come_in_the_order_asked(archive: Arc<dyn Archive>) {
    let names: Vec<UserId> = (0..100).map(|nth| user(&format!("u{nth}"))).collect();
    let numbers = archive.intern(&names).await.unwrap();
    let odd = |nth: &usize| nth % 2 == 1;
    let people = (0..100).filter(odd).map(|nth| (numbers[nth], named(&format!("name {nth}")))).collect();
    assert_eq!(archive.put_people(people, Known::Replaced).await.unwrap(), vec![true; 50]);
    let order = || (0..100).map(|nth| nth * 37 % 100).chain([1, 2, 1]);
    let asked: Vec<UserNo> = order().map(|nth| numbers[nth]).collect();
    let card = |nth: usize| odd(&nth).then(|| named(&format!("name {nth}")).card);
    assert_eq!(archive.cards(&asked).await.unwrap(), order().map(card).collect::<Vec<_>>());
    assert_eq!(archive.cards(&[]).await.unwrap(), []);
    assert_eq!(archive.put_people(vec![], Known::Replaced).await.unwrap(), [] as [bool; 0]);
}

pub(super) async fn s7_of_a_user_named_twice_one_counts_and_what_is_known_may_be_kept(archive: Arc<dyn Archive>) {
    let (ann, bob) = (number(&*archive, "ann").await, number(&*archive, "bob").await);
    let list = |names: [&str; 3]| {
        let users = [bob, ann, bob];
        users.into_iter().zip(names.map(named)).collect::<Vec<_>>()
    };
    let name = async |user| archive.person(user).await.unwrap().and_then(|person| person.card.name).unwrap_or_default();
    let kept = archive.put_people(list(["one", "two", "three"]), Known::Kept).await.unwrap();
    assert_eq!((kept, name(bob).await.as_str()), (vec![true, true, false], "one"));
    let replaced = archive.put_people(list(["four", "two", "five"]), Known::Replaced).await.unwrap();
    assert_eq!((replaced, name(bob).await.as_str()), (vec![false, false, true], "five"));
    let kept = archive.put_people(list(["six", "seven", "eight"]), Known::Kept).await.unwrap();
    assert_eq!((kept, name(bob).await.as_str()), (vec![false; 3], "five"));
    assert_eq!(name(ann).await, "two");
}

pub(super) async fn s7_people_are_walked_by_number(archive: Arc<dyn Archive>) {
    let mut numbers = vec![];
    for nth in 0..5 {
        let user = number(&*archive, &format!("u{nth}")).await;
        if nth != 2 {
            put(&*archive, user, &named(&format!("name {nth}"))).await;
            numbers.push(user);
        }
    }
    let (mut walked, mut after) = (vec![], None);
    loop {
        let some = archive.people(after, 3).await.unwrap();
        assert!(some.len() <= 3);
        let Some((last, _)) = some.last() else { break };
        after = Some(*last);
        walked.extend(some.iter().map(|(user, _)| *user));
    }
    assert_eq!(walked, numbers);
}

pub(super) async fn s7_what_is_said_of_a_user_enters_no_log(archive: Arc<dyn Archive>) {
    write(&*archive, Write::Publish(post("ann", "x"))).await.unwrap();
    let ann = number(&*archive, "ann").await;
    let log = async || {
        let outbox = archive.outbox(ann, 0, 10).await.unwrap();
        let due = archive.outstanding(None, i64::MAX, 10).await.unwrap();
        (outbox.records, due, archive.counts().await.unwrap())
    };
    let before = log().await;
    put(&*archive, ann, &named("Ann")).await;
    assert_eq!(log().await, before);
    archive.remove_person(ann).await.unwrap();
    assert_eq!(log().await, before);
}

pub(super) async fn s7_calls_that_name_the_same_users_at_once_do_not_stop_each_other(archive: Arc<dyn Archive>) {
    let names: Vec<UserId> = (0..20).map(|nth| user(&format!("u{nth}"))).collect();
    let numbers = archive.intern(&names).await.unwrap();
    let putting: Vec<_> = (0..8)
        .map(|call| {
            let (archive, mut numbers) = (archive.clone(), numbers.clone());
            tokio::spawn(async move {
                if call % 2 == 1 {
                    numbers.reverse();
                }
                for round in 0..5 {
                    let person = named(&format!("{call}.{round}"));
                    let people = numbers.iter().map(|user| (*user, person.clone())).collect();
                    archive.put_people(people, Known::Replaced).await.unwrap();
                }
            })
        })
        .collect();
    for call in putting {
        call.await.unwrap();
    }
    let cards = archive.cards(&numbers).await.unwrap();
    assert!(cards.iter().all(|card| *card == cards[0]), "a call is one transaction: {cards:?}");
}
