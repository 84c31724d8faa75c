//! Tests of reactions: a set whose count is its size whatever races, a list that pages without a gap, and what a viewer
//! sees of it (S1, S2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use feedgate_common::archive::Archive;
use feedgate_common::around::{Around, KINDS_MAX, Onlooker, Place, Reaction, ReactionKind, Unreacted, Viewer, Visible};
use feedgate_common::graph::Shield;
use feedgate_common::{ItemId, Millis, UserNo};

use super::{NOW, accept, delete, follow, number, post, write, write_at};

/// What a random schedule does: (item, kind, user, whether the reaction is given).
pub type Change = (usize, usize, usize, bool);

const KINDS: [&str; 3] = ["favourite", "like", "sad"];

fn kind(word: &str) -> ReactionKind {
    word.parse().unwrap()
}

fn reaction(item: ItemId, word: &str, user: UserNo, at: Millis) -> Reaction {
    Reaction { item, kind: kind(word), user, at }
}

async fn react(archive: &dyn Archive, reaction: Reaction) -> Result<bool, Unreacted> {
    archive.react(&[reaction]).await.unwrap().remove(0)
}

async fn unreact(archive: &dyn Archive, reaction: Reaction) -> Result<bool, Unreacted> {
    archive.unreact(&[reaction]).await.unwrap().remove(0)
}

async fn around(archive: &dyn Archive, item: ItemId, viewer: Option<UserNo>) -> Around {
    archive.around(&[item], viewer.map_or(Onlooker::BACKEND, Onlooker::user)).await.unwrap().remove(0)
}

async fn users<const N: usize>(archive: &dyn Archive) -> [UserNo; N] {
    let mut numbers = [UserNo(0); N];
    for (n, user) in numbers.iter_mut().enumerate() {
        *user = number(archive, &format!("user-{n}")).await;
    }
    numbers
}

fn shown(counts: &[(&str, u64)], own: &[&str]) -> Around {
    let counts = counts.iter().map(|(word, count)| (kind(word), *count)).collect();
    Around { counts, own: own.iter().map(|word| kind(word)).collect(), ..Around::default() }
}

pub(super) async fn s1_a_reaction_is_in_the_set_once_or_not_at_all(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "hot"), NOW).await;
    let [bob, cid] = users(archive).await;
    assert_eq!(around(archive, item, Some(bob)).await, Around::default());
    assert_eq!(unreact(archive, reaction(item, "like", bob, NOW)).await, Ok(false));
    assert_eq!(react(archive, reaction(item, "like", bob, NOW)).await, Ok(true));
    assert_eq!(react(archive, reaction(item, "like", bob, NOW + 5)).await, Ok(false));
    assert_eq!(react(archive, reaction(item, "sad", bob, NOW + 6)).await, Ok(true));
    assert_eq!(react(archive, reaction(item, "like", cid, NOW + 7)).await, Ok(true));
    assert_eq!(around(archive, item, Some(bob)).await, shown(&[("like", 2), ("sad", 1)], &["like", "sad"]));
    assert_eq!(around(archive, item, Some(cid)).await, shown(&[("like", 2), ("sad", 1)], &["like"]));
    assert_eq!(around(archive, item, None).await, shown(&[("like", 2), ("sad", 1)], &[]));
    let lines = archive.reactions(item, Onlooker::BACKEND, None, None, 10).await.unwrap();
    let times: Vec<_> = lines.iter().map(|line| (line.place.at, line.user.as_str())).collect();
    assert_eq!(times, [(NOW + 7, "user-1"), (NOW + 6, "user-0"), (NOW, "user-0")], "a reaction keeps its time");
    assert_eq!(unreact(archive, reaction(item, "sad", bob, 0)).await, Ok(true));
    assert_eq!(unreact(archive, reaction(item, "sad", bob, 0)).await, Ok(false));
    assert_eq!(around(archive, item, Some(bob)).await, shown(&[("like", 2)], &["like"]));
}

pub(super) async fn s1_one_call_answers_each_reaction_in_its_place(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "one"), NOW).await;
    let [bob, cid] = users(archive).await;
    let like = |item, user| reaction(item, "like", user, NOW);
    let asked = [like(item, bob), like(ItemId(1), bob), like(item, cid), like(item, bob)];
    let answers = archive.react(&asked).await.unwrap();
    assert_eq!(answers, [Ok(true), Err(Unreacted::NoSuchItem(ItemId(1))), Ok(true), Ok(false)]);
    assert_eq!(archive.around(&[ItemId(1), item, item], Onlooker::user(cid)).await.unwrap(), {
        let liked = shown(&[("like", 2)], &["like"]);
        [Around::default(), liked.clone(), liked]
    });
    let answers = archive.unreact(&asked).await.unwrap();
    assert_eq!(answers, [Ok(true), Err(Unreacted::NoSuchItem(ItemId(1))), Ok(true), Ok(false)]);
    assert_eq!(archive.reacted_item(None).await.unwrap(), None);
}

