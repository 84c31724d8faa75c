//! Tests of decisions, over a store that loads a row only when it is asked for.

use super::*;
use crate::archive::{Answer, Audience, Publish};
use crate::audience::{Narrowed, Narrowing};
use crate::graph::Shield;
use crate::import::PastMember;
use crate::{Body, FeedId, ItemId, Millis, Op, UserId, UserNo};

const NOW: Millis = 1_800_000_000_000;
const DAY: Millis = 24 * 3600 * 1000;

/// A store that keeps all rows in memory, and loads none before a decision asks for it.
struct Home {
    kept: Rows,
    users: u32,
    items: u64,
    /// How often the last write had to start over.
    again: usize,
    policy: Policy,
}

impl Default for Home {
    fn default() -> Self {
        let policy = Policy { pull_above: 2, whole_past: false };
        Self { kept: Rows::default(), users: 0, items: 0, again: 0, policy }
    }
}

impl Home {
    fn write(&mut self, write: Write) -> Refusal {
        self.write_at(write, NOW).0
    }

    /// The answer to a write, and what the author's followers or the readers get: op and feed of each record.
    fn write_at(&mut self, write: Write, now: Millis) -> (Refusal, Vec<(Op, FeedId)>) {
        let ask = Ask::new(write, now);
        let mut rows = Rows::default();
        self.again = 0;
        loop {
            match decide(&rows, &ask, self.policy) {
                Ok(plan) => {
                    self.kept.apply(&plan);
                    let records = plan.changes.iter().filter_map(|change| match change {
                        Change::Append { record, .. } => Some((record.op, record.feed)),
                        Change::Address { op, feed, .. } => Some((*op, *feed)),
                        _ => None,
                    });
                    return (Ok(plan.answer), records.collect());
                }
                Err(Stop::Refused(refused)) => return (Err(refused), vec![]),
                Err(Stop::Failed(error)) => panic!("{error}"),
                Err(Stop::Needs(needs)) => needs.into_iter().for_each(|need| self.load(&mut rows, need)),
            }
            self.again += 1;
        }
    }

    fn load(&mut self, rows: &mut Rows, need: Need) {
        let kept = &mut self.kept;
        match need {
            Need::User(name) => _ = rows.users.insert(name.clone(), kept.users.get(&name).copied().flatten()),
            Need::Number(name) => {
                self.users += 1;
                kept.users.insert(name.clone(), Some(UserNo(self.users)));
                rows.users.insert(name, Some(UserNo(self.users)));
            }
            Need::Author(no) => _ = rows.authors.insert(no, kept.authors.get(&no).copied().unwrap_or_default()),
            Need::Reader(no) => _ = rows.readers.insert(no, kept.readers.get(&no).copied().unwrap_or_default()),
            Need::Edge(reader, author) => {
                let edge = (reader, author);
                rows.edges.insert(edge, kept.edges.get(&edge).copied().flatten());
            }
            Need::Private(no) => _ = rows.privates.insert(no, kept.privates.get(&no).copied().unwrap_or_default()),
            Need::Item(id) => _ = rows.items.insert(id, kept.items.get(&id).cloned().flatten()),
            Need::Ended(id) => _ = rows.ended.insert(id, kept.ended.get(&id).copied().flatten()),
            Need::ForeignId(key) => {
                let id = kept.foreign_ids.get(&key).copied().flatten();
                rows.foreign_ids.insert(key, id);
            }
            Need::Retry(author, key) => {
                let retry = kept.retries.get(&(author, key.clone())).copied().flatten();
                rows.retries.insert((author, key), retry);
            }
            Need::NewId(author) => {
                self.items += 1;
                rows.new_id = Some((author, ItemId(self.items)));
            }
            Need::Audience(id) => _ = rows.audiences.insert(id, kept.audiences.get(&id).cloned().unwrap_or_default()),
            Need::Sight(key) => _ = rows.sights.insert(key, kept.sights.get(&key).copied().flatten()),
            Need::Member(key) => {
                let line = kept.members.get(&key).copied().flatten();
                rows.members.insert(key, line);
            }
            Need::Group(reader, group) => {
                let key = (reader, group);
                let line = kept.groups.get(&key).copied().flatten();
                rows.groups.insert(key, line);
            }
            Need::Line(id, _) => _ = rows.lines.insert(id, kept.lines.get(&id).cloned().flatten()),
        }
    }

