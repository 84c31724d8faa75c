//! Carries out a step in the Archive and in the simple implementation, and compares the Archive's answer to it.

use feedgate_common::archive::{Answer, Archive, Audience, Publish, Refused, Write, Written};
use feedgate_common::audience::Narrowed;
use feedgate_common::change::{Class, Route, route_of};
use feedgate_common::graph::{Shield, Shields};
use feedgate_common::import::{Import, Place};
use feedgate_common::{DisplayKey, Entry, FeedId, ItemId, Millis, Op, Record, UserNo};

use super::super::{OneEdge, delete, edit, follow, move_to, post, unfollow, user, write_at};
use super::history::{Step, USERS};
use super::naive::{Held, Naive, Published};

/// The Archive, its users, and the state that it should have.
pub(super) struct World<'a> {
    pub(super) archive: &'a dyn Archive,
    pub(super) naive: Naive,
    pub(super) users: Vec<UserNo>,
    pub(super) feeds: Vec<FeedId>,
    pub(super) pull_above: u64,
}

pub(super) fn name(who: usize) -> String {
    format!("u{}", who % USERS)
}

/// For whom an item is published: the users whose bit is set.
#[derive(Clone, Copy)]
enum To {
    Followers,
    Users(usize),
    Narrowed(usize),
}

impl To {
    fn users(self) -> Vec<usize> {
        match self {
            Self::Followers => vec![],
            Self::Users(bits) | Self::Narrowed(bits) => (0..USERS).filter(|at| bits >> at & 1 == 1).collect(),
        }
    }
}

