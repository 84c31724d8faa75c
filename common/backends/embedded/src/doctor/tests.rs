//! Each check finds the damage that it is for, and a sound store has none.

use std::sync::Arc;

use feedgate_common::archive::{Audience, Known, Note, Publish, PushDevice, Write};
use feedgate_common::around::{CommentWrite, NewComment, Reaction};
use feedgate_common::audience::{ListChange, Narrowed};
use feedgate_common::graph::{Shield, Shields};
use feedgate_common::notify::{Rules, Way};
use feedgate_common::people::{Card, Person};
use feedgate_common::search::{SearchPlace, Subject, TextFields};
use feedgate_common::{Archive, Body, DisplayKey, FeedId, InboxKey, ItemId, UserId, UserNo};

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::archive::tables::{
    AudienceRow, Audiences, AuthorRow, Authors, DirectHeads, DirectShown, Due, Edges, Everyones, Followers,
    FollowingList, ForeignIds, ItemRow, Items, Life, LineRow, Lines, LinesOf, ListHeads, Listed, Listing, MemberKeys,
    Owed, People, PersonRow, Postings, Privates, PushDue, RankedIn, RankedRow, Reactors, Records, RepostCounts,
    Reposts, RequestList, ShieldList, ShieldsUp, Shown, TalkRow, Talks, Tallies, TallyRow, Track, Users, VersionRow,
    Versions,
};
use crate::request::Durability;
use crate::view::{Read, Tx};
use crate::{Embedded, home};

fn name(text: &str) -> UserId {
    text.parse().unwrap()
}

/// A data directory with something of everything, whose server was not closed.
async fn killed(dir: &Path) -> ItemId {
    let data = dir.join("data");
    let stores = Embedded::open(&data, 4).unwrap();
    let archive: Arc<dyn Archive> = stores.archive.clone();
    let fields = TextFields::new(vec!["text".into()]).unwrap();
    archive.index_of(Some(&fields)).await.unwrap();
    while archive.index(Some(&fields)).await.unwrap() {}
    let body = || Body::parse(r#"{"text":"hello"}"#.to_owned()).unwrap();
    let keyed = Publish { foreign_id: Some("k".into()), id: Some(ItemId(1)), ..Publish::new(name("ann"), body()) };
    let gone = Publish { id: Some(ItemId(2)), ..Publish::new(name("ann"), body()) };
    let follow = |reader| Write::Follow { reader: name(reader), author: name("ann") };
    let delete = Write::Delete { item: ItemId(2), if_version: None };
    let edit = Write::Edit { item: ItemId(1), body: Some(body()), rank: None, mentions: None, if_version: None };
    let writes = vec![Write::Publish(keyed), Write::Publish(gone), follow("bob"), follow("cid"), delete, edit];
    archive.write(writes, 7).await.unwrap();
    let users = archive.intern(&[name("ann"), name("bob")]).await.unwrap();
    let ann = Person { card: Card { name: Some("Ann".into()), avatar: None }, attrs: None };
    archive.put_people(vec![(users[0], ann)], Known::Replaced).await.unwrap();
    let (item, kind) = (ItemId(1), "like".parse().unwrap());
    archive.react(&[Reaction { item, kind, user: users[1], at: 7 }]).await.unwrap();
    let new = NewComment {
        item,
        author: users[1],
        reply_to: None,
        body: body(),
        id: None,
        key: None,
        past: None,
        mentions: vec![],
    };
    archive.comment(vec![CommentWrite::Make(new)], 7).await.unwrap();
    let device = PushDevice {
        device: "d".parse().unwrap(),
        platform: "fcm".into(),
        token: "t".into(),
        feeds: vec![FeedId::MAIN],
        since: 7,
    };
    archive.register(users[1], device).await.unwrap();
    archive.note(&[Note { key: InboxKey::main(users[1]), item, count: 1 }], 7, None).await.unwrap();
    among_users(&*archive, &users).await;
    // What a killed process leaves is what is on the disk now.
    link(&data, &dir.join("killed")).unwrap();
    item
}

/// What the second of these users gets from the first one and keeps of others: a line of a notification, a ranking, a
/// shield, a list and an audience that hold it, which is that of a repost, and a request to follow a private author.
async fn among_users(archive: &dyn Archive, users: &[UserNo]) {
    let feeds = archive.intern_feeds(&["told".into(), "picks".into()]).await.unwrap();
    let way = Way { kind: "liked".into(), feed: feeds[0], grouped: true };
    archive.notify_by(Rules { reaction: Some(way), ..Rules::default() });
    let (item, kind) = (ItemId(1), "heart".parse().unwrap());
    archive.react_and_notify(&[Reaction { item, kind, user: users[1], at: 7 }], true).await.unwrap();
    let to = InboxKey { reader: users[1], feed: feeds[1] };
    archive.rank(to, &[DisplayKey { rank: 3, item }], 7).await.unwrap().unwrap();
    let (owner, member) = (users[0], users[1]);
    let listed = ListChange { owner, list: "close".parse().unwrap(), member, on: true, at: 7 };
    archive.change_lists(vec![listed]).await.unwrap();
    let body = Body::parse("{}".to_owned()).unwrap();
    let audience = Audience::Narrowed(Narrowed::to(vec![name("bob")]));
    let repost_of = Some(ItemId(1));
    let narrowed = Publish { id: Some(ItemId(3)), repost_of, audience, ..Publish::new(name("ann"), body) };
    let block = Write::Shield { user: name("eve"), other: name("ann"), shield: Shield::Block, up: true };
    let private = Write::Private { author: name("pia"), private: true };
    let ask = Write::Follow { reader: name("bob"), author: name("pia") };
    archive.write(vec![Write::Publish(narrowed), block, private, ask], 7).await.unwrap();
}

#[test]
fn a_copy_is_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().join("scratch");
    private(&scratch).unwrap();
    assert_eq!(fs::metadata(&scratch).unwrap().permissions().mode() & 0o777, 0o700);
}