    fn publish(&mut self, publish: Publish) -> ItemId {
        match self.write(Write::Publish(publish)) {
            Ok(Written::Published { id, .. }) => id,
            other => panic!("an item is accepted, not {other:?}"),
        }
    }

    /// The stored row of bob's edge to ann.
    fn edge(&mut self) -> EdgeRow {
        let [bob, ann] = ["bob", "ann"].map(|name| self.kept.users[&user(name)].unwrap());
        self.kept.edges[&(bob, ann)].unwrap()
    }
}

fn user(name: &str) -> UserId {
    name.parse().unwrap()
}

fn post(text: &str) -> Publish {
    Publish::new(user("ann"), Body::parse(format!("{text:?}")).unwrap())
}

fn follow() -> Write {
    Write::Follow { reader: user("bob"), author: user("ann") }
}

fn mute(up: bool) -> Write {
    Write::Shield { user: user("bob"), other: user("ann"), shield: Shield::Mute, up }
}

#[test]
fn i6_the_same_idempotency_key_gets_the_same_item_for_a_day() {
    let mut home = Home::default();
    let publish = |text| Write::Publish(Publish { idempotency_key: Some("key".into()), ..post(text) });
    let id_at = |home: &mut Home, now| match home.write_at(publish("a"), now).0 {
        Ok(Written::Published { id, fresh, .. }) => (id, fresh),
        other => panic!("{other:?}"),
    };
    assert_eq!(id_at(&mut home, NOW), (ItemId(1), true));
    assert_eq!(id_at(&mut home, NOW + DAY - 1), (ItemId(1), false));
    assert_eq!(home.write(publish("b")), Err(Refused::KeyReused("key".into())));
    assert_eq!(id_at(&mut home, NOW + DAY), (ItemId(2), true), "its time is over");
}

#[test]
fn i4_an_edge_that_takes_effect_again_begins_at_the_head() {
    let mut home = Home::default();
    home.publish(post("before"));
    home.write(follow()).unwrap();
    assert_eq!((home.edge().from, home.edge().generation), (1, 1));
    home.write(mute(true)).unwrap();
    home.publish(post("while muted"));
    home.write(mute(false)).unwrap();
    assert_eq!((home.edge().from, home.edge().generation), (2, 3));
    let again = home.write(follow()).unwrap();
    assert!(!again.is_fresh(), "{again:?}");
    assert_eq!(home.edge().generation, 3, "what is as it was asked takes no generation");
}

#[test]
fn s10_the_first_item_gives_its_author_an_edge_to_itself_that_counts_for_nothing() {
    let ann = UserNo(9);
    let mut home = Home::default();
    home.kept.users.insert(user("ann"), Some(ann));
    home.kept.authors.insert(ann, AuthorRow { head: 3, lacks_own_edge: true, ..AuthorRow::default() });
    let publish = |home: &mut Home, audience| match home.write(Write::Publish(Publish { audience, ..post("a") })) {
        Ok(Written::Published { own_edge, .. }) => own_edge,
        other => panic!("{other:?}"),
    };
    assert!(!publish(&mut home, Audience::Users(vec![user("bob")])), "what is sent stands in no feed of its author");
    assert!(publish(&mut home, Audience::Followers) && !publish(&mut home, Audience::Followers));
    let edge = home.kept.edges[&(ann, ann)].unwrap();
    assert!(edge.edge().on && (edge.from, edge.generation) == (3, 1), "{edge:?}");
    assert_eq!(edge.past(), 0, "and what stood there before is the author's too");
    let author = home.kept.authors[&ann];
    assert_eq!((author.head, author.followers, author.lacks_own_edge), (5, 0, false));
    let turn = |on| Write::OwnPosts { author: user("ann"), on };
    assert!(home.write(turn(false)).unwrap().is_fresh() && !home.write(turn(false)).unwrap().is_fresh());
    assert!(!home.kept.edges[&(ann, ann)].unwrap().edge().on);
    assert_eq!(home.kept.authors[&ann].followers, 0);
}

