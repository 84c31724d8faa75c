//! The operations that a backend or a device asks for. Only these are common to the oracle and the server under test.

use std::collections::{BTreeMap, BTreeSet};

use feedgate_common::archive::{Answer, Audience, Publish, Write};
use feedgate_common::audience::Narrowed;
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_common::{Body, DisplayKey, FeedId, ItemId, Millis, UserId};
use rand::RngExt;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

/// A user of a schedule.
pub type User = usize;

/// One of a user's feeds.
pub type Inbox = (User, FeedId);

/// An item of a schedule.
pub type Item = u64;

/// One operation. Asking for it again changes nothing, so a caller that has lost an answer may ask again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// An author publishes, to the followers, or to these alone.
    Publish {
        /// The author who publishes.
        author: User,
        /// The number of the new item.
        item: Item,
        /// The feed to which the item goes.
        feed: FeedId,
        /// The rank of the item.
        rank: i64,
        /// The readers to whom the item is addressed. If there are none, it is for the followers.
        to: Vec<User>,
        /// Whether it is for the followers in `to` alone, in place of being addressed to them.
        narrowed: bool,
    },
    /// An item gets a new version.
    Edit(Item),
    /// An item gets another rank.
    Move(Item, i64),
    /// An item is deleted.
    Delete(Item),
    /// A reader follows an author, or asks a private one: (reader, author).
    Follow(User, User),
    /// A reader unfollows an author: (reader, author).
    Unfollow(User, User),
    /// The items of an author stand in the author's own feed, or no more: (author, whether they do).
    OwnPosts(User, bool),
    /// A shield goes up or down: (who asks, against whom, which shield, whether it goes up).
    Shield(User, User, Shield, bool),
    /// An author gets a class.
    Classify(User, Class),
    /// An author is private from now on, or no more.
    Private(User, bool),
    /// An author accepts the request of a reader: (author, reader).
    Accept(User, User),
    /// A recommender replaces the ranking of a reader by these items, each once, with their ranks.
    Rank(User, Vec<(Item, i64)>),
    /// A user reacts to an item, or takes that back; always by the same kind of reaction.
    React {
        /// The user who reacts.
        user: User,
        /// The item to which the user reacts.
        item: Item,
        /// The author of the item, who is told of it.
        author: User,
        /// Whether the reaction is given, or taken back.
        on: bool,
    },
    /// A user sees all notifications that there are.
    See(User),
}

impl Op {
    /// What another operation would have to be ordered with: items, pairs of users, authors, readers with a ranking,
    /// and users with notifications. `None`: everything.
    ///
    /// Only where a follow brings everything from before it: else it is to be ordered with what is published.
    pub fn touches(&self) -> Option<Vec<(u64, u64)>> {
        let pair = |a: User, b: User| (a.min(b) as u64, a.max(b) as u64);
        let item = |item: Item| (item, u64::MAX);
        Some(match self {
            Self::Publish { author, item: published, to, .. } => {
                to.iter().map(|reader| pair(*reader, *author)).chain([item(*published)]).collect()
            }
            Self::Edit(edited) | Self::Move(edited, _) => vec![item(*edited)],
            Self::Delete(deleted) => vec![item(*deleted)],
            Self::Follow(a, b) | Self::Unfollow(a, b) | Self::Shield(a, b, ..) | Self::Accept(a, b) => {
                vec![pair(*a, *b)]
            }
            Self::OwnPosts(author, _) => vec![pair(*author, *author)],
            Self::Classify(_, Class::Everyone) | Self::Private(..) => return None,
            Self::Classify(author, _) => vec![(*author as u64, u64::MAX - 1)],
            Self::Rank(reader, ranking) => {
                let items = ranking.iter().map(|(ranked, _)| item(*ranked));
                items.chain([(*reader as u64, u64::MAX - 2)]).collect()
            }
            Self::React { user, item: reacted, author, .. } => {
                vec![item(*reacted), pair(*user, *author), (*author as u64, u64::MAX - 3)]
            }
            Self::See(user) => vec![(*user as u64, u64::MAX - 3)],
        })
    }
}

