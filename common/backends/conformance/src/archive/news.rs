//! Tests of routes, of pull numbers, and of the news of a reader.

use std::sync::Arc;

use feedgate_common::archive::{Archive, News, PullHead, Write};
use feedgate_common::change::{Class, Route};
use feedgate_common::graph::Shield;
use feedgate_common::{Entry, InboxKey, Op, PullSeq, UserNo, Watermarks};

use super::{NOW, accept, change, classify, delete, edit, follow, number, post, shield, to_users, unfollow, write};

async fn news(archive: &dyn Archive, reader: UserNo, pull: PullSeq, limit: usize) -> News {
    archive.news(InboxKey::main(reader), Watermarks { pull, direct: 0 }, limit).await.expect("the archive works")
}

async fn routes(archive: &dyn Archive, author: UserNo) -> Vec<(Op, Route)> {
    let records = archive.outbox(author, 0, 100).await.expect("the archive works").records;
    records.into_iter().map(|record| (record.op, record.route)).collect()
}

fn seqs(entries: &[Entry]) -> Vec<(UserNo, u64)> {
    entries.iter().map(|entry| (entry.author, entry.outbox_seq)).collect()
}

/// In this `archive` an author with more than two followers is pulled.
pub(super) async fn an_author_with_too_many_followers_is_pulled(archive: Arc<dyn Archive>) {
    let star = number(&*archive, "star").await;
    let mut wants = vec![];
    let asks = [
        (follow("r1", "star"), Route::Push),
        (follow("r2", "star"), Route::Push),
        (follow("r2", "star"), Route::Push),
        (follow("r3", "star"), Route::Pull),
        (shield("r3", Shield::Mute, "star", true), Route::Push),
        (follow("r4", "star"), Route::Pull),
        (unfollow("r1", "star"), Route::Push),
        (shield("r3", Shield::Mute, "star", false), Route::Pull),
        (shield("star", Shield::Block, "r3", true), Route::Push),
    ];
    for (ask, route) in asks {
        write(&*archive, ask).await.unwrap();
        accept(&*archive, post("star", "x"), NOW).await;
        wants.push((Op::Add, route));
        assert_eq!(routes(&*archive, star).await, wants);
    }
    assert_eq!(archive.author(star).await.unwrap().followers, 2);
    assert_eq!(archive.pull_head().await.unwrap(), 3);
}

pub(super) async fn i11_a_class_counts_from_the_next_item_and_what_follows_an_add_takes_its_route(
    archive: Arc<dyn Archive>,
) {
    let (reader, ann, ..) = change(&*archive, follow("rea", "ann")).await;
    let (pushed, _) = accept(&*archive, post("ann", "pushed"), NOW).await;
    write(&*archive, classify("ann", Class::Pull)).await.unwrap();
    let (pulled, _) = accept(&*archive, post("ann", "pulled"), NOW).await;
    write(&*archive, classify("ann", Class::Push)).await.unwrap();
    for item in [pushed, pulled] {
        write(&*archive, edit(item, "edited")).await.unwrap();
        write(&*archive, delete(item)).await.unwrap();
    }
    let [push, pull] = [Route::Push, Route::Pull];
    let ops = [(Op::Add, push), (Op::Add, pull), (Op::Update, push), (Op::Delete, push)];
    let wants = [&ops[..], &[(Op::Update, pull), (Op::Delete, pull)]].concat();
    assert_eq!(routes(&*archive, ann).await, wants);
    let entries = news(&*archive, reader, 0, 100).await.entries;
    assert_eq!(seqs(&entries), [(ann, 2), (ann, 5), (ann, 6)]);
    assert_eq!(archive.outbox(ann, 0, 1).await.unwrap().last_pull, 3);
}

/// Two readers follow all writers and a third one follows nobody. What a reader has seen up to a number must be all
/// that there ever is up to that number.
pub(super) async fn i10_pull_numbers_are_dense_and_none_appears_below_one_that_was_seen(archive: Arc<dyn Archive>) {
    const WRITERS: usize = 4;
    const EACH: usize = 40;
    let names: Vec<String> = (0..WRITERS).map(|n| format!("w{n}")).collect();
    for name in &names {
        write(&*archive, classify(name, Class::Pull)).await.unwrap();
        write(&*archive, follow("rea", name)).await.unwrap();
    }
    let (reader, stranger) = (number(&*archive, "rea").await, number(&*archive, "stranger").await);
    let write_all = |name: String| {
        let archive = archive.clone();
        async move {
            for n in 0..EACH {
                // One transaction has several items, and one of them is not pulled.
                let posts = vec![Write::Publish(post(&name, &n.to_string())), Write::Publish(post("pushed", "x"))];
                archive.write(posts, NOW).await.expect("the archive works");
            }
        }
    };
    let writers: Vec<_> = names.into_iter().map(|name| tokio::spawn(write_all(name))).collect();
    let (mut seen, mut after) = (vec![], 0);
    while after < (WRITERS * EACH) as PullSeq {
        let limit = 1 + seen.len() % 7;
        let next = news(&*archive, reader, after, limit).await;
        assert!(next.upto.pull >= after);
        assert_eq!(
            next.entries.len() as u64,
            next.upto.pull - after,
            "all are the reader's, and none has a hole before it"
        );
        let before: PullSeq = archive.pull_head().await.unwrap();
        assert!(before >= next.upto.pull, "what is seen is told");
        assert_eq!(news(&*archive, stranger, after, limit).await.entries, []);
        seen.extend(next.entries);
        after = next.upto.pull;
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.expect("no writer panics");
    }
    let again = news(&*archive, reader, 0, usize::MAX >> 1).await;
    assert_eq!((again.upto.pull, again.entries), (after, seen), "who starts over sees the same");
}