#[test]
fn s10_nobody_follows_themself_by_a_write_or_because_everyone_does() {
    let mut home = Home::default();
    for follows in [true, false] {
        let (reader, author) = (user("ann"), user("ann"));
        let write = if follows { Write::Follow { reader, author } } else { Write::Unfollow { reader, author } };
        assert_eq!(home.write(write), Err(Refused::FollowsItself(user("ann"))));
    }
    home.write(Write::Classify { author: user("ann"), class: crate::change::Class::Everyone }).unwrap();
    let off = home.write(Write::OwnPosts { author: user("ann"), on: false }).unwrap();
    assert!(!off.is_fresh(), "the edge was not on: {off:?}");
}

#[test]
fn an_add_goes_aside_unless_it_is_newer_than_the_last_in_step_and_its_rank_is_a_time() {
    let ahead = NOW + 5 * 60 * 1000;
    let key = |rank, item| crate::DisplayKey { rank, item: ItemId(item) };
    let goes = |last, key| publish::goes_aside(&AuthorRow { last_in_step: last, ..AuthorRow::default() }, key, NOW);
    assert_eq!([key(ahead, 1), key(ahead + 1, 1)].map(|key| goes(None, key)), [false, true], "a clock may be ahead");
    let last = key(NOW, 5);
    let keys = [key(NOW, 4), last, key(NOW, 6), key(NOW + 1, 1), key(ahead + 1, 1)];
    assert_eq!(keys.map(|key| goes(Some(last), key)), [true, true, false, false, true]);
}

#[test]
fn rows_are_after_a_write_as_the_store_is() {
    let mut home = Home::default();
    let ann = |home: &Home| home.kept.authors[&home.kept.users[&user("ann")].unwrap()];
    let newest = home.publish(Publish { published_at: Some(NOW), ..post("new") });
    assert_eq!(ann(&home).last_in_step.map(|key| key.item), Some(newest));
    assert!(!ann(&home).has_aside);
    home.publish(Publish { published_at: Some(NOW - 1), ..post("old") });
    assert_eq!((ann(&home).last_in_step.map(|key| key.item), ann(&home).has_aside), (Some(newest), true));
    for numbered in 1..=3 {
        home.publish(Publish { audience: Audience::Users(vec![user("bob")]), ..post("psst") });
        let bob = home.kept.users[&user("bob")].unwrap();
        assert_eq!(home.kept.readers[&bob].direct, numbered);
    }
}

#[test]
fn a_write_takes_the_memory_of_its_body_and_of_each_user_whom_it_names() {
    let bytes = |write| Ask::new(write, NOW).bytes() - size_of::<Ask>();
    let two = || vec![user("bob"), user("sue")];
    let narrowed = Narrowed { readers: Ok(two()), ..Narrowed::by(Narrowing::default()) };
    assert_eq!(bytes(Write::Publish(post("x"))), 3);
    for audience in [Audience::Users(two()), Audience::Narrowed(narrowed)] {
        assert_eq!(bytes(Write::Publish(Publish { audience, mentions: two(), ..post("x") })), 3 + 4 * (3 + 64));
    }
    let publish = Publish { mentions: two(), ..post("x") };
    assert_eq!(bytes(Write::Import(Import::Item { publish, version: 1, deleted: false })), 3 + 2 * (3 + 64));
    let body = Body::parse("1234".into()).ok();
    let edit = Write::Edit { item: ItemId(1), body, rank: None, mentions: Some(two()), if_version: None };
    assert_eq!(bytes(edit), 4 + 2 * (3 + 64));
    assert_eq!(bytes(follow()), 0);
}