pub(super) async fn s1_an_item_takes_so_many_kinds(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "kinds"), NOW).await;
    let [bob] = users(archive).await;
    let asked: Vec<Reaction> =
        (0..=KINDS_MAX).map(|n| reaction(item, &format!("kind-{n:02}"), bob, NOW + n as i64)).collect();
    let answers = archive.react(&asked).await.unwrap();
    assert_eq!(answers.iter().filter(|answer| **answer == Ok(true)).count(), KINDS_MAX);
    assert_eq!(answers.last(), Some(&Err(Unreacted::TooManyKinds(item))));
    assert_eq!(react(archive, reaction(item, "another", bob, NOW)).await, Err(Unreacted::TooManyKinds(item)));
    assert_eq!(react(archive, asked[0].clone()).await, Ok(false), "a kind that is known goes on");
    assert_eq!(around(archive, item, Some(bob)).await.own.len(), KINDS_MAX);
}

/// Tasks give and take back the same few reactions at the same time; what each was answered must add up.
pub(super) async fn s1_a_count_is_the_size_of_its_set_after_any_race(archive: Arc<dyn Archive>) {
    let (item, _) = accept(&*archive, post("ann", "race"), NOW).await;
    let users: [UserNo; 4] = users(&*archive).await;
    let tasks = (0..8usize).map(|task| {
        let archive = archive.clone();
        tokio::spawn(async move {
            let mut more = [0i64; 4];
            for step in 0..12usize {
                let at = (task + step) % users.len();
                let reaction = reaction(item, "like", users[at], NOW + step as i64);
                if (task * 7 + step) % 3 == 0 {
                    more[at] -= i64::from(unreact(&*archive, reaction).await.unwrap());
                } else {
                    more[at] += i64::from(react(&*archive, reaction).await.unwrap());
                }
            }
            more
        })
    });
    let mut sums = [0i64; 4];
    for task in Vec::from_iter(tasks) {
        let more = task.await.unwrap();
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    assert!(sums.iter().all(|sum| (0..=1).contains(sum)), "each reaction is there once or not: {sums:?}");
    is_exact(&*archive, &[item], &users).await;
    let count = around(&*archive, item, None).await.counts.first().map_or(0, |(_, count)| *count);
    assert_eq!(i64::try_from(count).unwrap(), sums.iter().sum::<i64>());
}

/// Checks that the counts, the list and what is own of these items agree.
async fn is_exact(archive: &dyn Archive, items: &[ItemId], users: &[UserNo]) {
    for item in items {
        let lines = archive.reactions(*item, Onlooker::BACKEND, None, None, 1000).await.unwrap();
        let set: BTreeSet<(ReactionKind, UserNo)> =
            lines.iter().map(|line| (line.place.kind.clone(), line.place.user)).collect();
        assert_eq!(set.len(), lines.len(), "nobody is listed twice");
        for user in users {
            let Around { counts, own, .. } = around(archive, *item, Some(*user)).await;
            let of = |kind: &ReactionKind| set.iter().filter(|(other, _)| other == kind).count() as u64;
            assert!(counts.iter().all(|(kind, count)| *count == of(kind)), "{counts:?} of {set:?}");
            assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), set.len() as u64);
            let mine: Vec<_> = set.iter().filter(|(_, other)| other == user).map(|(kind, _)| kind.clone()).collect();
            assert_eq!(own, mine);
        }
    }
}

/// Carries out a schedule and compares the store with a set after it.
pub async fn s1_counts_are_the_sizes_of_the_sets_after_any_schedule(archive: Arc<dyn Archive>, schedule: &[Change]) {
    let archive = &*archive;
    let mut items = vec![];
    for n in 0..3 {
        items.push(accept(archive, post("ann", &format!("item {n}")), NOW).await.0);
    }
    let users: [UserNo; 4] = users(archive).await;
    let mut set: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
    for (step, (item, word, user, on)) in schedule.iter().enumerate() {
        let key = (item % items.len(), word % KINDS.len(), user % users.len());
        let reaction = reaction(items[key.0], KINDS[key.1], users[key.2], NOW + step as i64);
        if *on {
            assert_eq!(react(archive, reaction).await, Ok(set.insert(key)));
        } else {
            assert_eq!(unreact(archive, reaction).await, Ok(set.remove(&key)));
        }
    }
    is_exact(archive, &items, &users).await;
    for (n, item) in items.iter().enumerate() {
        let wanted = KINDS.iter().enumerate().map(|(at, word)| {
            (kind(word), set.iter().filter(|(item, kind, _)| (*item, *kind) == (n, at)).count() as u64)
        });
        let wanted: Vec<_> = wanted.filter(|(_, count)| *count > 0).collect();
        assert_eq!(around(archive, *item, None).await.counts, wanted);
    }
}