fn run(dir: &Path) -> Report {
    let report = check(&dir.join("killed"), &dir.join("scratch")).unwrap();
    assert!(!dir.join("scratch").exists());
    report
}

/// The bytes of all files below a directory.
fn bytes(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = vec![];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(bytes(&path)) } else { all.push((path.clone(), fs::read(&path).unwrap())) }
    }
    all.sort();
    all
}

#[tokio::test]
async fn a_store_that_was_killed_is_sound_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path()).await;
    let before = bytes(&dir.path().join("killed"));
    let report = run(dir.path());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.outstanding, report.oldest), (5, Some(7)), "an outbox, two edges, and two readers");
    assert!(report.checks.iter().all(|check| check.looked_at > 0), "{report:?}");
    assert!(bytes(&dir.path().join("killed")) == before, "nothing was changed");
}

#[tokio::test]
async fn a_directory_that_is_in_use_or_is_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path()).await;
    let data = dir.path().join("killed");
    let held = home::lock(&data).unwrap();
    let error = check(&data, &dir.path().join("scratch")).unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    drop(held);
    let error = check(dir.path(), &dir.path().join("scratch")).unwrap_err();
    assert!(error.to_string().contains("is no data directory"), "{error}");
    assert!(!dir.path().join("lock").exists());
}

#[tokio::test]
async fn a_journal_that_was_cut_off_is_found() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path()).await;
    let place = dir.path().join("killed/archive");
    let journals = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
    let journal = journals.filter(|path| path.extension().is_some_and(|of| of == "jnl")).max().unwrap();
    fs::File::options().write(true).open(journal).unwrap().set_len(100).unwrap();
    let report = run(dir.path());
    let files = &report.checks[0];
    assert!(files.name == "files" && files.wrong > 0, "{report:?}");
}

/// What breaks a store, by the check that finds it.
type Damage = (&'static str, fn(&mut Tx<'_>) -> Result<()>);

