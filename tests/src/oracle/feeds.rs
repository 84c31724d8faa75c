//! The oracle: each feed of each reader, from the history of what was accepted and nothing else.
//!
//! A post goes to one feed of its readers, the feed to which it was published. It is in that feed of a reader if nobody
//! has deleted it, and either
//! - it was addressed to the reader, and no block stood between the two at that moment, or
//! - the reader sees its author, and it came after the reader last began to see the author, or was then one of the
//!   newest `backfill` of the author's posts in that feed, or any of them if the operator lets a follow show the whole
//!   past when it begins.
//!
//! A post that is narrowed to an audience is one of the author's posts for everybody, and shown to those in its
//! audience.
//!
//! An author sees all of its own posts, of any audience, while it was said that they stand in its feed. It does not
//! follow itself, whatever its class.
//!
//! Of an author who is private, a follow is a request. It shows nothing until the author accepts it; then the reader
//! follows from that moment on. A block ends it, and lets none begin.
//!
//! A reader sees an author whom they follow while no shield is up between them. A reader who has never followed,
//! unfollowed or shielded an author whom everyone follows, follows the author since everyone does, without any
//! backfill.
//!
//! A ranked feed holds what a recommender gave last, each item with the rank of the ranking, as long as the item lives.
//! It shows of that what a repost would show to the reader now:
//! - an item for the followers, if no shield is up between the reader and its author, and the author is not private or
//!   the reader follows the author,
//! - an item that is narrowed to an audience, if the reader is in it and sees the author,
//! - an item that was addressed to the reader, if no block is up,
//! - what is the reader's own.
//!
//! The author of an item is told of reactions to it, but not of its own ones, nor while a shield stands between the two
//! that keeps what the other does from the author. Reactions to one item that are told are one line until the author
//! has seen it; then the next one begins another line. A reaction that is taken back leaves a line that was not seen,
//! and stays in one that was; given again, it is not told a second time while a line has it. A line that changes names
//! nobody behind whom a shield stands by then, unless none of its last users is without one. A line that nobody is left
//! in is gone. When an item is deleted, nobody can react to it any more, and its lines stay. To see is to see all
//! notifications that there are: what a device has seen of less depends on what was delivered to it.
//!
//! The oracle has no route, no inbox and no number but the count of what was accepted. So it cannot be wrong in the way
//! in which the product may be wrong.
//!
//! Three more places compute what a feed holds; CONTRIBUTING.md lists them. This one is independent on purpose: it is
//! the only one that calls no rule of the product while the order of all writes is known. So a wrong rule of
//! `feedgate_common` is found here, and the answer is one feed, not a range of feeds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_common::{FeedId, Millis};

use super::history::{Inbox, Item, Op, RANKED, User};
use super::{Line, Look, Shown};

/// How many of its actors a line names.
const ACTORS: usize = 3;

/// The how-manieth thing that was accepted.
type Moment = u64;

#[derive(Debug)]
struct Post {
    author: User,
    feed: FeedId,
    rank: i64,
    version: u32,
    /// Who is in its audience, if it is narrowed.
    only: Option<BTreeSet<User>>,
    /// Whether it was addressed to readers.
    direct: bool,
    lives: bool,
}

/// That a post stands in its author's outbox, with one rank. With another rank it stands there anew.
#[derive(Debug)]
struct Stand {
    item: Item,
    since: Moment,
    until: Option<Moment>,
}

impl Stand {
    fn stood_at(&self, moment: Moment) -> bool {
        self.since < moment && self.until.is_none_or(|until| until > moment)
    }
}

/// What a reader has decided about an author, or the author about the reader.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Edge {
    follows: bool,
    /// The reader has asked a private author, who has not answered.
    asked: bool,
    /// The shields that are up, each with the user who put it up.
    shields: BTreeSet<(User, Shield)>,
    /// Since when the reader sees the author, the last time that this began.
    seen_since: Moment,
    /// How many posts from before that moment belong to the feed.
    backfill: usize,
}

impl Edge {
    fn sees(&self) -> bool {
        self.follows && self.shields.is_empty()
    }

    fn blocks(&self) -> bool {
        self.shields.iter().any(|(_, shield)| *shield == Shield::Block)
    }
}

