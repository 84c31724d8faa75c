//! The erasure of a user: what it removes, in which order, and how it goes on after a crash.
//!
//! ```text
//!   accepted, tokens refused ──▶ a stage ──▶ … ──▶ the last stage ──▶ finished: the receipt is whole
//!                                  │   ▲
//!          a page of traces is planned: counted, and its end is noted       one durable step
//!                                  ▼   │
//!          it is carried out by ordinary writes, and then the state moves behind it
//! ```
//!
//! Invariants:
//! - A trace is counted when its page is planned, and a page is planned once. So the receipt is right however often the
//!   process dies: what is done again after a crash counts nothing.
//! - A page that was planned is carried out before the next one, and only up to the end that was noted.
//! - Each step is bounded, and to repeat it changes nothing.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::around::ReactionKind;
use crate::graph::Shield;
use crate::{ItemId, Millis, UserNo};

/// The most rows that a home looks at for one page of traces.
pub const TRACES_LOOKED_AT: usize = 5000;

/// The most traces in a page.
pub const TRACES_MAX: usize = 200;

/// What is removed together. The stages come one after another, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The items of the user's outbox.
    Items,
    /// The lines by which others were told what the user did, together with what others did.
    Lines,
    /// The items that the user has addressed to named readers.
    Direct,
    /// The notifications by which the user was told what others did.
    Notifications,
    /// The backend's own keys of deleted items of the user.
    ForeignIds,
    /// The comments that the user has written.
    Comments,
    /// The reactions that the user has given.
    Reactions,
    /// The follows of the user, and its requests to follow.
    Following,
    /// The follows of others that lead to the user.
    Followers,
    /// The requests of others to follow the user, and that the user is private.
    Requests,
    /// The users whom the user has muted.
    Muted,
    /// The users from whom the user hides.
    Hidden,
    /// The users whom the user has blocked.
    Blocked,
    /// The shields that others have up against the user.
    Shielded,
    /// The audiences of items of others that have the user, and those of the user's own items. The deletes of the own
    /// items find their readers by these audiences, so they stay until no follow leads to the user any more.
    Audiences,
    /// What has no write of its own: see [`crate::archive::Erasures::forget_rest`].
    Rest,
}

impl Stage {
    /// All stages in their order. Follows end before shields go down, so that no edge comes into effect on the way. The
    /// user leaves lines before direct items are removed, so that no line is removed with what it tells of other users.
    pub const ALL: [Self; 16] = [
        Self::Items,
        Self::Lines,
        Self::Direct,
        Self::Notifications,
        Self::ForeignIds,
        Self::Comments,
        Self::Reactions,
        Self::Following,
        Self::Followers,
        Self::Requests,
        Self::Muted,
        Self::Hidden,
        Self::Blocked,
        Self::Shielded,
        Self::Audiences,
        Self::Rest,
    ];

    /// The stage behind this one; `None` behind the last.
    pub fn next(self) -> Option<Self> {
        let place = Self::ALL.iter().position(|stage| *stage == self)?;
        Self::ALL.get(place + 1).copied()
    }
}

/// A place in a walk through traces. It orders as its text does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mark(pub CompactString);

impl Mark {
    /// The place of a row with this key of numbers.
    pub fn of(key: [u64; 3]) -> Self {
        let [a, b, c] = key;
        Self(compact_str::format_compact!("{a:016x}{b:016x}{c:016x}"))
    }

    /// The numbers of [`Self::of`]; `None` for another text.
    pub fn numbers(&self) -> Option<[u64; 3]> {
        let part = |at: usize| u64::from_str_radix(self.0.get(at * 16..at * 16 + 16)?, 16).ok();
        (self.0.len() == 48).then_some([part(0)?, part(1)?, part(2)?])
    }

    /// The place behind all others.
    pub fn end() -> Self {
        Self(CompactString::const_new("\u{10ffff}"))
    }
}

/// Something that is known of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trace {
    /// An item of the user's outbox or one that is addressed to readers.
    Item {
        /// The id of the item.
        id: ItemId,
        /// Whether it lives; else only what is left of it is removed.
        lives: bool,
        /// Whether it is addressed to readers.
        direct: bool,
    },
    /// A deed of the user, by its key, of which a line of another user tells.
    Member(CompactString),
    /// A notification by which the user was told what another one did. It lives.
    Notification(ItemId),
    /// The backend's own key of a deleted item of the user.
    ForeignId(CompactString),
    /// A comment of the user.
    Comment {
        /// The item of the comment.
        item: ItemId,
        /// The id of the comment.
        id: ItemId,
        /// Whether it lives; else only what is left of it is removed.
        lives: bool,
    },
    /// The reactions of the user to an item.
    Reactions {
        /// The item to which the user has reacted.
        item: ItemId,
        /// With which kinds, and when, in Unix ms.
        kinds: Vec<(ReactionKind, Millis)>,
    },
    /// The edge of the user to itself, by which its items stand in its own feed.
    OwnEdge,
    /// The user follows this author.
    Follow(UserNo),
    /// This reader follows the user.
    Follower(UserNo),
    /// The user has asked to follow this author.
    Asked(UserNo),
    /// This reader has asked to follow the user.
    Asker(UserNo),
    /// The user is private.
    Private,
    /// The user has this shield up against another one.
    Shield(Shield, UserNo),
    /// Another user has this shield up against the user.
    Shielded(Shield, UserNo),
    /// The audience of this item of another user has the user.
    Audience(ItemId),
    /// A deleted item of the user has an audience.
    OwnAudience(ItemId),
}