/// The names of users that a schedule takes in a store.
#[derive(Debug, Clone)]
pub struct World {
    /// The name of each user of the schedule.
    pub names: Vec<UserId>,
    /// What is added to the number of an item to make its id.
    pub first_item: Item,
}

impl World {
    /// World number `number` of a store: its users and items are its own.
    ///
    /// # Panics
    /// If the numbers make no names, which is a bug.
    pub fn new(number: u64, users: usize) -> Self {
        let name = |user| format!("w{number}-{user}").parse().expect("a name");
        Self { names: (0..users).map(name).collect(), first_item: number << 32 }
    }

    /// The id of an item.
    pub fn id(&self, item: Item) -> ItemId {
        ItemId(self.first_item + item)
    }

    /// The item of an id.
    pub fn item(&self, id: ItemId) -> Item {
        // An item that Feedgate has made has an id of its own choice.
        id.0.wrapping_sub(self.first_item)
    }

    /// The user of a name.
    ///
    /// # Panics
    /// If nobody has it.
    pub fn user(&self, name: &UserId) -> User {
        self.names.iter().position(|known| known == name).expect("a user of this world")
    }

    /// The places of a ranking.
    pub fn places(&self, ranking: &[(Item, i64)]) -> Vec<DisplayKey> {
        ranking.iter().map(|&(item, rank)| DisplayKey { rank, item: self.id(item) }).collect()
    }

    /// The write that the Archive is asked for; `None` if the operation is no write, but a call of its own.
    ///
    /// # Panics
    /// If a user is none of this world.
    pub fn write(&self, op: &Op) -> Option<Write> {
        let name = |user: &User| self.names[*user].clone();
        let body = |text: &str| Body::parse(format!("{text:?}")).expect("a body");
        Some(match op {
            Op::Publish { author, item, feed, rank, to, narrowed } => Write::Publish(Publish {
                id: Some(self.id(*item)),
                feed: *feed,
                rank: Some(*rank),
                audience: match (narrowed, to.is_empty()) {
                    (true, _) => Audience::Narrowed(Narrowed::to(to.iter().map(name).collect())),
                    (false, true) => Audience::Followers,
                    (false, false) => Audience::Users(to.iter().map(name).collect()),
                },
                ..Publish::new(name(author), body("first"))
            }),
            Op::Edit(item) => Write::Edit {
                item: self.id(*item),
                body: Some(body("edited")),
                rank: None,
                mentions: None,
                if_version: None,
            },
            Op::Move(item, rank) => {
                Write::Edit { item: self.id(*item), body: None, rank: Some(*rank), mentions: None, if_version: None }
            }
            Op::Delete(item) => Write::Delete { item: self.id(*item), if_version: None },
            Op::Follow(reader, author) => Write::Follow { reader: name(reader), author: name(author) },
            Op::Unfollow(reader, author) => Write::Unfollow { reader: name(reader), author: name(author) },
            Op::OwnPosts(author, on) => Write::OwnPosts { author: name(author), on: *on },
            Op::Shield(user, other, shield, up) => {
                Write::Shield { user: name(user), other: name(other), shield: *shield, up: *up }
            }
            Op::Classify(author, class) => Write::Classify { author: name(author), class: *class },
            Op::Private(author, private) => Write::Private { author: name(author), private: *private },
            Op::Accept(author, reader) => {
                Write::Answer { reader: name(reader), author: name(author), answer: Answer::Accept }
            }
            Op::Rank(..) | Op::React { .. } | Op::See(_) => return None,
        })
    }
}

/// The time at which the worlds of the tests begin, in Unix ms.
pub const NOW: Millis = 1_764_000_000_000;

/// How many users a random world has.
pub const USERS: usize = 6;

/// How many of them, the first, publish.
pub const AUTHORS: usize = 3;