pub(super) async fn a_limit_cuts_news_where_it_says(archive: Arc<dyn Archive>) {
    for author in ["ann", "ben", "cat"] {
        write(&*archive, classify(author, Class::Pull)).await.unwrap();
    }
    let (reader, ann, ..) = change(&*archive, follow("rea", "ann")).await;
    let (_, cat, ..) = change(&*archive, follow("rea", "cat")).await;
    // The records have the numbers 1 to 9. The reader does not follow ben, whose numbers are 2, 5 and 8.
    for n in 0..3 {
        for author in ["ann", "ben", "cat"] {
            accept(&*archive, post(author, &n.to_string()), NOW).await;
        }
    }
    write(&*archive, Write::Publish(to_users("ben", "d1", &["rea"]))).await.unwrap();
    write(&*archive, Write::Publish(to_users("ben", "d2", &["rea"]))).await.unwrap();
    let all = news(&*archive, reader, 0, 100).await;
    assert_eq!(all.upto, Watermarks { pull: 9, direct: 2 });
    assert_eq!(seqs(&all.entries[..6]), [(ann, 1), (cat, 1), (ann, 2), (cat, 2), (ann, 3), (cat, 3)]);
    assert!(all.entries[6..].iter().all(Entry::is_direct));
    for limit in [1, 2, 3, 4, 5, 7] {
        let (mut after, mut seen) = (Watermarks::default(), vec![]);
        while after != all.upto {
            let next = archive.news(InboxKey::main(reader), after, limit).await.unwrap();
            assert!(next.entries.len() <= 2 * limit && next.upto != after);
            let numbers = [1, 3, 4, 6, 7, 9].iter().filter(|n| **n > after.pull && **n <= next.upto.pull).count();
            let addressed = (next.upto.direct - after.direct) as usize;
            assert_eq!(next.entries.len(), numbers + addressed, "as many as lie before {:?}", next.upto);
            seen.extend(next.entries);
            after = next.upto;
        }
        let (directs, pulls): (Vec<Entry>, Vec<Entry>) = seen.into_iter().partition(Entry::is_direct);
        assert_eq!([pulls, directs].concat(), all.entries);
    }
    let heads = archive.pull_heads(7, 10).await.unwrap();
    let ben = number(&*archive, "ben").await;
    assert_eq!(heads, [PullHead { pull_seq: 8, author: ben }, PullHead { pull_seq: 9, author: cat }]);
}

pub(super) async fn who_follows_again_pulls_only_what_comes_then(archive: Arc<dyn Archive>) {
    write(&*archive, classify("ann", Class::Pull)).await.unwrap();
    let (reader, ann, ..) = change(&*archive, follow("rea", "ann")).await;
    accept(&*archive, post("ann", "1"), NOW).await;
    change(&*archive, unfollow("rea", "ann")).await;
    accept(&*archive, post("ann", "2"), NOW).await;
    assert_eq!(news(&*archive, reader, 0, 100).await.entries, []);
    let (.., edge, _) = change(&*archive, follow("rea", "ann")).await;
    assert_eq!(news(&*archive, reader, 0, 100).await.entries, [], "the follow step brings what was before");
    accept(&*archive, post("ann", "3"), NOW).await;
    let next = news(&*archive, reader, 0, 100).await;
    assert_eq!(seqs(&next.entries), [(ann, 3)]);
    assert_eq!(next.entries[0].generation, edge.generation);
    assert!(next.counter >= edge.generation, "the counter covers the edge");
}

pub(super) async fn pull_numbers_go_on_after_a_restart(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    for life in 1..=3 {
        let archive = open("pull-restart").await;
        write(&*archive, classify("ann", Class::Pull)).await.unwrap();
        let (reader, ..) = change(&*archive, follow("rea", "ann")).await;
        assert_eq!(archive.pull_head().await.unwrap(), life - 1);
        accept(&*archive, post("ann", "x"), NOW).await;
        let next = news(&*archive, reader, 0, 100).await;
        assert_eq!((next.entries.len() as u64, next.upto.pull), (life, life));
    }
}