#[test]
fn an_item_that_moves_mentions_whom_its_new_body_mentions() {
    let mut home = Home::default();
    let item = home.publish(Publish { mentions: vec![user("eve")], rank: Some(7), ..post("@eve") });
    let mentions = |home: &Home| home.kept.items[&item].clone().unwrap().mentions;
    let body = || Body::parse("2".into()).ok();
    let edit = |body, rank, mentions| Write::Edit { item, body, rank: Some(rank), mentions, if_version: None };
    home.write(edit(None, 8, None)).unwrap();
    assert_eq!(mentions(&home), [user("eve")]);
    home.write(edit(body(), 9, Some(vec![user("bob")]))).unwrap();
    assert_eq!(mentions(&home), [user("bob")]);
}

/// A home in which ann has sent bob an item, and the member of a line of bob's whose item it is.
fn line() -> (Home, PastMember) {
    let mut home = Home::default();
    let item = home.publish(Publish { audience: Audience::Users(vec![user("bob")]), ..post("a line") });
    home.write(Write::Follow { reader: user("bob"), author: user("eve") }).unwrap();
    let (reader, actor, told) = (user("bob"), user("ann"), Body::parse("{}".into()).unwrap());
    let (group, kind, key) = ("g".into(), "like".into(), "k".into());
    (home, PastMember { line: ItemId(50), item, reader, group, kind, actor, seq: 1, key, told })
}

fn import(home: &mut Home, member: PastMember) -> Refusal {
    home.write(Write::Import(Import::Member(Box::new(member))))
}

#[test]
fn s6_a_member_is_imported_only_into_a_line_that_tells_its_reader() {
    let (mut home, member) = line();
    let of = |reader| PastMember { reader: user(reader), ..member.clone() };
    assert_eq!(import(&mut home, of("eve")), Err(Refused::NoSuchItem(member.item)), "the item is bob's");
    import(&mut home, member.clone()).unwrap();
    let other = home.publish(Publish { audience: Audience::Users(vec![user("bob"), user("eve")]), ..post("both") });
    assert_eq!(
        import(&mut home, PastMember { item: other, key: "l".into(), ..member.clone() }),
        Err(Refused::NoSuchItem(other)),
        "and not bob's alone"
    );
    let another = home.publish(Publish { audience: Audience::Users(vec![user("bob")]), ..post("another") });
    let taken = Err(Refused::IdTaken(member.line));
    for wrong in [
        PastMember { item: another, key: "l".into(), ..member.clone() },
        PastMember { group: "h".into(), key: "l".into(), ..member.clone() },
    ] {
        assert_eq!(import(&mut home, wrong), taken);
    }
    let eves = home.publish(Publish { audience: Audience::Users(vec![user("eve")]), ..post("hers") });
    let hers = PastMember { item: eves, key: "l".into(), ..of("eve") };
    assert_eq!(import(&mut home, hers), taken);
    home.write(Write::Delete { item: another, if_version: None }).unwrap();
    let gone = PastMember { line: ItemId(60), item: another, key: "l".into(), ..member.clone() };
    assert_eq!(import(&mut home, gone), Err(Refused::NoSuchItem(another)));
}

#[test]
fn s6_deeds_join_the_newest_of_the_lines_that_were_imported() {
    let (mut home, member) = line();
    let group = (home.kept.users[&user("bob")].unwrap(), member.group.clone());
    for (line, key, newest) in [(50, "a", 50), (40, "b", 50), (60, "c", 60), (50, "d", 60)] {
        let member = PastMember { line: ItemId(line), key: key.into(), ..member.clone() };
        import(&mut home, member).unwrap();
        assert_eq!(home.kept.groups[&group], Some(ItemId(newest)), "after {key}");
    }
}

