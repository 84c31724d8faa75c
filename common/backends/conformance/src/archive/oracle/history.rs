//! Random histories: the steps that happen in them.

use feedgate_common::archive::Answer;
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;

/// How many users there are: each posts, follows and is followed.
pub(super) const USERS: usize = 4;

/// The names of the feeds besides the main one.
pub(super) const NAMED: [&str; 2] = ["likes", "stories"];

/// One step of a history. Numbers are taken modulo how many users, feeds or items there are.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// A user publishes to a feed. The rank differs from the clock by the last number.
    Post(usize, usize, i64),
    /// A user publishes for the users whose bit is set, to a feed of theirs.
    Address(usize, usize, usize),
    /// A user publishes for those followers whose bit is set, to a feed of theirs. The rank differs as that of a post.
    Narrow(usize, usize, usize, i64),
    /// A user publishes a repost of the nth item.
    Repost(usize, usize),
    /// The nth item is edited.
    Edit(usize),
    /// The nth item gets a rank that differs from the clock by the last number.
    Move(usize, i64),
    /// The nth item is deleted.
    Delete(usize),
    /// A user follows another or asks to, or is refused to follow themself.
    Follow(usize, usize),
    /// A user follows another from the first item on, if the two have no edge yet.
    FollowAll(usize, usize),
    /// A user no longer follows another.
    Unfollow(usize, usize),
    /// The items of a user stand in the user's own feed from now on, or not any more.
    OwnPosts(usize, bool),
    /// A user puts a shield up against another, or takes it down.
    Shield(usize, usize, Shield, bool),
    /// A user gets a class.
    Classify(usize, Class),
    /// A user is private from now on, or not any more.
    Private(usize, bool),
    /// The first user answers a request of the second one, or is told that there is none.
    Answer(usize, usize, Answer),
}

/// A history, and how far push and pull have come when the questions are asked.
#[derive(Debug, Clone)]
pub struct History {
    /// The steps in the order in which they happen.
    pub steps: Vec<Step>,
    /// An author of class `auto` with more followers than this is pulled.
    pub pull_above: u64,
    /// How many percent of each outbox push has passed, and how many percent of pulled and addressed records are taken
    /// in.
    pub done: u64,
    /// Whether the push of the next record has passed half of the readers.
    pub half: bool,
}

impl History {
    /// The history of this seed, with this many steps. A seed always gives an equal history.
    pub fn of_seed(seed: u64, steps: usize) -> Self {
        let mut state = seed;
        let mut roll = |sides: u64| {
            // The constants are Knuth's. The low bits of such a generator are poor.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        let mut step = || {
            let (what, who, whom) = (roll(33), roll(100) as usize, roll(100) as usize);
            // Half of the items go to the main feed.
            let feed = [0, 0, 1, 2][whom / 16 % 4];
            match what {
                0..5 => Step::Post(who, feed, 0),
                5 => Step::Narrow(who, whom, feed, [0, 0, 10, -30][who / 16 % 4]),
                6 => Step::Post(who, feed, roll(9) as i64 * 10 - 40),
                7 => Step::Address(who, whom, feed),
                8 => Step::Edit(who),
                9..11 => Step::Delete(who),
                11..15 => Step::Follow(who, whom),
                15 => Step::Unfollow(who, whom),
                16..19 => {
                    let shield = [Shield::Mute, Shield::Hide, Shield::Block][roll(3) as usize];
                    Step::Shield(who, whom, shield, roll(2) == 0)
                }
                19 => {
                    let classes = [Class::Auto, Class::Auto, Class::Push, Class::Pull, Class::Everyone];
                    Step::Classify(who, classes[roll(5) as usize])
                }
                20..22 => Step::OwnPosts(who, whom % 3 > 0),
                22..24 => Step::FollowAll(who, whom),
                24..26 => Step::Private(who, whom % 2 == 0),
                26..29 => Step::Answer(who, whom, [Answer::Accept, Answer::Refuse, Answer::LetIn][roll(3) as usize]),
                29..31 => Step::Repost(who, whom),
                _ => Step::Move(who, roll(9) as i64 * 10 - 40),
            }
        };
        let steps = (0..steps).map(|_| step()).collect();
        Self { steps, pull_above: roll(4), done: roll(101), half: roll(2) == 0 }
    }
}