/// The feeds that items go to; each but the first has a [name](super::name_feeds).
pub const FEEDS: [FeedId; 2] = [FeedId::MAIN, FeedId(1)];

/// The feed that holds rankings. It has a [name](super::name_rankings), and no item goes there.
pub const RANKED: FeedId = FeedId(2);

/// The users with a ranking: one who publishes, and one who rarely decides anything about an author.
const RANKED_READERS: [User; 2] = [0, USERS - 1];

/// The feed of the notifications of reactions. It has a [name](super::name_notes), and no item is published to it.
pub const NOTES: FeedId = FeedId(3);

/// Every inbox of so many users, without rankings and notifications.
pub fn all_inboxes(users: usize) -> impl Iterator<Item = Inbox> {
    (0..users).flat_map(|user| FEEDS.map(|feed| (user, feed)))
}

/// Every inbox of a random world.
pub fn whole_world() -> impl Iterator<Item = Inbox> {
    let notes = (0..AUTHORS).map(|author| (author, NOTES));
    all_inboxes(USERS).chain(RANKED_READERS.map(|reader| (reader, RANKED))).chain(notes)
}

/// Picks an inbox at random: one of the user's, or one of rankings or notifications.
pub fn some_inbox(rng: &mut SmallRng, user: User) -> Inbox {
    match rng.random_range(0..20) {
        0..3 => (RANKED_READERS[rng.random_range(0..RANKED_READERS.len())], RANKED),
        3..6 => (rng.random_range(0..AUTHORS), NOTES),
        _ => (user, some_feed(rng)),
    }
}

/// Picks one of the feeds that items go to at random.
pub fn some_feed(rng: &mut SmallRng) -> FeedId {
    FEEDS[rng.random_range(0..FEEDS.len())]
}

/// What a follow brings from before it.
pub const BACKFILL: usize = 2;

/// An author with more followers than this is pulled.
pub const PULL_ABOVE: u64 = 2;

/// The size of one step. Some authors have more followers than that, so a step may stop within a record.
pub const STEP_MAX: usize = 3;

/// Makes histories up: few users and few ranks, so that everything collides.
#[derive(Debug)]
pub struct Imagined {
    /// How many users there are.
    pub users: usize,
    /// How many of them, the first, publish.
    pub authors: usize,
    items: BTreeSet<Item>,
    /// The items for which no delete was made up, each with its author.
    living: BTreeMap<Item, User>,
    /// How likely an operation is one of rankings and reactions, drawn for each history.
    beside: Option<f64>,
}

/// How many of the items that live are ranked: so few that rankings have most of them in common.
const RANKED_ITEMS: usize = 6;

/// How many of the items that live get reactions, nearly always.
const REACTED_ITEMS: usize = 2;

impl Imagined {
    /// An empty history, of so many users.
    pub fn new(users: usize, authors: usize) -> Self {
        Self { users, authors, items: BTreeSet::new(), living: BTreeMap::new(), beside: None }
    }

    /// What might happen next.
    pub fn op(&mut self, rng: &mut SmallRng) -> Op {
        // One author and two readers have most of it: what goes wrong takes several things between the same two.
        let author = if rng.random_bool(0.6) { 0 } else { rng.random_range(0..self.authors) };
        let users = if rng.random_bool(0.6) { 2 } else { self.users };
        let user = rng.random_range(0..users);
        let beside = *self.beside.get_or_insert_with(|| [0.05, 0.3, 0.8][rng.random_range(0..3)]);
        if rng.random_bool(beside) {
            return self.beside(rng, author);
        }
        match rng.random_range(0..100) {
            0..22 => Op::Follow(user, author),
            22..37 => Op::Unfollow(user, author),
            37..39 => Op::OwnPosts(author, rng.random_bool(0.7)),
            39..42 => self.shield(rng, user, author),
            42..44 => self.shield(rng, author, user),
            44..50 => Op::Classify(author, class(rng)),
            50..58 => self.some_item(rng).map_or(Op::Follow(user, author), |item| {
                self.living.remove(&item);
                Op::Delete(item)
            }),
            58..60 => self.some_item(rng).map_or(Op::Follow(user, author), Op::Edit),
            60..65 => self.some_item(rng).map_or(Op::Follow(user, author), |item| Op::Move(item, rank(rng))),
            65..70 => {
                let to = (0..rng.random_range(1..4)).map(|_| rng.random_range(0..self.users)).collect();
                self.publish(rng, author, to, false)
            }
            70..80 => {
                let to = (0..rng.random_range(0..4)).map(|_| rng.random_range(0..self.users)).collect();
                self.publish(rng, author, to, true)
            }
            80..82 => Op::Private(author, rng.random_bool(0.4)),
            82..86 => Op::Accept(author, user),
            _ => self.publish(rng, author, vec![], false),
        }
    }