/// A part of the traces of one stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traces {
    /// The traces with their places, ascending.
    pub found: Vec<(Mark, Trace)>,
    /// The place behind which the walk goes on; `None` at its end. There may be such a place although nothing was
    /// found.
    pub next: Option<Mark>,
}

/// How many things of each kind were removed: the body of the receipt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Removed {
    /// Items of the outbox that lived.
    pub items: u64,
    /// Items addressed to readers that lived.
    pub direct_items: u64,
    /// Comments of the user that lived.
    pub comments: u64,
    /// Reactions to items that live.
    pub reactions: u64,
    /// Follows of the user.
    pub following: u64,
    /// Follows of others that led to the user.
    pub followers: u64,
    /// Requests of the user to follow others, and of others to follow the user.
    pub requests: u64,
    /// Shields of the user against others.
    pub shields: u64,
    /// Shields of others against the user.
    pub shielded: u64,
    /// Audiences of items of others that had the user.
    pub audiences: u64,
    /// Users whom the user had put on lists, each once for a list.
    pub listed: u64,
    /// Lists of others on which the user was.
    pub listing: u64,
    /// The name, the avatar and the attributes of the user: 1 if there were any, else 0.
    pub person: u64,
    /// Devices registered for push notifications.
    pub devices: u64,
    /// Notices that the user was still to be told, those that nobody took too.
    pub notices: u64,
    /// Feeds for which a position was stored up to which the user has seen them.
    pub seen: u64,
    /// Items of others that were addressed to the user.
    pub addressed: u64,
    /// Idempotency keys of requests for the user.
    pub keys: u64,
}

impl Removed {
    /// Counts a trace as removed.
    pub fn count(&mut self, trace: &Trace) {
        match trace {
            Trace::Item { lives: true, direct: false, .. } => self.items += 1,
            Trace::Item { lives: true, direct: true, .. } => self.direct_items += 1,
            Trace::Comment { lives: true, .. } => self.comments += 1,
            Trace::Reactions { kinds, .. } => self.reactions += kinds.len() as u64,
            Trace::Follow(_) => self.following += 1,
            Trace::Follower(_) => self.followers += 1,
            Trace::Asked(_) | Trace::Asker(_) => self.requests += 1,
            Trace::Shield(..) => self.shields += 1,
            Trace::Shielded(..) => self.shielded += 1,
            Trace::Audience(_) => self.audiences += 1,
            // Notifications are counted with all that was addressed to the user. A member is no item of its own, and no
            // count shows the edge of a user to itself. An own audience goes with its item, which was counted.
            Trace::Item { .. }
            | Trace::OwnEdge
            | Trace::OwnAudience(_)
            | Trace::Private
            | Trace::Comment { .. }
            | Trace::Member(_)
            | Trace::Notification(_)
            | Trace::ForeignId(_) => {}
        }
    }

    /// Counts what has no write of its own, as [`crate::archive::Erasures::rest`] answers it.
    pub fn count_rest(&mut self, rest: &Self) {
        self.person += rest.person;
        self.devices += rest.devices;
        self.notices += rest.notices;
        self.seen += rest.seen;
        self.addressed += rest.addressed;
        self.listed += rest.listed;
        self.listing += rest.listing;
        self.keys += rest.keys;
    }
}

/// How far an erasure has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The stage under way.
    pub stage: Stage,
    /// All of the stage up to this place is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Mark>,
    /// The end of the page that is planned and counted; `None` if none is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upto: Option<Mark>,
    /// What was removed, with what is planned.
    pub removed: Removed,
    /// When it was finished, in Unix ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Millis>,
}

impl Default for State {
    fn default() -> Self {
        Self { stage: Stage::ALL[0], after: None, upto: None, removed: Removed::default(), finished_at: None }
    }
}

impl State {
    /// The state as text for a store. Equal states have equal texts.
    pub fn text(&self) -> CompactString {
        serde_json::to_string(self).expect("a state is JSON").into()
    }