impl World<'_> {
    fn no(&self, who: usize) -> UserNo {
        self.users[who % USERS]
    }

    pub(super) async fn step(&mut self, step: Step, now: Millis) {
        match step {
            Step::Post(who, feed, offset) => self.post((who, feed), offset, To::Followers, None, now).await,
            Step::Address(who, bits, feed) => self.post((who, feed), 0, To::Users(bits), None, now).await,
            Step::Narrow(who, bits, feed, offset) => {
                self.post((who, feed), offset, To::Narrowed(bits), None, now).await;
            }
            Step::Repost(..) | Step::Edit(_) | Step::Move(..) | Step::Delete(_) if self.naive.items.is_empty() => {}
            Step::Repost(who, which) => {
                let original = self.naive.items[which % self.naive.items.len()].key.item;
                self.post((who, 0), 0, To::Followers, Some(original), now).await;
            }
            Step::Edit(which) => self.edit(which % self.naive.items.len(), now).await,
            Step::Move(which, offset) => self.move_to(which % self.naive.items.len(), offset, now).await,
            Step::Delete(which) => self.delete(which % self.naive.items.len(), now).await,
            Step::Follow(who, whom) => self.follow((who, whom), true, now).await,
            Step::FollowAll(who, whom) if who % USERS == whom % USERS => {}
            Step::FollowAll(who, whom) => self.follow_all((who, whom), now).await,
            Step::Unfollow(who, whom) => self.follow((who, whom), false, now).await,
            Step::OwnPosts(who, on) => self.own_posts(who, on, now).await,
            Step::Shield(who, whom, ..) if who % USERS == whom % USERS => {}
            Step::Shield(who, whom, shield, up) => self.shield((who, whom), shield, up, now).await,
            Step::Classify(who, class) => self.classify(who, class, now).await,
            Step::Private(who, private) => self.private(who, private, now).await,
            Step::Answer(who, whom, answer) => self.answer((who, whom), answer, now).await,
        }
    }

    async fn post(&mut self, (who, feed): (usize, usize), offset: i64, to: To, repost_of: Option<ItemId>, now: Millis) {
        let (author, feed) = (self.no(who), self.feeds[feed % self.feeds.len()]);
        let mut publish = Publish { feed, repost_of, ..post(&name(who), "text") };
        publish.rank = (offset != 0).then_some(now + offset);
        let mut wants = vec![];
        let named = to.users();
        // The first of the readers is named twice.
        let names = named.iter().chain(named.first()).map(|who| user(&name(*who))).collect();
        let mut audience = None;
        match to {
            To::Followers => {}
            To::Users(_) => {
                publish.audience = Audience::Users(names);
                wants = named.iter().map(|who| self.no(*who)).filter(|who| !self.naive.blocks(*who, author)).collect();
            }
            To::Narrowed(_) => {
                publish.audience = Audience::Narrowed(Narrowed::to(names));
                audience = Some(named.iter().map(|who| self.no(*who)).collect::<Vec<_>>());
            }
        }
        let answer = write_at(self.archive, Write::Publish(publish), now).await;
        if audience.is_some() && self.naive.author(author).class == Class::Everyone {
            return assert_eq!(answer, Err(Refused::NarrowedEveryones(user(&name(who)))));
        }
        let is_gone =
            |original: &ItemId| self.naive.items.iter().any(|item| item.key.item == *original && !item.living);
        if let Some(original) = repost_of.filter(is_gone) {
            return assert_eq!(answer, Err(Refused::NoSuchRef(original)));
        }
        let Ok(Written::Published { id, outbox_seq, mut readers, fresh: true, .. }) = answer else {
            panic!("a new item is accepted, and not {answer:?}")
        };
        let key = DisplayKey { rank: now + offset, item: id };
        readers.sort_unstable();
        wants.sort_unstable();
        assert_eq!(readers, wants, "who is in no block gets what is addressed to them, once");
        let direct = matches!(to, To::Users(_));
        if !direct {
            let known = self.naive.author(author);
            let route = match audience {
                Some(_) => Route::Narrow,
                None => route_of(known.class, known.followers, self.pull_above),
            };
            self.naive.append(author, Record { seq: outbox_seq, op: Op::Add, route, feed, key });
        } else {
            assert_eq!(outbox_seq, 0, "what is addressed stands in no outbox");
        }
        let item = Published { author, feed, key, readers, direct, repost_of, audience, living: true };
        self.naive.items.push(item);
        self.tell(self.naive.items.len() - 1, Op::Add);
    }

    async fn edit(&mut self, which: usize, now: Millis) {
        let item = &self.naive.items[which];
        let answer = write_at(self.archive, edit(item.key.item, "edited"), now).await;
        if !item.living {
            return assert_eq!(answer, Err(Refused::NoSuchItem(item.key.item)));
        }
        let Ok(Written::Edited { mut readers, .. }) = answer else { panic!("{answer:?}") };
        readers.sort_unstable();
        assert_eq!(readers, item.readers, "a new version reaches those who got the item");
        self.follow_up(which, Op::Update);
    }

    async fn delete(&mut self, which: usize, now: Millis) {
        let item = &mut self.naive.items[which];
        let answer = write_at(self.archive, delete(item.key.item), now).await;
        let Ok(Written::Deleted { fresh, mut readers, repost_of, .. }) = answer else { panic!("{answer:?}") };
        assert_eq!(repost_of, item.repost_of.filter(|_| item.living), "who watches the original is told");
        readers.sort_unstable();
        assert_eq!((fresh, &readers), (item.living, &item.readers));
        if std::mem::take(&mut item.living) {
            self.follow_up(which, Op::Delete);
        }
    }

    async fn move_to(&mut self, which: usize, offset: i64, now: Millis) {
        let (key, living) = (self.naive.items[which].key, self.naive.items[which].living);
        let rank = now + offset;
        let answer = write_at(self.archive, move_to(key.item, rank), now).await;
        if !living {
            return assert_eq!(answer, Err(Refused::NoSuchItem(key.item)));
        }
        let author = self.naive.items[which].author;
        let adds = self.naive.records(author).iter().filter(|(record, _)| record.op == Op::Add);
        let newest = adds.filter(|(record, _)| record.key.item == key.item).map(|(record, _)| record.seq).next_back();
        let is_older = newest.is_some_and(|seq| self.naive.everyone_since(author).is_some_and(|since| seq <= since));
        if is_older && rank != key.rank {
            return assert_eq!(answer, Err(Refused::OlderThanEveryone(key.item)));
        }
        let Ok(Written::Edited { mut readers, .. }) = answer else { panic!("{answer:?}") };
        readers.sort_unstable();
        assert_eq!(readers, self.naive.items[which].readers, "a move reaches those who got the item");
        if rank != key.rank {
            self.follow_up(which, Op::Delete);
            self.naive.items[which].key.rank = rank;
            self.follow_up(which, Op::Add);
        }
    }

    /// Adds a record for an item after its first add, by the same route and to the same feed.
    fn follow_up(&mut self, which: usize, op: Op) {
        let Published { author, key, direct, .. } = self.naive.items[which];
        if !direct {
            let mut records = self.naive.records(author).iter();
            let (add, _) = *records.find(|(record, _)| record.key.item == key.item).expect("it was added");
            self.naive.append(author, Record { seq: self.naive.head(author) + 1, op, key, ..add });
        }
        self.tell(which, op);
    }

    /// Adds a record for each reader to whom the item is addressed.
    fn tell(&mut self, which: usize, op: Op) {
        let Published { author, feed, key, .. } = self.naive.items[which];
        for reader in self.naive.items[which].readers.clone() {
            self.naive.directs.entry(reader).or_default().push((feed, Entry::direct(op, author, key)));
        }
    }

    /// What is stored of an edge. If there is no row, the row that would mean the same.
    fn held(&self, reader: UserNo, author: UserNo, now: Millis) -> Held {
        let implied = Held { follows: self.naive.edge(reader, author).on, since: now, ..Held::default() };
        self.naive.held.get(&(reader, author)).copied().unwrap_or(implied)
    }

    async fn follow(&mut self, (who, whom): (usize, usize), follows: bool, now: Millis) {
        let (reader, author) = (self.no(who), self.no(whom));
        let ask = if follows { follow(&name(who), &name(whom)) } else { unfollow(&name(who), &name(whom)) };
        let answer = write_at(self.archive, ask, now).await;
        if reader == author {
            return assert_eq!(answer, Err(Refused::FollowsItself(user(&name(who)))));
        }
        let Ok(Written::Edge { edge, pending, fresh, .. }) = answer else { panic!("{answer:?}") };
        let held = self.held(reader, author, now);
        let asks = follows && !held.follows && self.naive.privates.contains(&author);
        let wanted = match asks {
            true => (false, !held.shields.blocks()),
            false => (follows, false),
        };
        let unlisted = follows && !self.naive.held.contains_key(&(reader, author));
        let news = wanted != (held.follows, held.asked) || unlisted;
        assert_eq!((fresh, pending), (news, asks), "{follows}, and it was {held:?}");
        if news {
            let (follows, asked) = wanted;
            self.keep((reader, author), Held { follows, asked, since: now, ..held }).await;
        }
        assert_eq!(edge, self.naive.edge(reader, author), "a write answers the edge as it is read");
    }

    async fn own_posts(&mut self, who: usize, on: bool, now: Millis) {
        let author = self.no(who);
        let answer = write_at(self.archive, Write::OwnPosts { author: user(&name(who)), on }, now).await;
        let mut held = self.held(author, author, now);
        let fresh = held.follows != on;
        if fresh {
            held.follows = on;
            self.keep((author, author), held).await;
        }
        let edge = self.naive.edge(author, author);
        assert_eq!(answer, Ok(Written::Edge { reader: author, author, edge, pending: false, fresh, told: vec![] }));
    }

    /// A follow with its whole past is stored as an imported follow from the start is.
    async fn follow_all(&mut self, (who, whom): (usize, usize), now: Millis) {
        let pair = (self.no(who), self.no(whom));
        let (reader, author) = (user(&name(who)), user(&name(whom)));
        let line = Import::Follow { reader, author, since: now, from: Place::Start };
        let answer = write_at(self.archive, Write::Import(line), now).await;
        let Ok(Written::Edge { edge, fresh, .. }) = answer else { panic!("{answer:?}") };
        let held = self.held(pair.0, pair.1, now);
        let was = self.naive.held.get(&pair).is_some_and(|held| held.follows);
        assert_eq!(
            fresh,
            !was && self.naive.edge(pair.0, pair.1).generation == 0,
            "an edge that changed is left as it is"
        );
        if fresh {
            self.keep_anew(pair, Held { follows: true, asked: false, since: now, ..held }).await;
        }
        assert_eq!(edge, self.naive.edge(pair.0, pair.1));
    }

    async fn shield(&mut self, (who, whom): (usize, usize), shield: Shield, up: bool, now: Millis) {
        let (one, other) = (self.no(who), self.no(whom));
        let ask = Write::Shield { user: user(&name(who)), other: user(&name(whom)), shield, up };
        let answer = write_at(self.archive, ask, now).await;
        let Ok(Written::Shielded { mut edges, fresh }) = answer else { panic!("{answer:?}") };
        let place = self.naive.shields.iter().position(|(of, what, to, _)| (*of, *what, *to) == (one, shield, other));
        assert_eq!(fresh, place.is_some() != up);
        let (as_reader, as_author) = shield.bits();
        let sides = [(as_reader, (one, other)), (as_author, (other, one))];
        let mut sides: Vec<_> = sides.into_iter().filter(|(bit, _)| *bit != Shields::default()).collect();
        if fresh {
            match place {
                Some(at) => drop(self.naive.shields.remove(at)),
                None => self.naive.shields.push((one, shield, other, now)),
            }
            for &(bit, (reader, author)) in &sides {
                let mut held = self.held(reader, author, now);
                held.shields = held.shields.with(bit, up);
                held.asked &= !held.shields.blocks();
                self.keep((reader, author), held).await;
            }
        }
        edges.sort_unstable();
        sides.sort_unstable_by_key(|(_, edge)| *edge);
        assert_eq!(edges, sides.iter().map(|(_, edge)| *edge).collect::<Vec<_>>(), "a repeat names them too");
    }

    /// Keeps the new state of an edge. Only its generation is taken from the Archive, which chooses it.
    async fn keep(&mut self, pair: (UserNo, UserNo), held: Held) {
        let before = self.naive.edge(pair.0, pair.1);
        self.keep_edge(pair, held, held.on() != before.on).await;
    }

    /// Keeps the new state of an edge whose effect begins with it, and which shows all from the first record on.
    async fn keep_anew(&mut self, pair: (UserNo, UserNo), held: Held) {
        self.keep_edge(pair, held, held.on()).await;
        if held.on() {
            self.naive.whole.insert(pair);
        }
    }

    async fn keep_edge(&mut self, (reader, author): (UserNo, UserNo), held: Held, changes: bool) {
        let before = self.naive.edge(reader, author);
        let edge = self.archive.edge(reader, author).await.expect("the archive works");
        self.naive.held.insert((reader, author), held);
        self.naive.edges.insert((reader, author), edge);
        if !changes {
            return assert_eq!(edge, before, "the effect is the same, and so is the edge");
        }
        assert_eq!(edge.on, held.on());
        self.naive.whole.remove(&(reader, author));
        let of_reader = self.naive.edges.iter().filter(|((who, whom), _)| *who == reader && *whom != author);
        let newest = of_reader.map(|(_, edge)| edge.generation).max().unwrap_or(0);
        assert!(edge.generation > before.generation.max(newest), "a change takes the reader's next number");
        if edge.on {
            assert_eq!(edge.from, self.naive.head(author), "who follows from now on follows from the head");
        }
    }

    async fn classify(&mut self, who: usize, class: Class, now: Millis) {
        let author = self.no(who);
        let answer = write_at(self.archive, Write::Classify { author: user(&name(who)), class }, now).await;
        let was = self.naive.author(author).class;
        if was == Class::Everyone && class != was {
            return assert_eq!(answer, Err(Refused::StaysEveryones(user(&name(who)))));
        }
        if was != class && class == Class::Everyone && self.naive.privates.contains(&author) {
            return assert_eq!(answer, Err(Refused::PrivateEveryones(user(&name(who)))));
        }
        assert_eq!(answer, Ok(Written::Classified { author, fresh: was != class }));
        let head = self.naive.head(author);
        let outbox = self.naive.outboxes.entry(author).or_default();
        outbox.class = class;
        if class == Class::Everyone && was != class {
            outbox.everyone_since = Some(head);
        }
    }

    async fn private(&mut self, who: usize, private: bool, now: Millis) {
        let author = self.no(who);
        let answer = write_at(self.archive, Write::Private { author: user(&name(who)), private }, now).await;
        if private && self.naive.author(author).class == Class::Everyone {
            return assert_eq!(answer, Err(Refused::PrivateEveryones(user(&name(who)))));
        }
        let privates = &mut self.naive.privates;
        let fresh = if private { privates.insert(author) } else { privates.remove(&author) };
        assert_eq!(answer, Ok(Written::Classified { author, fresh }));
    }

    /// Answers a request to follow. The author is the first of the two users.
    async fn answer(&mut self, (who, whom): (usize, usize), answer: Answer, now: Millis) {
        let (author, reader) = (self.no(who), self.no(whom));
        let names = (user(&name(whom)), user(&name(who)));
        let write = Write::Answer { reader: names.0.clone(), author: names.1.clone(), answer };
        let answered = write_at(self.archive, write, now).await;
        let held = self.held(reader, author, now);
        let repeats = reader != author && answer == Answer::Accept && held.follows;
        let stays = answer == Answer::LetIn && self.naive.privates.contains(&author);
        if !repeats && (!held.asked || stays) {
            return assert_eq!(answered, Err(Refused::NoSuchRequest { reader: names.0, author: names.1 }));
        }
        if !repeats {
            let follows = answer != Answer::Refuse;
            self.keep((reader, author), Held { follows, asked: false, since: now, ..held }).await;
        }
        let edge = self.naive.edge(reader, author);
        let written = Written::Edge { reader, author, edge, pending: false, fresh: !repeats, told: vec![] };
        assert_eq!(answered, Ok(written));
    }
}
