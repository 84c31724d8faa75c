//! Tests of erasures: one user is gone from every read, others keep all that is theirs, and the receipt is right
//! whatever dies on the way and however many work at once.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Below, Known, Note, Publish, PushDevice, Remains, Write, Written};
use feedgate_common::around::{CommentOrder, CommentWrite, NewComment, Onlooker, Reaction};
use feedgate_common::audience::ListChange;
use feedgate_common::erase::{Erasure, Mark, Removed, Stage, State, TRACES_MAX, Trace};
use feedgate_common::feed::{Eraser, traces};
use feedgate_common::graph::{Shield, Shields};
use feedgate_common::people::{Card, Person};
use feedgate_common::seen::Earlier;
use feedgate_common::{DisplayKey, Epoch, FeedId, InboxKey, ItemId, Position, Seen, UserNo, Watermarks};

use super::audiences::narrowed_to;
use super::{NOW, accept, body, delete, follow, move_to, number, post, shield, to_users, user, write};
use crate::inboxes::naive::Naive;

const LATER: i64 = NOW + 60_000;

fn eraser(archive: &Arc<dyn Archive>) -> Eraser {
    Eraser::new(archive.clone(), Arc::new(Naive::new(4)))
}

async fn one(archive: &dyn Archive, id: u64) -> Erasure {
    archive.erasure(id).await.unwrap().unwrap()
}

/// Goes through an erasure to its end, by one worker that lives.
async fn finish(archive: &Arc<dyn Archive>, id: u64) -> Erasure {
    let eraser = eraser(archive);
    loop {
        let erasure = one(&**archive, id).await;
        if erasure.state.is_finished() {
            return erasure;
        }
        eraser.step(&erasure, LATER).await.unwrap();
    }
}

/// Erases a user, by one worker that lives.
pub(super) async fn erase(archive: &Arc<dyn Archive>, who: UserNo) -> Erasure {
    finish(archive, archive.begin_erasure(who, NOW).await.unwrap().id).await
}

pub(super) async fn an_erasure_is_under_way_once_and_outlives_a_restart(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("erasures").await;
    let (ann, bob) = (number(&*archive, "ann").await, number(&*archive, "bob").await);
    assert_eq!((archive.erasure(1).await.unwrap(), archive.open_erasures(0, 9).await.unwrap()), (None, vec![]));
    let first = archive.begin_erasure(ann, NOW).await.unwrap();
    assert_eq!((first.user, first.accepted_at, first.state.clone()), (ann, NOW, State::default()));
    assert_eq!(archive.revoked(ann).await.unwrap(), Some(NOW + 1), "tokens of that millisecond are refused too");
    assert_eq!(archive.begin_erasure(ann, NOW + 5).await.unwrap(), first, "it is under way");
    assert_eq!(archive.revoked(ann).await.unwrap(), Some(NOW + 6));
    let other = archive.begin_erasure(bob, NOW).await.unwrap();
    assert!(other.id > first.id);
    let next = first.state.planned(&feedgate_common::erase::Traces::default());
    assert!(archive.move_erasure(first.id, &first.state, &next).await.unwrap());
    assert!(!archive.move_erasure(first.id, &first.state, &next).await.unwrap(), "another was faster");
    assert!(!archive.move_erasure(99, &first.state, &next).await.unwrap());
    drop(archive);
    let archive = open("erasures").await;
    let moved = Erasure { state: next, ..first.clone() };
    assert_eq!(archive.open_erasures(0, 9).await.unwrap(), [moved.clone(), other.clone()]);
    assert_eq!(archive.open_erasures(0, 1).await.unwrap(), [moved]);
    assert_eq!(archive.open_erasures(first.id, 9).await.unwrap(), std::slice::from_ref(&other));
    assert_eq!(archive.open_erasures(other.id, 9).await.unwrap(), []);
    let finished = finish(&archive, first.id).await;
    assert_eq!((finished.state.finished_at, finished.state.removed), (Some(LATER), Removed::default()));
    assert_eq!(archive.open_erasures(0, 9).await.unwrap(), [other]);
    let again = archive.begin_erasure(ann, LATER).await.unwrap();
    assert!(again.id > first.id && !again.state.is_finished(), "one that is finished is followed by another");
    assert_eq!(one(&*archive, first.id).await, finished, "its receipt stays");
}