    /// The state of a stored text, or why it is none.
    pub fn stored(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Whether nothing is left to do.
    pub fn is_finished(&self) -> bool {
        self.finished_at.is_some()
    }

    /// The state in which this page is counted, and is to be carried out.
    #[must_use]
    pub fn planned(&self, page: &Traces) -> Self {
        let mut planned = self.clone();
        page.found.iter().for_each(|(_, trace)| planned.removed.count(trace));
        planned.upto = Some(page.next.clone().unwrap_or_else(Mark::end));
        planned
    }

    /// The state in which a page of [`Stage::Rest`] is counted, and is to be removed; `last` is its last record, or
    /// `None` if it has all that is left. [`crate::archive::Erasures::rest`] answers both.
    #[must_use]
    pub fn planned_rest(&self, rest: &Removed, last: Option<u64>) -> Self {
        let mut planned = self.clone();
        planned.removed.count_rest(rest);
        planned.upto = Some(last.map_or_else(Mark::end, |seq| Mark::of([seq, 0, 0])));
        planned
    }

    /// Whether a trace belongs to the page that is planned: one behind its end is for a later page, which counts it.
    pub fn is_planned(&self, mark: &Mark) -> bool {
        self.upto.as_ref().is_some_and(|upto| mark <= upto)
    }

    /// The state behind the planned page, once that is carried out at `now` (Unix ms): the next page, the next stage,
    /// or the end.
    #[must_use]
    pub fn carried_out(&self, now: Millis) -> Self {
        let mut done = Self { upto: None, ..self.clone() };
        match &self.upto {
            Some(upto) if *upto < Mark::end() => done.after = Some(upto.clone()),
            Some(_) => {
                done.after = None;
                match self.stage.next() {
                    Some(next) => done.stage = next,
                    None => done.finished_at = Some(now),
                }
            }
            None => {}
        }
        done
    }
}

/// An erasure of a user, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// Its number, ascending in the order of acceptance.
    pub id: u64,
    /// The user to be erased.
    pub user: UserNo,
    /// When it was accepted, in Unix ms.
    pub accepted_at: Millis,
    /// How far it has come.
    pub state: State,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(n: u64) -> Mark {
        Mark::of([n, 0, 0])
    }

    fn page(items: &[u64], next: Option<u64>) -> Traces {
        let item = |id: &u64| (mark(*id), Trace::Item { id: ItemId(*id), lives: true, direct: false });
        Traces { found: items.iter().map(item).collect(), next: next.map(mark) }
    }

    #[test]
    fn marks_order_as_their_numbers_do_and_lie_before_the_end() {
        let keys = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, u64::MAX], [u64::MAX; 3]];
        assert!(keys.map(Mark::of).is_sorted());
        for key in keys {
            assert_eq!(Mark::of(key).numbers(), Some(key));
            assert!(Mark::of(key) < Mark::end());
        }
        assert_eq!(Mark("post:7".into()).numbers(), None);
        assert!(Mark("\u{10fffe}".into()) < Mark::end());
    }

    #[test]
    fn a_page_is_counted_once_and_then_carried_out_up_to_its_end() {
        let planned = State::default().planned(&page(&[1, 2, 3], Some(5)));
        assert_eq!((planned.removed.items, planned.is_finished()), (3, false));
        assert!(planned.is_planned(&mark(3)) && planned.is_planned(&mark(5)) && !planned.is_planned(&mark(6)));
        assert!(!State::default().is_planned(&mark(0)), "nothing is planned");
        let done = planned.carried_out(9);
        assert_eq!((done.stage, done.after.clone(), done.upto.clone()), (Stage::Items, Some(mark(5)), None));
        let last = done.planned(&page(&[7], None));
        assert!(last.is_planned(&mark(u64::MAX)));
        let next = last.carried_out(9);
        assert_eq!((next.stage, next.after, next.upto, next.removed.items), (Stage::Lines, None, None, 4));
    }

    #[test]
    fn behind_the_last_stage_it_is_finished_with_the_time_and_stays_so() {
        let mut state = State::default();
        for stage in Stage::ALL {
            assert_eq!(state.stage, stage);
            state = match stage {
                Stage::Rest => state.planned_rest(&Removed { seen: 2, items: 7, ..Removed::default() }, None),
                _ => state.planned(&Traces::default()),
            };
            assert_eq!(State::stored(&state.text()).unwrap(), state, "it comes back from where it is stored");
            state = state.carried_out(9);
        }
        assert_eq!((state.finished_at, state.removed.seen, state.removed.items), (Some(9), 2, 0));
        assert_eq!(state.carried_out(10), state);
    }

    #[test]
    fn what_was_gone_before_is_not_counted_as_removed() {
        let mut removed = Removed::default();
        removed.count(&Trace::Item { id: ItemId(1), lives: false, direct: false });
        removed.count(&Trace::Comment { item: ItemId(1), id: ItemId(2), lives: false });
        removed.count(&Trace::ForeignId("k".into()));
        assert_eq!(removed, Removed::default());
        let like = |kind: &str| (kind.parse().unwrap(), 1);
        removed.count(&Trace::Reactions { item: ItemId(1), kinds: vec![like("like"), like("sad")] });
        removed.count(&Trace::Item { id: ItemId(1), lives: true, direct: true });
        assert_eq!((removed.reactions, removed.direct_items, removed.items), (2, 1, 0));
    }
}