/// The reactions to one item of which its author is told together.
#[derive(Debug)]
struct Told {
    item: Item,
    /// Who has reacted, the newest last.
    actors: Vec<User>,
    /// Whom it has named since it changed, the newest first.
    named: Vec<User>,
    /// When the last of them joined.
    joined: Moment,
    /// The time of that.
    at: Millis,
    seen: bool,
}

/// The history of what was accepted, and each feed that follows from it.
#[derive(Debug)]
pub struct Oracle {
    backfill: usize,
    whole_past: bool,
    now: Moment,
    time: Millis,
    posts: HashMap<Item, Post>,
    /// Each author's to the followers, in the order they were accepted.
    published: HashMap<User, Vec<Stand>>,
    /// What was addressed to each reader.
    addressed: HashMap<User, BTreeSet<Item>>,
    /// The edges, by reader and then by author.
    edges: HashMap<User, HashMap<User, Edge>>,
    /// Since when everyone follows them.
    everyones: HashMap<User, Moment>,
    /// The authors who are private.
    privates: BTreeSet<User>,
    /// The rank of each item in the ranking of each reader.
    rankings: HashMap<User, BTreeMap<Item, i64>>,
    /// Who has reacted to which item.
    reactions: BTreeSet<(Item, User)>,
    /// What each author is told of reactions.
    told: HashMap<User, Vec<Told>>,
}

/// Whom a line names that changes now, with the edges of its reader: those of its last users who are behind no shield.
fn names(edges: &HashMap<User, Edge>, actors: &[User]) -> Vec<User> {
    let is_open = |actor: &User| edges.get(actor).is_none_or(|edge| edge.shields.is_empty());
    let open: Vec<User> = actors.iter().rev().take(ACTORS).copied().filter(is_open).collect();
    if open.is_empty() { actors.last().copied().into_iter().collect() } else { open }
}

impl Oracle {
    /// Nothing was accepted yet. `backfill`: how many of an author's newest posts a follow brings from before it.
    pub fn new(backfill: usize) -> Self {
        Self {
            backfill,
            whole_past: false,
            now: 0,
            time: 0,
            posts: HashMap::new(),
            published: HashMap::new(),
            addressed: HashMap::new(),
            edges: HashMap::new(),
            everyones: HashMap::new(),
            privates: BTreeSet::new(),
            rankings: HashMap::new(),
            reactions: BTreeSet::new(),
            told: HashMap::new(),
        }
    }

    /// From now on a follow that begins shows the whole past, or not.
    pub fn set_whole_past(&mut self, whole_past: bool) {
        self.whole_past = whole_past;
    }

    /// What is asked for from now on is accepted at this time.
    pub fn set_time(&mut self, time: Millis) {
        self.time = time;
    }