/// What is known of ann, and of others, before she is erased.
struct World {
    ann: UserNo,
    bob: UserNo,
    cid: UserNo,
    posts: Vec<ItemId>,
    told: ItemId,
    of_bob: ItemId,
    to_both: ItemId,
    to_ann: ItemId,
    for_both: ItemId,
    answered: ItemId,
}

async fn say(archive: &dyn Archive, new: NewComment) -> ItemId {
    archive.comment(vec![CommentWrite::Make(new)], NOW).await.unwrap().remove(0).unwrap().place.id
}

async fn populate(archive: &dyn Archive) -> World {
    let [ann, bob, cid] = [number(archive, "ann").await, number(archive, "bob").await, number(archive, "cid").await];
    for (reader, author) in [("ann", "bob"), ("ann", "cid"), ("bob", "ann"), ("cid", "ann"), ("cid", "bob")] {
        write(archive, follow(reader, author)).await.unwrap();
    }
    for ask in [Write::Private { author: user("pia"), private: true }, follow("ann", "pia")] {
        write(archive, ask).await.unwrap();
    }
    let keyed = Publish {
        foreign_id: Some("ann:1".into()),
        kind: Some("post".into()),
        idempotency_key: Some("k".into()),
        ..post("ann", "one")
    };
    let gone = Publish { foreign_id: Some("ann:gone".into()), ..post("ann", "gone") };
    let mut posts = vec![];
    for publish in [keyed, narrowed_to("ann", "two", &["bob"]), gone] {
        posts.push(accept(archive, publish, NOW).await.0);
    }
    write(archive, delete(posts[2])).await.unwrap();
    let (told, _) = accept(archive, to_users("ann", "told", &["bob", "dan"]), NOW).await;
    let (of_bob, _) = accept(archive, Publish { foreign_id: Some("bob:1".into()), ..post("bob", "mine") }, NOW).await;
    let (to_both, _) = accept(archive, to_users("bob", "both", &["ann", "cid"]), NOW).await;
    let (to_ann, _) = accept(archive, to_users("bob", "only", &["ann"]), NOW).await;
    let (for_both, _) = accept(archive, narrowed_to("bob", "for some", &["ann", "cid"]), NOW).await;
    let lines = [(ann, "close", bob), (ann, "work", cid), (bob, "close", ann), (bob, "close", cid)];
    let line = |(owner, list, member): (UserNo, &str, UserNo)| ListChange {
        owner,
        list: list.parse().unwrap(),
        member,
        on: true,
        at: NOW,
    };
    archive.change_lists(lines.map(line).to_vec()).await.unwrap();
    let comment = |item, author, text, reply_to, key: Option<&str>| {
        let key = key.map(Into::into);
        NewComment { item, author, reply_to, body: body(text), id: None, key, past: None, mentions: vec![] }
    };
    let answered = say(archive, comment(of_bob, ann, "first", None, Some("c"))).await;
    say(archive, comment(of_bob, bob, "answer", Some(answered), None)).await;
    say(archive, comment(of_bob, ann, "alone", None, Some("d"))).await;
    say(archive, comment(posts[0], bob, "on hers", None, None)).await;
    let like = |item, kind: &str, user| Reaction { item, kind: kind.parse().unwrap(), user, at: NOW };
    let given =
        [like(of_bob, "like", ann), like(of_bob, "sad", ann), like(of_bob, "like", cid), like(posts[0], "like", bob)];
    assert!(archive.react(&given).await.unwrap().iter().all(|given| *given == Ok(true)));
    for (owner, kind, other) in [
        ("ann", Shield::Mute, "cid"),
        ("ann", Shield::Hide, "dan"),
        ("ann", Shield::Block, "eve"),
        ("cid", Shield::Mute, "ann"),
        ("dan", Shield::Block, "ann"),
        ("eve", Shield::Hide, "ann"),
        ("eve", Shield::Block, "cid"),
    ] {
        write(archive, shield(owner, kind, other, true)).await.unwrap();
    }
    let person = Person { card: Card { name: Some("Ann".into()), avatar: None }, attrs: None };
    archive.put_people(vec![(ann, person.clone()), (bob, person)], Known::Replaced).await.unwrap();
    for of in [ann, bob] {
        let device = PushDevice {
            device: "d".parse().unwrap(),
            platform: "fcm".into(),
            token: "t".into(),
            feeds: vec![FeedId::MAIN],
            since: NOW,
        };
        assert!(archive.register(of, device).await.unwrap());
        let note = Note { key: InboxKey::main(of), item: of_bob, count: 1 };
        archive.note(&[note], NOW, None).await.unwrap();
        let position = Position { epoch: Epoch(3), offset: 1 };
        let earlier = Earlier { until: 0, upto: 0 };
        archive.see(InboxKey::main(of), Seen { position, until: NOW, earlier }).await.unwrap();
    }
    World { ann, bob, cid, posts, told, of_bob, to_both, to_ann, for_both, answered }
}