#[tokio::test]
async fn each_check_finds_its_damage() {
    const ANN: UserNo = UserNo(1);
    const BOB: UserNo = UserNo(2);
    fn author(tx: &mut Tx<'_>, change: fn(&mut AuthorRow)) -> Result<()> {
        let mut row = tx.get::<Authors>(&ANN)?.unwrap();
        change(&mut row);
        tx.put::<Authors>(&ANN, &row);
        Ok(())
    }
    let damages: Vec<Damage> = vec![
        ("names of users", |tx| {
            tx.remove::<Users>(&UserNo(3));
            Ok(())
        }),
        ("names of users", |tx| {
            tx.put::<People>(&UserNo(99), &PersonRow { name: None, avatar: None, attrs: None });
            Ok(())
        }),
        ("items", |tx| {
            let row = tx.get::<Items>(&ItemId(1))?.unwrap();
            tx.put::<Items>(&ItemId(1), &ItemRow { life: Life::Gone, ..row });
            Ok(())
        }),
        ("items", |tx| {
            tx.remove::<ForeignIds>(&"k".into());
            Ok(())
        }),
        ("items", |tx| {
            let shown = tx.scan::<Shown>(..).next().unwrap()?.0;
            assert_eq!((shown.0.author, shown.1), (ANN, Track::InStep));
            tx.remove::<Shown>(&shown);
            Ok(())
        }),
        ("outboxes", |tx| {
            tx.remove::<Records>(&(ANN, 2));
            Ok(())
        }),
        ("outboxes", |tx| author(tx, |row| row.head = 9)),
        ("edges", |tx| {
            let line = tx.scan::<FollowingList>(..).next().unwrap()?.0;
            tx.remove::<FollowingList>(&line);
            Ok(())
        }),
        ("edges", |tx| {
            let line = tx.scan::<RequestList>(..).next().unwrap()?.0;
            tx.remove::<RequestList>(&line);
            Ok(())
        }),
        ("edges", |tx| {
            let ((author, listed), line) = tx.scan::<RequestList>(..).next().unwrap()?;
            tx.put::<RequestList>(&(author, listed + 1), &line);
            Ok(())
        }),
        ("edges", |tx| {
            let ((author, _), line) = tx.scan::<RequestList>(..).next().unwrap()?;
            let mut row = tx.get::<Edges>(&(line.user, author))?.unwrap();
            row.held.shields = Shields::BLOCKED_BY_AUTHOR;
            tx.put::<Edges>(&(line.user, author), &row);
            Ok(())
        }),
        ("edges", |tx| {
            tx.put::<Privates>(&UserNo(99), &());
            Ok(())
        }),
        ("edges", |tx| {
            tx.put::<Privates>(&ANN, &());
            tx.put::<Everyones>(&ANN, &0);
            Ok(())
        }),
        ("follower counts", |tx| author(tx, |row| row.followers = 7)),
        ("follower counts", |tx| {
            let follower = tx.scan::<Followers>(..).next().unwrap()?.0;
            tx.remove::<Followers>(&follower);
            Ok(())
        }),
        ("reactions", |tx| {
            tx.put::<Tallies>(&ItemId(1), &TallyRow(vec![("like".into(), 5)]));
            Ok(())
        }),
        ("reactions", |tx| {
            tx.remove::<Tallies>(&ItemId(1));
            Ok(())
        }),
        ("reactions", |tx| {
            tx.remove::<Reactors>(&(ItemId(1), 0, 7, BOB));
            Ok(())
        }),
        ("comments", |tx| {
            let talk = tx.get::<Talks>(&ItemId(1))?.unwrap();
            tx.put::<Talks>(&ItemId(1), &TalkRow { count: 4, ..talk });
            Ok(())
        }),
        ("comments", |tx| {
            tx.remove::<Talks>(&ItemId(1));
            Ok(())
        }),
        ("reposts", |tx| {
            tx.put::<RepostCounts>(&ItemId(1), &2);
            Ok(())
        }),
        ("reposts", |tx| {
            tx.remove::<Reposts>(&(ItemId(1), ItemId(3)));
            tx.remove::<RepostCounts>(&ItemId(1));
            Ok(())
        }),
        ("reposts", |tx| {
            tx.remove::<Reposts>(&(ItemId(1), ItemId(3)));
            tx.put::<Reposts>(&(ItemId(1), ItemId(2)), &());
            Ok(())
        }),
        ("versions of items", |tx| {
            let row = tx.get::<Versions>(&(ItemId(1), 1))?.unwrap();
            tx.put::<Versions>(&(ItemId(2), 1), &row);
            Ok(())
        }),
        ("versions of items", |tx| {
            let row = VersionRow { at: 7, body: "1".into() };
            (0..20).for_each(|version| tx.put::<Versions>(&(ItemId(1), u32::MAX - version), &row));
            Ok(())
        }),
        ("what is addressed to readers", |tx| {
            let reader = tx.scan::<DirectHeads>(..).next().unwrap()?.0;
            tx.remove::<DirectHeads>(&reader);
            Ok(())
        }),
        ("what is addressed to readers", |tx| {
            tx.put::<DirectShown>(&(InboxKey::main(BOB), DisplayKey { rank: 1, item: ItemId(2) }), &ANN);
            Ok(())
        }),
        ("rankings", |tx| {
            let (place, row) = tx.scan::<RankedIn>(..).next().unwrap()?;
            tx.put::<RankedIn>(&place, &RankedRow { rank: 4, ..row });
            Ok(())
        }),
        ("lines of notifications", |tx| {
            let (line, row) = tx.scan::<Lines>(..).next().unwrap()?;
            tx.put::<Lines>(&line, &LineRow { count: 2, ..row });
            Ok(())
        }),
        ("lines of notifications", |tx| {
            let key = tx.scan::<MemberKeys>(..).next().unwrap()?.0;
            tx.remove::<MemberKeys>(&key);
            Ok(())
        }),
        ("lines of notifications", |tx| {
            let line = tx.scan::<LinesOf>(..).next().unwrap()?.0;
            tx.remove::<LinesOf>(&line);
            Ok(())
        }),
        ("shields", |tx| {
            let line = tx.scan::<ShieldList>(..).next().unwrap()?.0;
            tx.remove::<ShieldList>(&line);
            Ok(())
        }),
        ("shields", |tx| {
            let up = tx.scan::<ShieldsUp>(..).next().unwrap()?.0;
            tx.remove::<ShieldsUp>(&up);
            Ok(())
        }),
        ("shields", |tx| {
            let (owner, _, other) = tx.scan::<ShieldsUp>(..).next().unwrap()?.0;
            let mut row = tx.get::<Edges>(&(other, owner))?.unwrap();
            row.held.shields = Shields::default();
            tx.put::<Edges>(&(other, owner), &row);
            Ok(())
        }),
        ("lists", |tx| {
            let line = tx.scan::<Listing>(..).next().unwrap()?.0;
            tx.remove::<Listing>(&line);
            Ok(())
        }),
        ("lists", |tx| {
            let place = tx.scan::<Listed>(..).next().unwrap()?.0;
            tx.remove::<Listed>(&place);
            Ok(())
        }),
        ("lists", |tx| {
            let head = tx.scan::<ListHeads>(..).next().unwrap()?.0;
            tx.put::<ListHeads>(&head, &2);
            Ok(())
        }),
        ("items", |tx| {
            tx.remove::<Audiences>(&ItemId(3));
            Ok(())
        }),
        ("audiences", |tx| {
            tx.put::<Audiences>(&ItemId(77), &AudienceRow(vec![BOB]));
            Ok(())
        }),
        ("push notices", |tx| {
            tx.remove::<PushDue>(&(7, InboxKey::main(BOB)));
            Ok(())
        }),
        ("the index of search", |tx| {
            let first = tx.scan::<Postings>(..).next().unwrap()?.0;
            tx.remove::<Postings>(&first);
            Ok(())
        }),
        ("the index of search", |tx| {
            let of_users = tx.scan::<Postings>(..).next_back().unwrap()?.0;
            assert_eq!(of_users.1, Subject::Users);
            tx.remove::<Postings>(&of_users);
            Ok(())
        }),
        ("the index of search", |tx| {
            tx.put::<Postings>(&(1, Subject::Items, 7, SearchPlace { at: 7, id: 2 }), &());
            Ok(())
        }),
        ("events", |tx| {
            tx.remove::<Due>(&(7, Owed::Outbox { author: ANN }));
            Ok(())
        }),
        ("events", |tx| author(tx, |row| row.due = Some(8))),
    ];
    for (nth, (name, damage)) in damages.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        killed(dir.path()).await;
        let database = Database::open(&dir.path().join("killed/archive")).unwrap();
        database.write(Durability::Synced, damage).await.unwrap();
        drop(database);
        let report = run(dir.path());
        let found: Vec<&str> = report.checks.iter().filter(|check| check.wrong > 0).map(|check| check.name).collect();
        assert!(found.contains(&name), "damage {nth} of {name}: {report:?}");
    }
}