    fn publish(&mut self, rng: &mut SmallRng, author: User, to: Vec<User>, narrowed: bool) -> Op {
        // Ids and ranks in no order, so that display order and outbox order differ.
        let item = loop {
            let item = rng.random_range(1..1 << 20);
            if self.items.insert(item) {
                self.living.insert(item, author);
                break item;
            }
        };
        Op::Publish { author, item, feed: some_feed(rng), rank: rank(rng), to, narrowed }
    }

    /// What stands beside the feeds of follows: rankings, reactions, and the shields that they meet.
    fn beside(&mut self, rng: &mut SmallRng, author: User) -> Op {
        let reader = RANKED_READERS[rng.random_range(0..RANKED_READERS.len())];
        match rng.random_range(0..20) {
            _ if self.living.len() < REACTED_ITEMS => self.publish(rng, author, vec![], false),
            0..7 => Op::Rank(reader, self.ranking(rng)),
            7..16 => self.reaction(rng).unwrap_or(Op::See(author)),
            16..18 => Op::See(author),
            18 => self.shield(rng, author, reader),
            _ => self.shield(rng, reader, author),
        }
    }

    fn ranking(&self, rng: &mut SmallRng) -> Vec<(Item, i64)> {
        let mut ranking: Vec<_> = self.living.keys().take(RANKED_ITEMS).map(|item| (*item, rank(rng))).collect();
        ranking.retain(|_| rng.random_bool(0.6));
        // An item that was deleted refuses the whole.
        if let Some(item) = self.some_item(rng).filter(|item| rng.random_bool(0.1) && !self.living.contains_key(item)) {
            ranking.push((item, rank(rng)));
        }
        ranking
    }

    fn reaction(&self, rng: &mut SmallRng) -> Option<Op> {
        let among = if rng.random_bool(0.9) { REACTED_ITEMS } else { self.living.len().max(1) };
        let (&item, &author) = self.living.iter().nth(rng.random_range(0..among))?;
        let users = if rng.random_bool(0.6) { 1..3 } else { 0..self.users };
        Some(Op::React { user: rng.random_range(users), item, author, on: rng.random_bool(0.7) })
    }

    fn shield(&self, rng: &mut SmallRng, user: User, other: User) -> Op {
        let shield = [Shield::Mute, Shield::Hide, Shield::Block][rng.random_range(0..3)];
        // A user puts up no shield against itself.
        let other = if user == other { (other + 1) % self.users } else { other };
        Op::Shield(user, other, shield, rng.random_bool(0.6))
    }

    fn some_item(&self, rng: &mut SmallRng) -> Option<Item> {
        let which = rng.random_range(0..self.items.len().max(1));
        self.items.iter().nth(which).copied()
    }
}

fn rank(rng: &mut SmallRng) -> i64 {
    match rng.random_range(0..10) {
        0 => rng.random_range(0..3),
        1 => NOW + 3_600_000,
        _ => NOW + rng.random_range(0..4),
    }
}

fn class(rng: &mut SmallRng) -> Class {
    match rng.random_range(0..20) {
        0..7 => Class::Pull,
        7..12 => Class::Push,
        12..19 => Class::Auto,
        _ => Class::Everyone,
    }
}