/// All of ann is gone, and all that is of others is there.
async fn ann_is_gone(archive: &Arc<dyn Archive>, world: &World) {
    let World { ann, bob, cid, of_bob, to_both, to_ann, .. } = *world;
    let items = archive.items(&[world.posts[0], world.posts[1], world.told, of_bob, to_both, to_ann]).await.unwrap();
    assert_eq!(items.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, false, true, true, true]);
    for key in ["ann:1", "ann:gone"] {
        assert_eq!(archive.item_by_foreign_id(key).await.unwrap(), None, "{key}");
    }
    assert_eq!(archive.item_by_foreign_id("bob:1").await.unwrap(), Some(of_bob));
    for list in [archive.following(ann, None, 9).await.unwrap(), archive.followers(ann, None, 9).await.unwrap()] {
        assert_eq!(list, []);
    }
    assert_eq!(archive.author(ann).await.unwrap().followers, 0);
    assert_eq!(archive.author(bob).await.unwrap().followers, 1);
    assert_eq!(archive.following(cid, None, 9).await.unwrap()[0].user, user("bob"));
    for owner in ["ann", "cid", "dan"] {
        for kind in [Shield::Mute, Shield::Hide, Shield::Block] {
            let owner = number(&**archive, owner).await;
            assert_eq!(archive.shielded(owner, kind, None, 9).await.unwrap(), [], "{kind:?}");
        }
    }
    let eve = number(&**archive, "eve").await;
    assert_eq!(archive.shielded(eve, Shield::Block, None, 9).await.unwrap()[0].user, user("cid"));
    for reader in [ann, bob, cid, eve] {
        let held = archive.held(reader, None, 9).await.unwrap();
        assert!(
            held.iter().all(|edge| edge.author != ann && (reader != ann || edge.shields == Shields(0))),
            "{held:?}"
        );
    }
    let around = archive.around(&[of_bob], Onlooker::user(ann)).await.unwrap().remove(0);
    assert_eq!((around.counts, around.own, around.comments), (vec![("like".parse().unwrap(), 1)], vec![], 1));
    let talk = archive.comments(of_bob, Onlooker::BACKEND, CommentOrder::Oldest, None, 9).await.unwrap().comments;
    let says: Vec<_> =
        talk.iter().map(|comment| (comment.place.id == world.answered, comment.body.is_some())).collect();
    assert_eq!(says, [(true, false), (false, true)], "a placeholder before the reply");
    assert_eq!(archive.person(ann).await.unwrap(), None);
    assert!(archive.person(bob).await.unwrap().is_some());
    assert_eq!(archive.push_devices(&[ann, bob]).await.unwrap().map_lengths(), [0, 1]);
    let due = archive.take_due(LATER, LATER + 1, 9).await.unwrap();
    assert_eq!(due.iter().map(|notice| notice.key.reader).collect::<Vec<_>>(), [bob]);
    assert_eq!(archive.seen(InboxKey::main(ann)).await.unwrap(), None);
    assert!(archive.seen(InboxKey::main(bob)).await.unwrap().is_some());
    assert_eq!(archive.addressed(ann, &[to_both, to_ann]).await.unwrap(), []);
    assert_eq!(archive.addressed(cid, &[to_both]).await.unwrap(), [to_both]);
    assert_eq!(archive.audience(world.for_both).await.unwrap(), [cid]);
    assert_eq!(archive.audience(world.posts[1]).await.unwrap(), [], "its audience is gone with it");
    assert_eq!((archive.lists(ann).await.unwrap(), archive.listing(ann, None, 9).await.unwrap()), (vec![], vec![]));
    assert_eq!(archive.lists(bob).await.unwrap(), [("close".parse().unwrap(), 1)]);
    assert_eq!(archive.listing(cid, None, 9).await.unwrap().len(), 1);
    let after = Watermarks { pull: 0, direct: 0 };
    let news = archive.news(InboxKey::main(ann), after, 9).await.unwrap();
    assert_eq!((news.entries, news.upto.direct, news.noted), (vec![], 2, None), "its number stays taken");
    assert_eq!(archive.news(InboxKey::main(cid), after, 9).await.unwrap().entries.len(), 1);
    assert_eq!(
        archive.feed_below(InboxKey::main(ann), feedgate_common::archive::Below::newest(9), 9).await.unwrap(),
        []
    );
    assert_eq!(archive.rest(ann, 0, 9).await.unwrap(), (Removed::default(), None));
    for stage in Stage::ALL {
        let page = traces(&**archive, ann, stage, None).await.unwrap();
        let lives =
            |trace: &Trace| !matches!(trace, Trace::Item { lives: false, .. } | Trace::Comment { lives: false, .. });
        assert!(!page.found.iter().any(|(_, trace)| lives(trace)), "{stage:?}: {page:?}");
    }
}