    /// Takes in what is asked for next. False: it is to be refused, and changes nothing.
    pub fn accept(&mut self, op: &Op) -> bool {
        self.now += 1;
        let now = self.now;
        match op {
            Op::Publish { author, item, feed, rank, to, narrowed } => {
                if self.posts.contains_key(item) {
                    return true;
                }
                if *narrowed && self.everyones.contains_key(author) {
                    return false;
                }
                let only = narrowed.then(|| to.iter().copied().collect());
                let direct = !to.is_empty() && !narrowed;
                let post = Post { author: *author, feed: *feed, rank: *rank, version: 1, only, direct, lives: true };
                self.posts.insert(*item, post);
                if !direct {
                    let stand = Stand { item: *item, since: now, until: None };
                    self.published.entry(*author).or_default().push(stand);
                    return true;
                }
                for reader in to {
                    if !self.blocked(*reader, *author) {
                        self.addressed.entry(*reader).or_default().insert(*item);
                    }
                }
                true
            }
            Op::Edit(item) => match self.posts.get_mut(item) {
                Some(post) if post.lives => {
                    post.version += 1;
                    true
                }
                _ => false,
            },
            Op::Move(item, rank) => match self.posts.get_mut(item) {
                Some(post) if post.lives => {
                    if post.rank != *rank {
                        // Who follows only because everyone does has nothing from before that.
                        let everyones = self.everyones.get(&post.author).copied().unwrap_or(0);
                        let outbox = self.published.get(&post.author).into_iter().flatten();
                        if outbox.rev().find(|stand| stand.item == *item).is_some_and(|stand| stand.since < everyones) {
                            return false;
                        }
                        (post.rank, post.version) = (*rank, post.version + 1);
                        if let Some(outbox) = self.leave(*item) {
                            outbox.push(Stand { item: *item, since: now, until: None });
                        }
                    }
                    true
                }
                _ => false,
            },
            Op::Delete(item) => match self.posts.get_mut(item) {
                Some(post) => {
                    if std::mem::take(&mut post.lives) {
                        self.leave(*item);
                    }
                    true
                }
                None => false,
            },
            Op::Follow(one, other) | Op::Unfollow(one, other) | Op::Accept(one, other) if one == other => false,
            Op::OwnPosts(author, on) => self.change(*author, *author, |edge| edge.follows = *on),
            Op::Follow(reader, author) if self.privates.contains(author) && !self.edge(*reader, *author).follows => {
                let blocked = self.blocked(*reader, *author);
                self.change(*reader, *author, |edge| edge.asked = !blocked)
            }
            Op::Follow(reader, author) => {
                // Who follows only because everyone does begins to follow by name, and sees the whole past if that is
                // set.
                if self.edges.get(reader).is_none_or(|edges| !edges.contains_key(author)) {
                    let edge = if self.whole_past { Edge::default() } else { self.edge(*reader, *author) };
                    self.edges.entry(*reader).or_default().insert(*author, edge);
                }
                self.change(*reader, *author, |edge| (edge.follows, edge.asked) = (true, false))
            }
            Op::Unfollow(reader, author) => {
                self.change(*reader, *author, |edge| (edge.follows, edge.asked) = (false, false))
            }
            Op::Accept(author, reader) => match self.edge(*reader, *author) {
                Edge { follows: true, .. } => true,
                Edge { asked: true, .. } => {
                    self.change(*reader, *author, |edge| (edge.follows, edge.asked) = (true, false))
                }
                _ => false,
            },
            Op::Private(author, true) if self.everyones.contains_key(author) => false,
            Op::Private(author, private) => {
                _ = if *private { self.privates.insert(*author) } else { self.privates.remove(author) };
                true
            }
            Op::Shield(user, other, shield, up) => {
                let set = |edge: &mut Edge| {
                    match up {
                        true => _ = edge.shields.insert((*user, *shield)),
                        false => _ = edge.shields.remove(&(*user, *shield)),
                    }
                    edge.asked &= !edge.blocks();
                };
                let sides = match shield {
                    Shield::Mute => vec![(user, other)],
                    Shield::Hide => vec![(other, user)],
                    Shield::Block => vec![(user, other), (other, user)],
                };
                sides.into_iter().all(|(reader, author)| self.change(*reader, *author, set))
            }
            Op::Classify(author, Class::Everyone) if self.privates.contains(author) => false,
            Op::Classify(author, Class::Everyone) => {
                self.everyones.entry(*author).or_insert(now);
                true
            }
            Op::Classify(author, _) => !self.everyones.contains_key(author),
            Op::Rank(reader, ranking) => {
                let lives = |item| self.posts.get(item).is_some_and(|post| post.lives);
                let all_live = ranking.iter().all(|(item, _)| lives(item));
                if all_live {
                    self.rankings.insert(*reader, ranking.iter().copied().collect());
                }
                all_live
            }
            Op::React { user, item, on, .. } => match self.posts.get(item) {
                Some(Post { author, lives: true, .. }) => {
                    let author = *author;
                    match on {
                        true if self.reactions.insert((*item, *user)) => self.join(author, *item, *user),
                        false if self.reactions.remove(&(*item, *user)) => self.part(author, *item, *user),
                        _ => {}
                    }
                    true
                }
                _ => false,
            },
            Op::See(user) => {
                self.told.get_mut(user).into_iter().flatten().for_each(|line| line.seen = true);
                true
            }
        }
    }

    /// The notifications of a user, newest first.
    pub fn lines(&self, user: User) -> Vec<Line> {
        let mut told: Vec<&Told> = self.told.get(&user).into_iter().flatten().collect();
        told.sort_unstable_by_key(|line| Reverse(line.joined));
        let line = |told: &Told| Line {
            item: told.item,
            actors: told.named.clone(),
            count: told.actors.len() as u64,
            at: told.at,
        };
        told.into_iter().map(line).collect()
    }