#[test]
fn i11_an_edit_and_a_delete_go_to_the_feed_of_their_add() {
    let mut home = Home::default();
    let likes = FeedId(3);
    for audience in [Audience::Followers, Audience::Users(vec![user("bob")])] {
        let item = home.publish(Publish { feed: likes, audience, ..post("a") });
        let edit =
            Write::Edit { item, body: Body::parse("2".into()).ok(), rank: None, mentions: None, if_version: Some(1) };
        assert_eq!(home.write_at(edit, NOW).1, [(Op::Update, likes)]);
        let delete = Write::Delete { item, if_version: Some(2) };
        assert_eq!(home.write_at(delete.clone(), NOW).1, [(Op::Delete, likes)]);
        assert_eq!(home.write_at(Write::Delete { item, if_version: None }, NOW).1, [], "it is gone already");
    }
}

#[test]
fn s11_a_rank_is_a_delete_and_an_add_by_the_way_of_the_item_and_the_same_rank_is_nothing() {
    let mut home = Home::default();
    let to = |audience| Publish { rank: Some(7), audience, ..post("a") };
    let rank = |item, rank| Write::Edit { item, body: None, rank: Some(rank), mentions: None, if_version: None };
    for audience in [Audience::Followers, Audience::Users(vec![user("bob")])] {
        let item = home.publish(to(audience.clone()));
        let before = home.kept.items[&item].clone().unwrap();
        assert_eq!(home.write_at(rank(item, 7), NOW).1, []);
        let main = FeedId::MAIN;
        assert_eq!(home.write_at(rank(item, 9), NOW).1, [(Op::Delete, main), (Op::Add, main)]);
        let now = home.kept.items[&item].clone().unwrap();
        let place = if audience == Audience::Followers { before.seq + 2 } else { 0 };
        assert_eq!((now.rank, now.version, now.seq, &now.door), (9, 2, place, &before.door));
        let both = Write::Edit {
            item,
            body: Body::parse("2".into()).ok(),
            rank: Some(7),
            mentions: None,
            if_version: Some(2),
        };
        assert_eq!(home.write_at(both, NOW).1, [(Op::Delete, main), (Op::Add, main)], "the add has the body too");
        assert_eq!(home.kept.items[&item].as_ref().unwrap().version, 3);
    }
}

#[test]
fn i5_nothing_is_addressed_to_a_reader_in_a_block_with_the_author() {
    let mut home = Home::default();
    let to = |names: &[&str]| Publish {
        audience: Audience::Users(names.iter().map(|name| user(name)).collect()),
        ..post("psst")
    };
    let item = home.publish(to(&["bob", "eve", "bob"]));
    let bob_and_eve = home.kept.items[&item].clone().unwrap().door;
    assert_eq!(bob_and_eve.readers().len(), 2, "a name given twice counts once");
    for (from, against) in [("ann", "bob"), ("bob", "ann")] {
        let block = |up| Write::Shield { user: user(from), other: user(against), shield: Shield::Block, up };
        home.write(block(true)).unwrap();
        let item = home.publish(to(&["bob", "eve"]));
        let eve = home.kept.users[&user("eve")].unwrap();
        assert_eq!(home.kept.items[&item].clone().unwrap().door.readers(), [eve], "{from} has blocked {against}");
        home.write(block(false)).unwrap();
    }
}

#[test]
fn who_is_named_by_a_refused_write_alone_gets_no_number() {
    let mut home = Home::default();
    home.publish(Publish { foreign_id: Some("theirs".into()), ..post("a") });
    let audience = Audience::Users(vec![user("eve")]);
    let taken = Publish { author: user("joe"), audience, foreign_id: Some("theirs".into()), ..post("b") };
    assert!(matches!(home.write(Write::Publish(taken)), Err(Refused::ForeignIdTaken(..))));
    let from = crate::import::Place::Add(ItemId(99));
    let history = Import::Follow { reader: user("eve"), author: user("joe"), since: 1, from };
    assert_eq!(home.write(Write::Import(history)), Err(Refused::NoSuchItem(ItemId(99))));
    assert_eq!(home.users, 1, "only ann has one");
}