pub(super) async fn s1_the_list_of_who_reacted_pages_without_gap_or_repeat_while_others_react(
    archive: Arc<dyn Archive>,
) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "list"), NOW).await;
    let users: [UserNo; 12] = users(archive).await;
    let mut all = vec![];
    for (n, user) in users.iter().enumerate() {
        let word = KINDS[n % 2];
        // Several have the same time.
        let at = NOW + (n / 4) as i64;
        react(archive, reaction(item, word, *user, at)).await.unwrap();
        react(archive, reaction(item, "sad", *user, at)).await.unwrap();
        all.extend([(at, *user, word), (at, *user, "sad")]);
    }
    for only in [None, Some("sad"), Some("favourite")] {
        let only = only.map(kind);
        let (mut walked, mut before): (Vec<Place>, Option<Place>) = (vec![], None);
        loop {
            let page = archive.reactions(item, Onlooker::BACKEND, only.as_ref(), before.as_ref(), 5).await.unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.place.clone());
            walked.extend(page.into_iter().map(|line| line.place));
            let late = number(archive, &format!("late-{}-{}", walked.len(), only.is_some())).await;
            react(archive, reaction(item, "sad", late, NOW + 100)).await.unwrap();
        }
        let mut wanted: Vec<Place> =
            all.iter().map(|(at, user, word)| Place { at: *at, user: *user, kind: kind(word) }).collect();
        wanted.retain(|place| only.as_ref().is_none_or(|only| *only == place.kind));
        wanted.sort_unstable_by(|a, b| b.cmp(a));
        walked.retain(|place| place.at < NOW + 100);
        assert_eq!(walked, wanted, "{only:?}");
    }
    assert_eq!(archive.reactions(item, Onlooker::BACKEND, Some(&kind("none")), None, 5).await.unwrap(), []);
}