/// How long each of some lists is.
trait Lengths {
    fn map_lengths(&self) -> Vec<usize>;
}

impl<T> Lengths for Vec<Vec<T>> {
    fn map_lengths(&self) -> Vec<usize> {
        self.iter().map(Vec::len).collect()
    }
}

/// What the receipt of ann's erasure says.
const RECEIPT: Removed = Removed {
    items: 2,
    direct_items: 1,
    comments: 2,
    reactions: 2,
    following: 2,
    followers: 2,
    requests: 1,
    shields: 3,
    shielded: 3,
    person: 1,
    devices: 1,
    notices: 1,
    seen: 1,
    audiences: 1,
    listed: 2,
    listing: 1,
    addressed: 2,
    keys: 1,
};

pub(super) async fn all_of_a_user_is_removed_and_nothing_of_others_whatever_dies(archive: Arc<dyn Archive>) {
    let world = populate(&*archive).await;
    let (eraser, begun) = (eraser(&archive), archive.begin_erasure(world.ann, LATER).await.unwrap());
    loop {
        let erasure = one(&*archive, begun.id).await;
        if erasure.state.is_finished() {
            break;
        }
        // A worker that dies before it has stored how far it is.
        eraser.step(&Erasure { id: 0, ..erasure.clone() }, LATER).await.unwrap();
        eraser.step(&erasure, LATER).await.unwrap();
        // A worker that was overtaken.
        eraser.step(&erasure, LATER).await.unwrap();
    }
    ann_is_gone(&archive, &world).await;
    assert_eq!(one(&*archive, begun.id).await.state.removed, RECEIPT);
    let again = archive.begin_erasure(world.ann, LATER).await.unwrap();
    assert_eq!(finish(&archive, again.id).await.state.removed, Removed::default(), "there is nothing left");
}

/// An item that was moved has an add for each rank that it had, and the user is still one reader of the item.
pub(super) async fn s11_what_was_addressed_to_a_user_and_moved_leaves_with_the_user(archive: Arc<dyn Archive>) {
    let (item, _) = accept(&*archive, to_users("bob", "both", &["ann", "cid"]), NOW).await;
    write(&*archive, move_to(item, 7)).await.unwrap();
    let (ann, cid) = (number(&*archive, "ann").await, number(&*archive, "cid").await);
    let begun = archive.begin_erasure(ann, LATER).await.unwrap();
    finish(&archive, begun.id).await;
    write(&*archive, move_to(item, 8)).await.unwrap();
    let shown = async |reader| archive.feed_below(InboxKey::main(reader), Below::newest(9), 9).await.unwrap();
    assert_eq!(shown(ann).await, []);
    assert_eq!(shown(cid).await.iter().map(|add| add.key.rank).collect::<Vec<_>>(), [8]);
    assert_eq!(archive.direct_items(None, 9).await.unwrap(), [(item, vec![cid])]);
}

