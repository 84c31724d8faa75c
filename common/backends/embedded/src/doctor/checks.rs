//! The checks of the rows of an Archive. Each check goes through the rows of a table, and compares them with the rows
//! of other tables.

use feedgate_common::doctor::{Check, Report};
use feedgate_common::error::Result;
use feedgate_common::{BODIES_KEPT, Bucket, ItemId, Millis, UserNo};

use super::{direct, lists};
use crate::archive::search::Audit;
use crate::archive::tables::{
    Adds, Audiences, Authors, CommentEnds, CommentIds, Comments, Counters, DirectHeads, Due, Edges, Everyones,
    FollowerList, Followers, FollowingList, ForeignIds, Items, Life, NO_SEQ, Names, Owed, People, Privates,
    PushDevices, PushDue, PushNotices, PushReaders, Reacted, ReactionEnds, Reactors, Records, RepostCounts, Reposts,
    RequestList, Shown, Talks, Tallies, Users, Versions, lives,
};
use crate::view::{Read, View};

/// A check of rows. It fails if a row cannot be read.
type Run = fn(&View, &mut Check) -> Result<()>;

/// Runs all checks, and says what is outstanding. A table that cannot be read to its end is a finding of its check.
pub(super) fn all(view: &View, report: &mut Report) {
    let checks: [(&'static str, Run); 17] = [
        ("names of users", names),
        ("items", items),
        ("outboxes", outboxes),
        ("what is addressed to readers", direct::records),
        ("rankings", direct::rankings),
        ("lines of notifications", direct::lines),
        ("edges", edges),
        ("follower counts", followers),
        ("shields", lists::shields),
        ("lists", lists::lists),
        ("audiences", lists::audiences),
        ("reactions", reactions),
        ("comments", comments),
        ("reposts", reposts),
        ("versions of items", versions),
        ("push notices", notices),
        ("the index of search", search),
    ];
    for (name, run) in checks {
        let mut check = Check::of(name);
        if let Err(error) = run(view, &mut check) {
            check.find(error.to_string());
        }
        report.checks.push(check);
    }
    let mut events = Check::of("events");
    if let Err(error) = self::events(view, &mut events, report) {
        events.find(error.to_string());
    }
    report.checks.push(events);
}

fn names(view: &View, check: &mut Check) -> Result<()> {
    let last = view.get::<Counters>(&())?.unwrap_or_default().users;
    let mut users = 0;
    for row in view.scan::<Users>(..) {
        let (no, name) = row?;
        check.look();
        users += 1;
        check.expect(view.get::<Names>(&name)? == Some(no), || {
            format!("user {} is named {name:?}, and that name is of no or another user", no.0)
        });
    }
    check.expect(users == last, || format!("{users} users have a name, and {last} numbers were given"));
    for row in view.scan::<Names>(..) {
        let (name, no) = row?;
        check.look();
        check.expect(view.has::<Users>(&no)?, || format!("the name {name:?} is of user {}, who has none", no.0));
    }
    for row in view.scan::<People>(..) {
        let (user, _) = row?;
        check.look();
        check.expect(view.has::<Users>(&user)?, || format!("something is said of user {}, who is not there", user.0));
    }
    Ok(())
}

fn items(view: &View, check: &mut Check) -> Result<()> {
    let mut living = 0;
    for row in view.scan::<Items>(..) {
        let (id, item) = row?;
        check.look();
        let lives = item.life != Life::Gone;
        living += u64::from(lives);
        if item.seq != NO_SEQ {
            let Some(add) = view.get::<Adds>(&item.add())? else {
                check.find(format!("item {id} has no add at record {} of author {}", item.seq, item.author.0));
                continue;
            };
            check.expect(add.deleted_by.is_none() == lives, || {
                format!("item {id} and its add differ in whether it lives")
            });
            let shown = view.has::<Shown>(&(item.add().0, add.track, add.key))?;
            check.expect(shown == lives, || format!("item {id} lives: {lives}; it is shown: {shown}"));
        }
        let narrowed = matches!(item.life, Life::Living { narrowed: true, .. });
        check.expect(!narrowed || view.has::<Audiences>(&id)?, || format!("item {id} is for an audience and has none"));
        if let Life::Living { foreign_id: Some(key), .. } = &item.life {
            let of = view.get::<ForeignIds>(key)?;
            check.expect(of == Some(id), || format!("the foreign id {key:?} of item {id} does not lead to it"));
        }
    }
    let counted = view.get::<Counters>(&())?.unwrap_or_default().living_items;
    check.expect(living == counted, || format!("{living} items live, and {counted} are counted"));
    Ok(())
}

fn outboxes(view: &View, check: &mut Check) -> Result<()> {
    // The author of the records that are walked through, and the last of them.
    let mut walked: Option<(UserNo, u64)> = None;
    let end = |check: &mut Check, walked: Option<(UserNo, u64)>| -> Result<()> {
        let Some((author, last)) = walked else { return Ok(()) };
        let head = view.get::<Authors>(&author)?.unwrap_or_default().head;
        check.expect(last == head, || {
            format!("the outbox of author {} ends at {last}, and its head is {head}", author.0)
        });
        Ok(())
    };
    for row in view.scan::<Records>(..) {
        let ((author, seq), record) = row?;
        check.look();
        let before = match walked.filter(|(of, _)| *of == author) {
            Some((_, before)) => before,
            None => {
                end(check, walked)?;
                0
            }
        };
        check.expect(seq == before + 1, || format!("record {seq} of author {} comes after {before}", author.0));
        walked = Some((author, seq));
        let known = view.has::<Items>(&record.key.item)?;
        check.expect(known, || {
            format!("record {seq} of author {} is of item {}, which is not there", author.0, record.key.item)
        });
    }
    end(check, walked)?;
    for row in view.scan::<Authors>(..) {
        let (author, row) = row?;
        check.look();
        let there = row.head == 0 || view.has::<Records>(&(author, row.head))?;
        check.expect(there, || format!("the head of author {} is {}, and there is no such record", author.0, row.head));
    }
    Ok(())
}

fn edges(view: &View, check: &mut Check) -> Result<()> {
    let mut on = 0;
    for row in view.scan::<Edges>(..) {
        let ((reader, author), edge) = row?;
        check.look();
        // No list and no count shows the edge of an author to itself.
        let own = reader == author;
        on += u64::from(edge.held.edge().on && !own);
        let between = || format!("the edge from {} to {}", reader.0, author.0);
        let listed =
            view.has::<FollowingList>(&(reader, edge.listed))? && view.has::<FollowerList>(&(author, edge.listed))?;
        check.expect(own || !edge.held.follows || listed, || format!("{} is a follow that is in no list", between()));
        let asked = view.get::<RequestList>(&(author, edge.listed))?.is_some_and(|line| line.user == reader);
        check.expect(!edge.held.asked || asked, || format!("{} is a request that is in no list", between()));
        let closed = edge.held.asked && edge.held.shields.blocks();
        check.expect(!closed, || format!("{} is a request behind a block", between()));
        for user in [reader, author] {
            check
                .expect(view.has::<Users>(&user)?, || format!("{} is of user {}, who is not there", between(), user.0));
        }
    }
    let counted = view.get::<Counters>(&())?.unwrap_or_default().edges_on;
    check.expect(on == counted, || format!("{on} edges are on, and {counted} are counted"));
    for row in view.scan::<FollowingList>(..) {
        let ((reader, listed), line) = row?;
        check.look();
        let edge = view.get::<Edges>(&(reader, line.user))?;
        let follows = edge.is_some_and(|edge| edge.held.follows && edge.listed == listed);
        check.expect(follows, || format!("user {} is listed to follow {}, and does not", reader.0, line.user.0));
    }
    for row in view.scan::<RequestList>(..) {
        let ((author, listed), line) = row?;
        check.look();
        let edge = view.get::<Edges>(&(line.user, author))?;
        let asks = edge.is_some_and(|edge| edge.held.asked && edge.listed == listed);
        check.expect(asks, || format!("user {} is listed to ask {}, and does not", line.user.0, author.0));
    }
    for row in view.scan::<Privates>(..) {
        let (author, ()) = row?;
        check.look();
        check.expect(view.has::<Users>(&author)?, || format!("private author {} is not there", author.0));
        let everyones = view.has::<Everyones>(&author)?;
        check.expect(!everyones, || format!("author {} is private, and everyone follows it", author.0));
    }
    Ok(())
}

fn followers(view: &View, check: &mut Check) -> Result<()> {
    let mut walked: Option<(UserNo, u64)> = None;
    let end = |check: &mut Check, walked: Option<(UserNo, u64)>| -> Result<()> {
        let Some((author, followers)) = walked else { return Ok(()) };
        let counted = view.get::<Authors>(&author)?.unwrap_or_default().followers;
        check.expect(followers == counted, || {
            format!("author {} has {followers} followers, and {counted} are counted", author.0)
        });
        Ok(())
    };
    for row in view.scan::<Followers>(..) {
        let ((author, _, reader), follower) = row?;
        check.look();
        let edge = view.get::<Edges>(&(reader, author))?.map(|row| row.held.edge());
        let same =
            edge.is_some_and(|edge| edge.on && (edge.generation, edge.from) == (follower.generation, follower.from));
        check.expect(same, || format!("user {} is a follower of {}, and the edge says otherwise", reader.0, author.0));
        // An author is among those to whom push brings its items, and is no follower of itself.
        let counts = u64::from(reader != author);
        walked = match walked.filter(|(of, _)| *of == author) {
            Some((_, before)) => Some((author, before + counts)),
            None => {
                end(check, walked)?;
                Some((author, counts))
            }
        };
    }
    end(check, walked)?;
    for row in view.scan::<Authors>(..) {
        let (author, row) = row?;
        let all = (author, Bucket(0), UserNo(0))..=(author, Bucket(u16::MAX), UserNo(u32::MAX));
        let none = row.followers > 0 && view.scan::<Followers>(all).next().transpose()?.is_none();
        check.expect(!none, || format!("author {} has no follower, and {} are counted", author.0, row.followers));
    }
    Ok(())
}

fn reactions(view: &View, check: &mut Check) -> Result<()> {
    for row in view.scan::<Tallies>(..) {
        let (item, tally) = row?;
        check.look();
        check.expect(lives(view, item)?, || format!("reactions to item {item} are counted, and it does not live"));
        for (slot, (kind, counted)) in (0u8..).zip(&tally.0) {
            let all = (item, slot, Millis::MIN, UserNo(0))..=(item, slot, Millis::MAX, UserNo(u32::MAX));
            let mut given = 0;
            for row in view.scan::<Reactors>(all) {
                row?;
                given += 1;
            }
            check.expect(given == *counted, || {
                format!("{given} users have given {kind:?} to item {item}, and {counted} are counted")
            });
        }
    }
    for row in view.scan::<Reacted>(..) {
        let ((item, user), given) = row?;
        check.look();
        let of = view.has::<Tallies>(&item)? || view.has::<ReactionEnds>(&item)?;
        check.expect(of, || format!("user {} has reacted to item {item}, which does not live and has no end", user.0));
        for (slot, at) in given.0 {
            let listed = view.has::<Reactors>(&(item, slot, at, user))? || view.has::<ReactionEnds>(&item)?;
            check.expect(listed, || format!("a reaction of user {} to item {item} is in no list", user.0));
        }
    }
    Ok(())
}

fn comments(view: &View, check: &mut Check) -> Result<()> {
    for row in view.scan::<Talks>(..) {
        let (item, talk) = row?;
        check.look();
        check.expect(lives(view, item)?, || format!("comments on item {item} are counted, and it does not live"));
        let mut living = 0;
        for row in view.scan::<Comments>((item, Millis::MIN, ItemId(0))..=(item, Millis::MAX, ItemId(u64::MAX))) {
            living += u64::from(row?.1.body.is_some());
        }
        check.expect(living == talk.count, || {
            format!("item {item} has {living} comments, and {} are counted", talk.count)
        });
    }
    for row in view.scan::<Comments>(..) {
        let ((item, at, id), _) = row?;
        check.look();
        let of = view.has::<Talks>(&item)? || view.has::<CommentEnds>(&item)?;
        check.expect(of, || format!("comment {id} is on item {item}, which does not live and has no end"));
        let found = view.get::<CommentIds>(&id)? == Some((item, at));
        check.expect(found, || format!("comment {id} on item {item} is not found by its id"));
    }
    Ok(())
}

fn reposts(view: &View, check: &mut Check) -> Result<()> {
    let mut living = 0;
    for row in view.scan::<Items>(..) {
        let (id, item) = row?;
        let Life::Living { repost_of: Some(original), .. } = item.life else { continue };
        check.look();
        living += 1;
        let listed = view.has::<Reposts>(&(original, id))?;
        check.expect(listed, || format!("item {id} reposts item {original}, and is not listed there"));
    }
    let mut listed = 0;
    for row in view.scan::<Reposts>(..) {
        row?;
        listed += 1;
    }
    check.expect(listed == living, || format!("{living} reposts live, and {listed} are listed"));
    let mut counted = 0;
    for row in view.scan::<RepostCounts>(..) {
        let (original, count) = row?;
        check.look();
        counted += count;
        let all = (original, ItemId(0))..=(original, ItemId(u64::MAX));
        let reposts = view.scan::<Reposts>(all).count() as u64;
        check.expect(reposts == count, || format!("item {original} has {reposts} reposts, and {count} are counted"));
    }
    check.expect(counted == listed, || format!("{listed} reposts are listed, and {counted} are counted"));
    Ok(())
}

fn versions(view: &View, check: &mut Check) -> Result<()> {
    // The item whose versions are walked through, and how many it has so far.
    let mut walked: Option<(ItemId, usize)> = None;
    for row in view.scan::<Versions>(..) {
        let ((item, kept), _) = row?;
        check.look();
        let before = walked.filter(|(of, _)| *of == item).map_or(0, |(_, before)| before);
        walked = Some((item, before + 1));
        check.expect(before != BODIES_KEPT, || format!("item {item} has more than {BODIES_KEPT} versions"));
        let now = match view.get::<Items>(&item)?.map(|row| row.life) {
            Some(Life::Living { version, .. }) => version,
            Some(Life::Gone) | None => 0,
        };
        check.expect(kept <= now, || format!("version {kept} of item {item} is kept, and the item has version {now}"));
    }
    Ok(())
}

fn notices(view: &View, check: &mut Check) -> Result<()> {
    for row in view.scan::<PushNotices>(..) {
        let (key, notice) = row?;
        check.look();
        let of = || format!("the notice of user {} in feed {}", key.reader.0, key.feed.0);
        check.expect(view.has::<PushDue>(&(notice.due, key))?, || format!("{} is never due", of()));
        check.expect(view.has::<Users>(&key.reader)?, || format!("{} is of a user who is not there", of()));
    }
    for row in view.scan::<PushDue>(..) {
        let ((due, key), ()) = row?;
        check.look();
        let same = view.get::<PushNotices>(&key)?.is_some_and(|notice| notice.due == due);
        check.expect(same, || format!("a notice of user {} is due, and there is none", key.reader.0));
    }
    for row in view.scan::<PushDevices>(..) {
        let ((user, _), _) = row?;
        check.look();
        check.expect(view.has::<PushReaders>(&user)?, || {
            format!("user {} has a device, and is not known to have one", user.0)
        });
    }
    Ok(())
}

fn search(view: &View, check: &mut Check) -> Result<()> {
    let Some(index) = Audit::of(view)? else { return Ok(()) };
    let mut marks = 0;
    let mut expect = |check: &mut Check, of: String, (all, missing): (u64, u64)| {
        check.look();
        marks += all;
        check.expect(missing == 0, || format!("{of} is not found by {missing} of its {all} marks"));
    };
    for row in view.scan::<Items>(..) {
        let (id, row) = row?;
        let found = index.item(view, id, &row)?;
        expect(check, format!("item {id}"), found);
    }
    for row in view.scan::<People>(..) {
        let (user, row) = row?;
        let found = index.user(view, user, &row)?;
        expect(check, format!("user {}", user.0), found);
    }
    // While the index is being built, writes have put rows for items and users that the build has not reached yet.
    let rows = index.rows(view)?;
    check.expect(!index.is_built() || rows == marks, || {
        format!("what can be found has {marks} marks, and the index has {rows} rows")
    });
    Ok(())
}

fn events(view: &View, check: &mut Check, report: &mut Report) -> Result<()> {
    for row in view.scan::<Due>(..) {
        let ((since, owed), ()) = row?;
        check.look();
        report.outstanding += 1;
        report.oldest = report.oldest.or(Some(since).filter(|since| *since > 0));
        let due = match owed {
            Owed::Outbox { author } => view.get::<Authors>(&author)?.and_then(|row| row.due),
            Owed::Edge { reader, author } => view.get::<Edges>(&(reader, author))?.and_then(|row| row.due),
            Owed::Direct { reader } => view.get::<DirectHeads>(&reader)?.and_then(|row| row.due),
        };
        check.expect(due == Some(since), || format!("{owed:?} is outstanding since {since}, and its row says {due:?}"));
    }
    let counted = view.get::<Counters>(&())?.unwrap_or_default().events;
    let outstanding = report.outstanding;
    check.expect(outstanding == counted, || format!("{outstanding} events are outstanding, and {counted} are counted"));
    Ok(())
}