/// Of one item few users have reacted, of the other more than anybody has friends: a home may look at either side.
pub(super) async fn s3_of_some_alone_a_viewer_counts_and_lists_what_it_sees(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (few, _) = accept(archive, post("user-0", "few"), NOW).await;
    let (many, _) = accept(archive, post("user-0", "many"), NOW).await;
    let users: [UserNo; 12] = users(archive).await;
    let [owner, friend, behind, one_sided, viewer, muted, stranger, ..] = users;
    let name = |user: UserNo| format!("user-{}", users.iter().position(|other| *other == user).unwrap());
    let mut both = vec![];
    for (a, b) in [(viewer, friend), (viewer, behind), (viewer, muted), (owner, friend), (owner, behind)] {
        both.extend([(a, b), (b, a)]);
    }
    for (reader, author) in both.into_iter().chain([(viewer, one_sided), (viewer, owner)]) {
        write(archive, follow(&name(reader), &name(author))).await.unwrap();
    }
    let put_up = async |shield, other| {
        write(archive, super::shield(&name(viewer), shield, &name(other), true)).await.unwrap();
    };
    put_up(Shield::Block, behind).await;
    put_up(Shield::Mute, muted).await;
    write(archive, super::shield(&name(behind), Shield::Block, &name(owner), true)).await.unwrap();
    let mut given: Vec<(ItemId, Place)> = vec![];
    for (item, reacting) in [(few, &[friend, stranger][..]), (many, &users)] {
        for (nth, user) in reacting.iter().enumerate() {
            for word in if nth % 2 == 0 { &["like", "sad"][..] } else { &["like"] } {
                let at = NOW + (nth / 3) as i64;
                react(archive, reaction(item, word, *user, at)).await.unwrap();
                given.push((item, Place { at, user: *user, kind: kind(word) }));
            }
        }
    }
    let seen_by: [(Viewer, Vec<UserNo>); 6] = [
        (Viewer::Backend, users.to_vec()),
        (Viewer::User(None), vec![owner]),
        (Viewer::User(Some(viewer)), vec![owner, friend, viewer, muted]),
        (Viewer::User(Some(owner)), users.iter().copied().filter(|user| *user != behind).collect()),
        (Viewer::User(Some(behind)), vec![behind]),
        (Viewer::User(Some(stranger)), vec![owner, stranger]),
    ];
    for (viewer, seen) in seen_by {
        let onlooker = Onlooker { viewer, visible: Visible::Mutual };
        let around = archive.around(&[many, few, many], onlooker).await.unwrap();
        for (item, around) in [many, few, many].into_iter().zip(around) {
            let shown = |place: &Place| seen.contains(&place.user);
            let places = given.iter().filter(|(of, place)| *of == item && shown(place)).map(|(_, place)| place);
            let mut places: Vec<&Place> = places.collect();
            places.sort_unstable_by(|a, b| b.cmp(a));
            let mut counts: BTreeMap<&ReactionKind, u64> = BTreeMap::new();
            places.iter().for_each(|place| *counts.entry(&place.kind).or_default() += 1);
            let own = places.iter().filter(|place| Some(place.user) == viewer.user());
            let own: BTreeSet<_> = own.map(|place| place.kind.clone()).collect();
            let counts: Vec<_> = counts.into_iter().map(|(kind, count)| (kind.clone(), count)).collect();
            let wanted = Around { counts, own: own.into_iter().collect(), ..Around::default() };
            assert_eq!(around, wanted, "{viewer:?} of {item}");
            for only in [None, Some(kind("sad"))] {
                let (mut walked, mut before): (Vec<Place>, Option<Place>) = (vec![], None);
                loop {
                    let (only, from) = (only.as_ref(), before.as_ref());
                    let page = archive.reactions(item, onlooker, only, from, 2).await.unwrap();
                    let Some(last) = page.last() else { break };
                    before = Some(last.place.clone());
                    walked.extend(page.into_iter().map(|line| line.place));
                }
                let wanted = places.iter().filter(|place| only.as_ref().is_none_or(|only| *only == place.kind));
                let wanted: Vec<Place> = wanted.map(|place| (*place).clone()).collect();
                assert_eq!(walked, wanted, "{viewer:?} of {item}, {only:?}");
            }
        }
    }
    write(archive, delete(many)).await.unwrap();
    for viewer in [owner, viewer] {
        let onlooker = Onlooker { viewer: Viewer::User(Some(viewer)), visible: Visible::Mutual };
        assert_eq!(archive.around(&[many], onlooker).await.unwrap(), [Around::default()]);
        assert_eq!(archive.reactions(many, onlooker, None, None, 9).await.unwrap(), []);
    }
}

pub(super) async fn s1_with_its_item_all_of_it_is_gone_from_sight_at_once(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (kept, _) = accept(archive, post("ann", "kept"), NOW).await;
    let (item, _) = accept(archive, post("ann", "deleted"), NOW).await;
    let [bob, cid] = users(archive).await;
    for (of, user) in [(item, bob), (item, cid), (kept, bob)] {
        react(archive, reaction(of, "like", user, NOW)).await.unwrap();
    }
    assert_eq!(archive.reacted_item(None).await.unwrap(), Some(kept.min(item)));
    write(archive, delete(item)).await.unwrap();
    assert_eq!(around(archive, item, Some(bob)).await, Around::default());
    assert_eq!(archive.reactions(item, Onlooker::BACKEND, None, None, 9).await.unwrap(), []);
    let like = || reaction(item, "like", bob, NOW);
    assert_eq!(react(archive, like()).await, Err(Unreacted::NoSuchItem(item)));
    assert_eq!(unreact(archive, like()).await, Err(Unreacted::NoSuchItem(item)));
    assert_eq!(archive.reacted_item(None).await.unwrap(), Some(kept));
    assert_eq!(archive.reacted_item(Some(kept)).await.unwrap(), None);
    // Later writes remove what is left.
    for hour in 1..4 {
        write_at(archive, super::follow("bob", "ann"), NOW + hour * 3_600_000).await.unwrap();
    }
    assert_eq!(around(archive, kept, Some(bob)).await, shown(&[("like", 1)], &["like"]));
}

pub(super) async fn s1_reactions_outlive_a_restart(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("reacted").await;
    let (item, _) = accept(&*archive, post("ann", "kept"), NOW).await;
    let [bob, cid] = users(&*archive).await;
    react(&*archive, reaction(item, "like", bob, NOW)).await.unwrap();
    drop(archive);
    let archive = open("reacted").await;
    assert_eq!(around(&*archive, item, Some(bob)).await, shown(&[("like", 1)], &["like"]));
    react(&*archive, reaction(item, "like", cid, NOW)).await.unwrap();
    unreact(&*archive, reaction(item, "like", bob, NOW)).await.unwrap();
    assert_eq!(around(&*archive, item, Some(bob)).await, shown(&[("like", 1)], &[]));
}