pub(super) async fn s11_what_was_moved_is_counted_once_and_what_a_ranking_holds_is_not(archive: Arc<dyn Archive>) {
    let (own, _) = accept(&*archive, post("ann", "own"), NOW).await;
    let (to_ann, _) = accept(&*archive, to_users("bob", "to ann", &["ann"]), NOW).await;
    let (ranked, _) = accept(&*archive, post("bob", "ranked"), NOW).await;
    for rank in [7, 8] {
        for item in [own, to_ann] {
            write(&*archive, move_to(item, rank)).await.unwrap();
        }
    }
    let feed = archive.intern_feeds(&["picks".into()]).await.unwrap()[0];
    let ann = number(&*archive, "ann").await;
    let place = DisplayKey { rank: 1, item: ranked };
    archive.rank(InboxKey { reader: ann, feed }, &[place], NOW).await.unwrap().unwrap();
    // Three adds and two deletes of the one item, and the add of the ranking: two pages, and a third that is the last.
    let (mut addressed, mut after, mut pages) = (0, Some(0), 0);
    while let Some(from) = after {
        let (removed, last) = archive.rest(ann, from, 3).await.unwrap();
        let upto = last.unwrap_or(u64::MAX);
        archive.forget_addressed(ann, upto).await.unwrap();
        archive.forget_addressed(ann, upto).await.unwrap();
        (addressed, after, pages) = (addressed + removed.addressed, last, pages + 1);
    }
    assert_eq!((addressed, pages), (1, 3));
    let (also, _) = accept(&*archive, to_users("bob", "again", &["ann"]), NOW).await;
    write(&*archive, move_to(also, 7)).await.unwrap();
    let removed = erase(&archive, ann).await.state.removed;
    assert_eq!((removed.items, removed.addressed), (1, 1));
}

/// The deletes of narrowed items are for their audience, which therefore outlives them.
pub(super) async fn s9_own_audiences_stay_until_no_follow_leads_to_the_user(archive: Arc<dyn Archive>) {
    let (ann, bob) = (number(&*archive, "ann").await, number(&*archive, "bob").await);
    write(&*archive, follow("bob", "ann")).await.unwrap();
    let (item, _) = accept(&*archive, narrowed_to("ann", "for bob and herself", &["ann", "bob"]), NOW).await;
    let audience = archive.audience(item).await.unwrap();
    let (eraser, begun) = (eraser(&archive), archive.begin_erasure(ann, NOW).await.unwrap());
    loop {
        let erasure = one(&*archive, begun.id).await;
        if erasure.state.is_finished() {
            break;
        }
        let stays = archive.audience(item).await.unwrap() == audience;
        let follows = archive.author(ann).await.unwrap().followers > 0;
        assert!(stays || !follows, "{:?}", erasure.state.stage);
        eraser.step(&erasure, LATER).await.unwrap();
    }
    assert!(audience.contains(&bob));
    assert_eq!(archive.audience(item).await.unwrap(), []);
    assert_eq!(one(&*archive, begun.id).await.state.removed.audiences, 0, "it went with its item");
}

pub(super) async fn who_was_erased_may_begin_anew_under_the_same_number(archive: Arc<dyn Archive>) {
    let world = populate(&*archive).await;
    let before = archive.outbox(world.ann, 0, 99).await.unwrap();
    let begun = archive.begin_erasure(world.ann, LATER).await.unwrap();
    finish(&archive, begun.id).await;
    assert_eq!(number(&*archive, "ann").await, world.ann);
    let records = archive.outbox(world.ann, before.head, 99).await.unwrap().records;
    assert!(records.iter().all(|record| record.op == feedgate_common::Op::Delete), "devices are told of each delete");
    assert_eq!(records.len(), 2);
    // The keys that were in use are free, and what is written now is shown.
    let keyed = Publish { foreign_id: Some("ann:1".into()), idempotency_key: Some("k".into()), ..post("ann", "anew") };
    let (id, _) = accept(&*archive, keyed, LATER + 1).await;
    assert!(!world.posts.contains(&id));
    write(&*archive, follow("bob", "ann")).await.unwrap();
    let (direct, _) = accept(&*archive, to_users("bob", "again", &["ann"]), LATER + 1).await;
    assert_eq!(archive.addressed(world.ann, &[direct]).await.unwrap(), [direct]);
    let news = archive.news(InboxKey::main(world.ann), Watermarks { pull: 0, direct: 0 }, 9).await.unwrap();
    assert_eq!((news.entries.len(), news.upto.direct), (1, 3));
    // What was addressed to ann before the erasure goes on without her.
    match write(&*archive, delete(world.to_both)).await {
        Ok(Written::Deleted { readers, fresh: true, .. }) => assert_eq!(readers, [world.cid]),
        other => panic!("{other:?}"),
    }
    assert!(write(&*archive, delete(world.to_ann)).await.is_ok());
    assert_eq!(archive.author(world.ann).await.unwrap().followers, 1);
}