#[test]
fn what_a_write_needs_of_many_is_loaded_at_once() {
    let mut home = Home::default();
    let audience = Audience::Users((0..1000).map(|n| user(&format!("reader-{n}"))).collect());
    home.publish(Publish { audience, idempotency_key: Some("key".into()), ..post("a") });
    assert!(home.again <= 8, "names, keys, edges and readers, not each by itself: begun again {} times", home.again);
}

#[test]
fn the_route_of_an_item_counts_the_followers_of_its_own_call() {
    let mut home = Home::default();
    for reader in ["bob", "eve", "joe"] {
        let route = |home: &mut Home| {
            let item = home.publish(post("a"));
            home.kept.items[&item].clone().unwrap().door
        };
        assert_eq!(route(&mut home), Door::Outbox(crate::change::Route::Push));
        home.write(Write::Follow { reader: user(reader), author: user("ann") }).unwrap();
    }
    let item = home.publish(post("a"));
    assert_eq!(home.kept.items[&item].clone().unwrap().door, Door::Outbox(crate::change::Route::Pull));
}

#[test]
fn s12_a_follow_shows_the_whole_past_if_it_began_while_that_was_set() {
    let mut home = Home::default();
    let whole_past = |home: &mut Home, whole_past| home.policy = Policy { whole_past, ..home.policy };
    home.publish(post("first"));
    home.publish(post("second"));
    home.write(follow()).unwrap();
    assert_eq!((home.edge().from, home.edge().past()), (2, 2), "only the newest");
    whole_past(&mut home, true);
    assert!(!home.write(follow()).unwrap().is_fresh(), "it goes on as it began");
    assert_eq!((home.edge().generation, home.edge().past()), (1, 2));
    home.write(mute(true)).unwrap();
    home.write(mute(false)).unwrap();
    assert_eq!((home.edge().from, home.edge().past()), (2, 0), "the end of a mute is a follow");
    whole_past(&mut home, false);
    home.write(follow()).unwrap();
    assert_eq!(home.edge().past(), 0);
    home.write(Write::Unfollow { reader: user("bob"), author: user("ann") }).unwrap();
    home.write(follow()).unwrap();
    assert_eq!((home.edge().from, home.edge().past()), (2, 2), "by the policy of now");
}

#[test]
fn s12_who_follows_by_name_whom_everyone_follows_sees_the_whole_past() {
    let mut home = Home::default();
    home.publish(post("first"));
    let everyone = Write::Classify { author: user("ann"), class: crate::change::Class::Everyone };
    home.write(everyone).unwrap();
    home.publish(post("second"));
    home.policy.whole_past = true;
    home.write(follow()).unwrap();
    let edge = home.edge();
    assert_eq!((edge.generation, edge.from, edge.past()), (1, 2, 0), "a change, so that a step brings it");
}

#[test]
fn s12_of_an_author_without_a_past_no_past_is_kept() {
    let mut home = Home::default();
    home.policy.whole_past = true;
    home.write(follow()).unwrap();
    assert_eq!((home.edge().from, home.edge().past), (0, None));
}

fn private(on: bool) -> Write {
    Write::Private { author: user("ann"), private: on }
}

fn answer(answer: Answer) -> Write {
    Write::Answer { reader: user("bob"), author: user("ann"), answer }
}

/// Whether the outcome of a follow is a request.
fn is_pending(outcome: &Refusal) -> bool {
    matches!(outcome, Ok(Written::Edge { pending: true, edge, .. }) if !edge.on)
}