    /// What a device shows that takes in the log of this feed, newest first: what the reader is [shown](Self::feed),
    /// and of a ranking also what lives and is not shown to the reader now.
    pub fn logged(&self, inbox: Inbox) -> Vec<Shown> {
        self.looked_at(inbox, Look::Logged)
    }

    /// What this feed of the reader shows now, newest first.
    pub fn feed(&self, inbox: Inbox) -> Vec<Shown> {
        self.looked_at(inbox, Look::Shown)
    }

    fn looked_at(&self, (reader, feed): Inbox, look: Look) -> Vec<Shown> {
        if feed == RANKED {
            return self.ranking(reader, look);
        }
        let of_feed = |item: &Item| self.posts[item].feed == feed;
        let addressed = self.addressed.get(&reader).into_iter().flatten().copied();
        let mut items: Vec<Item> = addressed.filter(of_feed).collect();
        let decided = self.edges.get(&reader).into_iter().flat_map(HashMap::keys);
        let authors: BTreeSet<&User> = decided.chain(self.everyones.keys()).collect();
        for author in authors {
            let edge = self.edge(reader, *author);
            if edge.sees() {
                let since = if *author == reader { 0 } else { edge.seen_since };
                let all =
                    || self.published.get(author).into_iter().flatten().rev().filter(|stand| of_feed(&stand.item));
                let before = all().filter(|stand| stand.stood_at(since)).take(edge.backfill);
                let stands = before.chain(all().filter(|stand| stand.since > since));
                items.extend(stands.filter(|stand| stand.until.is_none()).map(|stand| stand.item));
            }
        }
        let mut shown: Vec<Shown> = vec![];
        for item in items {
            let Post { author, rank, version, lives, ref only, .. } = self.posts[&item];
            if lives && (author == reader || only.as_ref().is_none_or(|only| only.contains(&reader))) {
                shown.push(Shown { rank, item, version });
            }
        }
        shown.sort_unstable_by(|a, b| b.cmp(a));
        shown
    }

    /// Tells an author that a user has reacted.
    fn join(&mut self, author: User, item: Item, user: User) {
        if author == user || !self.edge(author, user).shields.is_empty() {
            return;
        }
        let edges = self.edges.get(&author).cloned().unwrap_or_default();
        let told = self.told.entry(author).or_default();
        if told.iter().any(|line| line.item == item && line.actors.contains(&user)) {
            return;
        }
        match told.iter_mut().find(|line| line.item == item && !line.seen) {
            Some(line) => {
                line.actors.push(user);
                line.named = names(&edges, &line.actors);
                (line.joined, line.at) = (self.now, self.time);
            }
            None => {
                let (actors, named) = (vec![user], vec![user]);
                told.push(Told { item, actors, named, joined: self.now, at: self.time, seen: false });
            }
        }
    }

    /// A user has taken a reaction back.
    fn part(&mut self, author: User, item: Item, user: User) {
        let edges = self.edges.get(&author).cloned().unwrap_or_default();
        let told = self.told.entry(author).or_default();
        for line in told.iter_mut().filter(|line| line.item == item && !line.seen && line.actors.contains(&user)) {
            line.actors.retain(|actor| *actor != user);
            line.named = names(&edges, &line.actors);
        }
        told.retain(|line| !line.actors.is_empty());
    }

    fn ranking(&self, reader: User, look: Look) -> Vec<Shown> {
        let mut shown: Vec<Shown> = vec![];
        for (&item, &rank) in self.rankings.get(&reader).into_iter().flatten() {
            let post = &self.posts[&item];
            if post.lives && (look == Look::Logged || self.may_see(reader, item, post)) {
                shown.push(Shown { rank, item, version: post.version });
            }
        }
        shown.sort_unstable_by(|a, b| b.cmp(a));
        shown
    }

    /// Whether a reader may see an item that neither a follow nor a door has to bring.
    fn may_see(&self, reader: User, item: Item, post: &Post) -> bool {
        let edge = self.edge(reader, post.author);
        if post.author == reader {
            true
        } else if post.direct {
            self.addressed.get(&reader).is_some_and(|items| items.contains(&item)) && !edge.blocks()
        } else if let Some(only) = &post.only {
            only.contains(&reader) && edge.sees()
        } else {
            edge.shields.is_empty() && (edge.follows || !self.privates.contains(&post.author))
        }
    }