pub(super) async fn an_erasure_goes_through_pages_of_any_length(archive: Arc<dyn Archive>) {
    let (ann, bob) = (number(&*archive, "ann").await, number(&*archive, "bob").await);
    let many = TRACES_MAX + 5;
    let posts = |author: &'static str| (0..many).map(move |n| Write::Publish(post(author, &n.to_string())));
    let published = archive.write(posts("ann").chain(posts("bob")).collect(), NOW).await.unwrap();
    let of_bob: Vec<ItemId> = published[many..]
        .iter()
        .map(|written| match written {
            Ok(Written::Published { id, .. }) => *id,
            other => panic!("{other:?}"),
        })
        .collect();
    let readers = (0..many).map(|n| follow(&format!("r{n}"), "ann"));
    let muted = (0..many).map(|n| shield(&format!("r{n}"), Shield::Mute, "ann", true));
    archive.write(readers.chain(muted).collect(), NOW).await.unwrap();
    let like = |item: &ItemId| Reaction { item: *item, kind: "like".parse().unwrap(), user: ann, at: NOW };
    archive.react(&of_bob.iter().map(like).collect::<Vec<_>>()).await.unwrap();
    let comment = |n: usize| {
        let (item, author) = (of_bob[n % 2], if n.is_multiple_of(3) { bob } else { ann });
        let new = NewComment {
            item,
            author,
            reply_to: None,
            body: body("x"),
            id: None,
            key: None,
            past: None,
            mentions: vec![],
        };
        CommentWrite::Make(new)
    };
    archive.comment((0..3 * many).map(comment).collect(), NOW).await.unwrap();
    let begun = archive.begin_erasure(ann, LATER).await.unwrap();
    let removed = finish(&archive, begun.id).await.state.removed;
    let all = many as u64;
    let wants =
        Removed { items: all, comments: 2 * all, reactions: all, followers: all, shielded: all, ..Removed::default() };
    assert_eq!(removed, wants);
    let around = archive.around(&of_bob[..2], Onlooker::BACKEND).await.unwrap();
    assert!(around.iter().all(|around| around.counts.is_empty()), "{around:?}");
    assert_eq!(around.iter().map(|around| around.comments).sum::<u64>(), all);
}

pub(super) async fn what_lives_or_is_of_others_is_not_scrubbed(archive: Arc<dyn Archive>) {
    let world = populate(&*archive).await;
    let remains = Remains {
        items: vec![world.posts[0], world.of_bob],
        foreign_ids: vec!["ann:1".into(), "bob:1".into()],
        comments: vec![world.answered],
        audiences: vec![],
        own_audiences: vec![world.posts[0], world.of_bob],
    };
    archive.scrub(world.ann, &remains).await.unwrap();
    let items = archive.items(&[world.posts[0], world.of_bob]).await.unwrap();
    let foreign = |n: usize| items[n].as_ref().unwrap().foreign_id.clone();
    assert_eq!((foreign(0).as_deref(), foreign(1).as_deref()), (Some("ann:1"), Some("bob:1")));
    let retry = NewComment {
        item: world.of_bob,
        author: world.ann,
        reply_to: None,
        body: body("first"),
        id: None,
        key: Some("c".into()),
        past: None,
        mentions: vec![],
    };
    assert_eq!(say(&*archive, retry).await, world.answered, "its key is known as before");
    let page = archive.traces(world.ann, Stage::ForeignIds, None).await.unwrap();
    assert_eq!(page.found, [(Mark("ann:gone".into()), Trace::ForeignId("ann:gone".into()))]);
}