#[test]
fn s9_a_follow_of_a_private_author_has_no_effect_before_it_is_accepted() {
    let mut home = Home::default();
    home.publish(post("a"));
    home.write(private(true)).unwrap();
    let asked = home.write(follow());
    assert!(is_pending(&asked) && asked.unwrap().is_fresh());
    assert!(is_pending(&home.write(follow())));
    let EdgeRow { follows, asked, generation, .. } = home.edge();
    assert_eq!((follows, asked, generation), (false, true, 0));
    let ann = home.kept.users[&user("ann")].unwrap();
    assert_eq!(home.kept.authors[&ann].followers, 0);
    let none = Refused::NoSuchRequest { reader: user("bob"), author: user("ann") };
    assert_eq!(home.write(answer(Answer::LetIn)), Err(none.clone()), "she is private still");
    home.write(answer(Answer::Accept)).unwrap();
    let EdgeRow { follows, asked, generation, from, .. } = home.edge();
    assert_eq!((follows, asked, generation, from), (true, false, 1, 1));
    assert_eq!(home.kept.authors[&ann].followers, 1);
    assert!(!is_pending(&home.write(follow())), "who follows does not ask");
    assert_eq!(home.write(answer(Answer::Refuse)), Err(none.clone()));
    home.write(Write::Unfollow { reader: user("bob"), author: user("ann") }).unwrap();
    home.write(follow()).unwrap();
    home.write(answer(Answer::Refuse)).unwrap();
    assert_eq!((home.edge().follows, home.edge().asked), (false, false));
    assert_eq!(home.write(answer(Answer::Accept)), Err(none));
}

#[test]
fn s9_no_request_stands_behind_a_block() {
    let mut home = Home::default();
    home.write(private(true)).unwrap();
    for (by, other) in [("ann", "bob"), ("bob", "ann")] {
        home.write(follow()).unwrap();
        assert!(home.edge().asked);
        let block = |up| Write::Shield { user: user(by), other: user(other), shield: Shield::Block, up };
        home.write(block(true)).unwrap();
        assert!(!home.edge().asked, "{by}");
        assert!(is_pending(&home.write(follow())), "the answer tells nobody of the block");
        assert!(!home.edge().asked, "{by}");
        home.write(block(false)).unwrap();
        assert!(!home.edge().asked, "{by}");
    }
    home.write(follow()).unwrap();
    home.write(mute(true)).unwrap();
    assert!(home.edge().asked, "a mute is no block");
}

#[test]
fn s9_a_private_author_is_nobodys_but_whom_it_accepts() {
    let mut home = Home::default();
    let everyone = Write::Classify { author: user("ann"), class: crate::change::Class::Everyone };
    let refused = Err(Refused::PrivateEveryones(user("ann")));
    home.write(private(true)).unwrap();
    assert_eq!(home.write(everyone.clone()), refused);
    home.write(private(false)).unwrap();
    home.write(everyone).unwrap();
    assert_eq!(home.write(private(true)), refused);
}

#[test]
fn s9_other_programs_are_told_of_follows_and_not_of_requests() {
    let mut home = Home::default();
    let acts = |home: &mut Home, write: Write| {
        let (ask, mut rows) = (Ask::new(write, NOW), Rows::default());
        loop {
            match decide(&rows, &ask, home.policy) {
                Ok(plan) => {
                    home.kept.apply(&plan);
                    return announcements(&ask, &plan).into_iter().map(|told| told.act).collect::<Vec<_>>();
                }
                Err(Stop::Needs(needs)) => needs.into_iter().for_each(|need| home.load(&mut rows, need)),
                Err(other) => panic!("{other:?}"),
            }
        }
    };
    let unfollow = || Write::Unfollow { reader: user("bob"), author: user("ann") };
    acts(&mut home, private(true));
    assert_eq!(acts(&mut home, follow()), []);
    assert_eq!(acts(&mut home, unfollow()), [], "what was not told is not taken back");
    acts(&mut home, follow());
    assert_eq!(acts(&mut home, answer(Answer::Refuse)), []);
    acts(&mut home, follow());
    assert_eq!(acts(&mut home, answer(Answer::Accept)), [crate::announce::Act::Follow]);
    assert_eq!(acts(&mut home, unfollow()), [crate::announce::Act::Unfollow]);
}