    /// Lets a post leave its place in the outbox. Gives that outbox; `None` if the post is addressed to readers.
    fn leave(&mut self, item: Item) -> Option<&mut Vec<Stand>> {
        let outbox = self.published.get_mut(&self.posts[&item].author)?;
        let stand = outbox.iter_mut().rfind(|stand| stand.item == item)?;
        stand.until.get_or_insert(self.now);
        Some(outbox)
    }

    fn edge(&self, reader: User, author: User) -> Edge {
        let decided = self.edges.get(&reader).and_then(|edges| edges.get(&author)).cloned();
        decided.unwrap_or_else(|| match self.everyones.get(&author) {
            Some(since) if reader != author => Edge { follows: true, seen_since: *since, ..Edge::default() },
            _ => Edge::default(),
        })
    }

    fn change(&mut self, reader: User, author: User, how: impl FnOnce(&mut Edge)) -> bool {
        let before = self.edge(reader, author);
        let mut edge = before.clone();
        how(&mut edge);
        if edge.sees() && !before.sees() {
            let newest = if self.whole_past { usize::MAX } else { self.backfill };
            (edge.seen_since, edge.backfill) = (self.now, newest);
        }
        if edge != before {
            self.edges.entry(reader).or_default().insert(author, edge);
        }
        true
    }

    fn blocked(&self, reader: User, author: User) -> bool {
        self.edge(reader, author).blocks()
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::FEEDS;
    use super::*;

    const REA: User = 0;
    const ANN: User = 9;

    fn post(item: Item) -> Op {
        post_to(FeedId::MAIN, item)
    }

    fn post_to(feed: FeedId, item: Item) -> Op {
        Op::Publish { author: ANN, item, feed, rank: 0, to: vec![], narrowed: false }
    }

    fn feeds_after<const N: usize>(feeds: [FeedId; N], ops: &[Op]) -> [Vec<Item>; N] {
        let mut oracle = Oracle::new(2);
        ops.iter().for_each(|op| assert!(oracle.accept(op), "{op:?}"));
        feeds.map(|feed| oracle.feed((REA, feed)).iter().map(|shown| shown.item).collect())
    }

    fn feed_after(ops: &[Op]) -> Vec<Item> {
        let [items] = feeds_after([FeedId::MAIN], ops);
        items
    }

    #[test]
    fn a_follow_brings_the_newest_two_that_stood_and_all_that_comes() {
        let follow = Op::Follow(REA, ANN);
        assert_eq!(
            feed_after(&[post(1), post(2), post(3), Op::Delete(3), post(4), follow.clone(), post(5)]),
            [5, 4, 2]
        );
        let deleted_since = [post(1), post(2), post(3), follow, Op::Delete(3)];
        assert_eq!(feed_after(&deleted_since), [2], "what is deleted later is not made up for");
    }

    #[test]
    fn a_follow_of_the_whole_past_shows_all_and_later_settings_change_nothing_of_it() {
        let mut oracle = Oracle::new(2);
        let mut accept = |whole_past: bool, ops: &[Op]| {
            oracle.set_whole_past(whole_past);
            ops.iter().for_each(|op| assert!(oracle.accept(op), "{op:?}"));
            oracle.feed((REA, FeedId::MAIN)).iter().map(|shown| shown.item).collect::<Vec<_>>()
        };
        let (follow, unfollow) = (Op::Follow(REA, ANN), Op::Unfollow(REA, ANN));
        assert_eq!(accept(true, &[post(1), post(2), post(3), follow.clone(), post(4), Op::Delete(2)]), [4, 3, 1]);
        assert_eq!(accept(false, &[post(5)]), [5, 4, 3, 1]);
        assert_eq!(accept(false, &[unfollow.clone(), follow.clone()]), [5, 4]);
        assert_eq!(accept(true, std::slice::from_ref(&follow)), [5, 4], "it is followed already");
        let everyones = Op::Classify(ANN, Class::Everyone);
        assert_eq!(accept(true, &[unfollow, follow, everyones]), [5, 4, 3, 1]);
    }

    #[test]
    fn a_post_that_moves_is_new_to_who_follows_and_was_old_to_who_did() {
        let moved = |item| Op::Move(item, 7);
        let follow = Op::Follow(REA, ANN);
        let ops = [post(1), post(2), post(3), follow.clone(), moved(3), moved(1)];
        assert_eq!(feed_after(&ops), [3, 1, 2], "the move of 1 brings it, and 3 counts among the newest two of before");
        assert_eq!(feed_after(&[post(1), post(2), post(3), moved(1), follow]), [1, 3], "1 is the newest");
    }

    #[test]
    fn each_feed_has_the_newest_two_of_its_own() {
        let [main, likes] = FEEDS;
        let mut ops = vec![post_to(main, 1), post_to(likes, 2), post_to(main, 3)];
        ops.extend((4..9).map(|item| post_to(likes, item)));
        ops.extend([Op::Follow(REA, ANN), post_to(likes, 9), Op::Delete(3)]);
        assert_eq!(feeds_after(FEEDS, &ops), [vec![1], vec![9, 8, 7]]);
    }

    #[test]
    fn what_was_muted_is_followed_again() {
        let mute = |up| Op::Shield(REA, ANN, Shield::Mute, up);
        let ops = [Op::Follow(REA, ANN), post(1), mute(true), post(2), post(3), mute(false), post(4)];
        assert_eq!(feed_after(&ops), [4, 3, 2]);
        assert!(feed_after(&ops[..5]).is_empty());
    }

    #[test]
    fn everyone_follows_from_then_on_and_whoever_has_decided_has_decided() {
        let everyones = Op::Classify(ANN, Class::Everyone);
        assert_eq!(feed_after(&[post(1), everyones.clone(), post(2)]), [2]);
        let left = [Op::Follow(REA, ANN), Op::Unfollow(REA, ANN), everyones, post(2)];
        assert!(feed_after(&left).is_empty());
    }

    #[test]
    fn a_request_shows_nothing_until_it_is_accepted() {
        let (follow, accept) = (Op::Follow(REA, ANN), Op::Accept(ANN, REA));
        let asked = [Op::Private(ANN, true), post(1), follow.clone(), post(2), post(3)];
        assert!(feed_after(&asked).is_empty());
        let accepted = [&asked[..], &[accept.clone(), post(4)]].concat();
        assert_eq!(feed_after(&accepted), [4, 3, 2], "it is a follow of that moment");
        let mut oracle = Oracle::new(2);
        let block = |up| Op::Shield(ANN, REA, Shield::Block, up);
        let ops = [Op::Private(ANN, true), follow.clone(), block(true), block(false)];
        assert!(ops.iter().all(|op| oracle.accept(op)) && !oracle.accept(&accept), "a block ends a request");
        assert!(!oracle.accept(&Op::Classify(ANN, Class::Everyone)), "nobody is private whom everyone follows");
        let public = [Op::Private(ANN, false), follow, accept];
        assert!(public.iter().all(|op| oracle.accept(op)), "who follows is accepted already");
    }

    #[test]
    fn a_narrowed_post_is_for_a_follower_in_its_audience() {
        let only = |item, to: &[User]| Op::Publish {
            author: ANN,
            item,
            feed: FeedId::MAIN,
            rank: 0,
            to: to.to_vec(),
            narrowed: true,
        };
        let (follow, unfollow) = (Op::Follow(REA, ANN), Op::Unfollow(REA, ANN));
        let ops = [only(1, &[REA]), follow.clone(), only(2, &[5]), only(3, &[REA, 5]), only(4, &[])];
        assert_eq!(feed_after(&ops), [3, 1]);
        assert!(feed_after(&[&ops[..], std::slice::from_ref(&unfollow)].concat()).is_empty());
        let again = [&ops[..], &[unfollow, follow]].concat();
        assert_eq!(feed_after(&again), [3], "a follow brings the newest two, and one of them is for the reader");
    }

    /// The ranking of REA, shown and as the log tells it.
    fn ranking_after(oracle: &mut Oracle, ops: &[Op]) -> [Vec<Item>; 2] {
        ops.iter().for_each(|op| assert!(oracle.accept(op), "{op:?}"));
        let items = |shown: Vec<Shown>| shown.iter().map(|shown| shown.item).collect();
        [oracle.feed((REA, RANKED)), oracle.logged((REA, RANKED))].map(items)
    }

    #[test]
    fn a_ranking_is_what_was_given_last_of_what_lives() {
        let mut oracle = Oracle::new(2);
        let rank = |ranks: &[(Item, i64)]| Op::Rank(REA, ranks.to_vec());
        let ops = [post(1), post(2), post(3), rank(&[(1, 5), (2, 9)]), Op::Move(2, 1), Op::Edit(1)];
        assert_eq!(ranking_after(&mut oracle, &ops), [[2, 1], [2, 1]], "a rank of its own changes no ranking");
        let shown = |rank, item, version| Shown { rank, item, version };
        assert_eq!(oracle.feed((REA, RANKED)), [shown(9, 2, 2), shown(5, 1, 2)]);
        assert_eq!(ranking_after(&mut oracle, &[rank(&[(1, 5), (3, 5)])]), [[3, 1], [3, 1]], "the item decides of two");
        assert_eq!(ranking_after(&mut oracle, &[Op::Delete(1)]), [[3], [3]]);
        assert!(!oracle.accept(&rank(&[(2, 1), (1, 5)])), "one that does not live refuses all");
        assert!(!oracle.accept(&rank(&[(7, 1)])), "and so does one that is not known");
        assert_eq!(ranking_after(&mut oracle, &[]), [[3], [3]]);
        assert!(feed_after(&ops).is_empty(), "a ranking is a feed of its own");
        assert_eq!(ranking_after(&mut oracle, &[rank(&[])]), [[0; 0], [0; 0]]);
    }

    #[test]
    fn a_ranking_shows_what_a_repost_would() {
        let to = |item, narrowed| Op::Publish {
            author: ANN,
            item,
            feed: FeedId::MAIN,
            rank: 0,
            to: if item % 2 == 0 { vec![5] } else { vec![REA] },
            narrowed,
        };
        let mut oracle = Oracle::new(2);
        let own = Op::Publish { author: REA, item: 8, feed: FeedId::MAIN, rank: 0, to: vec![5], narrowed: false };
        let mut ops = vec![post(1), to(2, false), to(3, false), to(4, true), to(5, true), own];
        ops.push(Op::Rank(REA, [1, 2, 3, 4, 5, 8].map(|item| (item, 0)).to_vec()));
        let all = vec![8, 5, 4, 3, 2, 1];
        let mut shown = |ops: &[Op]| {
            let [shown, logged] = ranking_after(&mut oracle, ops);
            assert_eq!(logged, all, "who may see what changes nothing of the ranking");
            shown
        };
        let shield = |shield, up| Op::Shield(REA, ANN, shield, up);
        assert_eq!(shown(&ops), [8, 3, 1], "who does not follow is in no audience");
        assert_eq!(shown(&[Op::Follow(REA, ANN)]), [8, 5, 3, 1]);
        assert_eq!(shown(&[shield(Shield::Mute, true)]), [8, 3], "what is addressed passes a mute");
        assert_eq!(shown(&[shield(Shield::Mute, false), Op::Private(ANN, true)]), [8, 5, 3, 1]);
        assert_eq!(shown(&[Op::Unfollow(REA, ANN)]), [8, 3], "of a private author, to followers");
        assert_eq!(shown(&[Op::Follow(REA, ANN)]), [8, 3], "a request is no follow");
        assert_eq!(shown(&[Op::Private(ANN, false), shield(Shield::Block, true)]), [8]);
        assert_eq!(shown(&[shield(Shield::Block, false)]), [8, 3, 1]);
        assert_eq!(shown(&[Op::Classify(ANN, Class::Everyone)]), [8, 3, 1], "but not who has unfollowed");
        let ranked = [to(5, true), Op::Rank(REA, vec![(5, 0)]), Op::Classify(ANN, Class::Everyone)];
        assert_eq!(ranking_after(&mut Oracle::new(2), &ranked), [[5], [5]], "everyone follows, the reader too");
    }

    fn react(item: Item, user: User, on: bool) -> Op {
        Op::React { user, item, author: ANN, on }
    }

    /// The lines of ANN, each as its item, its actors and its count.
    fn lines_after(oracle: &mut Oracle, ops: &[Op]) -> Vec<(Item, Vec<User>, u64)> {
        ops.iter().for_each(|op| assert!(oracle.accept(op), "{op:?}"));
        oracle.lines(ANN).into_iter().map(|line| (line.item, line.actors, line.count)).collect()
    }

    #[test]
    fn reactions_to_one_item_are_one_line_until_it_is_seen() {
        let mut oracle = Oracle::new(2);
        let ops: Vec<Op> =
            [post(1), post(2)].into_iter().chain([1, 2, 3, 4].map(|user| react(1, user, true))).collect();
        assert_eq!(lines_after(&mut oracle, &ops), [(1, vec![4, 3, 2], 4)]);
        let other = [react(2, 1, true), react(2, 1, true), react(1, ANN, true)];
        assert_eq!(lines_after(&mut oracle, &other), [(2, vec![1], 1), (1, vec![4, 3, 2], 4)]);
        assert_eq!(lines_after(&mut oracle, &[react(1, 5, true)])[0], (1, vec![5, 4, 3], 5), "it comes to the top");
        let seen = [Op::See(ANN), react(1, 6, true), react(2, 6, true), react(1, 6, false)];
        let left = [(2, vec![6], 1), (1, vec![5, 4, 3], 5), (2, vec![1], 1)];
        assert_eq!(lines_after(&mut oracle, &seen), left, "what was seen is closed, and what is empty is gone");
        let again = [react(1, 5, false), react(1, 5, true)];
        assert_eq!(lines_after(&mut oracle, &again), left, "what was seen stays, and is told once");
    }

    #[test]
    fn who_takes_a_reaction_back_leaves_the_line_where_it_is() {
        let mut oracle = Oracle::new(2);
        let ops = [post(1), post(2), react(1, 1, true), react(1, 2, true), react(2, 1, true)];
        assert_eq!(lines_after(&mut oracle, &ops), [(2, vec![1], 1), (1, vec![2, 1], 2)]);
        assert_eq!(lines_after(&mut oracle, &[react(1, 2, false)]), [(2, vec![1], 1), (1, vec![1], 1)]);
        assert_eq!(lines_after(&mut oracle, &[react(1, 2, true)]), [(1, vec![2, 1], 2), (2, vec![1], 1)]);
        assert_eq!(lines_after(&mut oracle, &[Op::Delete(1)]), [(1, vec![2, 1], 2), (2, vec![1], 1)]);
        assert!(!oracle.accept(&react(1, 2, false)) && !oracle.accept(&react(1, 3, true)), "it does not live");
    }

    #[test]
    fn no_reaction_is_told_through_a_shield() {
        for (user, other, shield) in [(ANN, 1, Shield::Mute), (1, ANN, Shield::Hide), (1, ANN, Shield::Block)] {
            let mut oracle = Oracle::new(2);
            let up = |up| Op::Shield(user, other, shield, up);
            let ops = [post(1), up(true), react(1, 1, true), up(false), react(1, 1, true)];
            assert_eq!(lines_after(&mut oracle, &ops), [], "{shield:?}: what was not told is not told later");
            let again = [react(1, 1, false), react(1, 1, true), up(true)];
            assert_eq!(lines_after(&mut oracle, &again), [(1, vec![1], 1)], "{shield:?}: what is told stays");
            assert_eq!(lines_after(&mut oracle, &[react(1, 1, false)]), [], "{shield:?}: and goes with its reaction");
        }
        let mut oracle = Oracle::new(2);
        let other_way = [post(1), Op::Shield(1, ANN, Shield::Mute, true), react(1, 1, true)];
        assert_eq!(lines_after(&mut oracle, &other_way), [(1, vec![1], 1)], "who mutes an author may react");
    }

    #[test]
    fn what_is_addressed_arrives_unless_a_block_stands() {
        let to_rea =
            |item| Op::Publish { author: ANN, item, feed: FeedId::MAIN, rank: 0, to: vec![REA, REA], narrowed: false };
        let block = |up| Op::Shield(ANN, REA, Shield::Block, up);
        assert_eq!(feed_after(&[to_rea(1), block(true), to_rea(2), block(false), to_rea(3)]), [3, 1]);
    }
}
