//! Why a reader sees an item, or does not see it: the rules of feeds, one after another, over what is stored. Pure.
//!
//! ```text
//!   item ▶ audience or edge, shield, past ▶ age ▶ door, watermark ▶ log or floor
//!                     └─ a rule that does not hold: the item is hidden         └─ not there yet: it waits
//! ```
//!
//! Every finding is a sentence for people. The first finding that does not hold decides, and is the last one given.

use serde::Serialize;

use crate::archive::{Author, Held};
use crate::around::{Reach, Terms, shows_original};
use crate::graph::Shields;
use crate::rules::backfill_of;
use crate::{DirectSeq, Generation, Item, Millis, OutboxSeq, PullSeq, UserId};

/// What a reader's device shows of the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The item is in the feed.
    Shown,
    /// The item belongs to the feed, and its inbox has not taken it in yet.
    Waits,
    /// The item does not belong to the feed.
    Hidden,
}

/// A question that decides whether a reader sees an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Does the item live?
    Item,
    /// Is the item addressed to the reader, or is the reader in its audience? Not asked of an item for all followers.
    Audience,
    /// Does the reader follow the author?
    Edge,
    /// Is there a mute, a hide or a block between the two?
    Shield,
    /// If the item was published before the follow, is it one of the newest items that a follow brings?
    Past,
    /// Is the item young enough for its feed?
    Age,
    /// By which door does the item come, and has the door passed the item?
    Door,
    /// How far has the inbox taken in what its reader pulls, or what is addressed to its reader?
    Watermark,
    /// Does the log still hold the item, or is the item at or below the floor, where the Archive answers?
    Floor,
    /// Does a ranking of the reader, in which the item stands, show the item to the reader?
    Ranking,
}

/// The answer to one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that was asked.
    pub rule: Rule,
    /// Whether the item passes the rule.
    pub holds: bool,
    /// The reason, in a sentence.
    pub detail: String,
}

/// The door of the item, and how far the door has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Push has brought the author's records up to this one to the reader.
    Push(OutboxSeq),
    /// The inbox has pulled up to this number; `None` if there is no inbox.
    Pull(Option<PullSeq>),
    /// The inbox has taken in what is addressed to the reader up to this number; `None` if there is no inbox.
    Direct(Option<DirectSeq>),
}

/// Where the item is in the reader's inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the log, as the change with this sequence id.
    Log(u64),
    /// At or below the floor of the log.
    BelowFloor,
    /// Neither in the log nor below its floor.
    Nowhere,
    /// The reader has no inbox now; the next read builds it from the Archive.
    NoInbox,
}

/// What is stored of a reader and of an item that lives.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// The reader who is asked about.
    pub reader: &'a UserId,
    /// The item, as it is shown.
    pub item: &'a Item,
    /// For whom the item is, and whether the reader is among them.
    pub reach: Reach,
    /// Whether the Archive has the item in the reader's feed, however far the inbox has come.
    pub belongs: bool,
    /// What is stored of the edge, if anything.
    pub held: Option<Held>,
    /// What is known of the author.
    pub author: Author,
    /// How many items from before a follow the follow brings.
    pub backfill: usize,
    /// The name of the feed to which the item goes.
    pub feed: &'a str,
    /// Items published before this time are too old for the feed, in Unix ms; `None` if none is.
    pub expired_before: Option<Millis>,
    /// The door, and how far it has come.
    pub door: Door,
    /// Where the item is in the inbox of that feed.
    pub place: Place,
}

/// Says why the reader sees the item or not.
pub fn explain(evidence: &Evidence<'_>) -> (Verdict, Vec<Finding>) {
    let mut findings = vec![evidence.lives()];
    findings.extend(evidence.audience());
    if !evidence.item.direct {
        findings.extend(evidence.edge());
    }
    findings.push(evidence.age());
    if let Some(first) = findings.iter().position(|finding| !finding.holds) {
        findings.truncate(first + 1);
        return (Verdict::Hidden, findings);
    }
    findings.extend(evidence.arrival());
    let verdict = if findings.iter().all(|finding| finding.holds) { Verdict::Shown } else { Verdict::Waits };
    (verdict, findings)
}

/// Says whether a ranking of the reader in which the item stands, with this rank, shows it to the reader. What a
/// ranking shows, the reader may also read, whatever the feed of its kind shows.
pub fn explain_ranking(evidence: &Evidence<'_>, feed: &str, rank: i64) -> Finding {
    let Evidence { reader, item, reach, held, .. } = *evidence;
    let (follows, shields) = held.map_or((false, Shields(0)), |held| (held.follows, held.shields));
    let private = evidence.author.private;
    let terms = Terms { follows: follows && shields == Shields(0), shields, private };
    let holds = shows_original(*reader == item.author, terms, reach);
    let why = match reach {
        _ if holds => format!("and so {reader} may see it"),
        Reach::Named(false) | Reach::Narrowed(false) => "but a ranking opens nothing that is for some alone".to_owned(),
        _ if shields != Shields(0) => format!("but {}", shield(shields, reader, &item.author)),
        _ if private => format!("but {0} is private, and {reader} does not follow {0}", item.author),
        _ => format!("but {reader} does not follow {}", item.author),
    };
    found(Rule::Ranking, holds, format!("it stands in the ranking {feed:?} of {reader} with rank {rank}, {why}"))
}

fn found(rule: Rule, holds: bool, detail: String) -> Finding {
    Finding { rule, holds, detail }
}

impl Evidence<'_> {
    fn lives(&self) -> Finding {
        let (author, version) = (&self.item.author, self.item.version);
        found(
            Rule::Item,
            true,
            format!("{author} has published it to the feed {:?}; its version is {version}", self.feed),
        )
    }

    fn audience(&self) -> Option<Finding> {
        let reader = self.reader;
        let (holds, detail) = match self.reach {
            Reach::Followers => return None,
            Reach::Narrowed(true) => (true, format!("{reader} is in its audience")),
            Reach::Narrowed(false) => {
                (false, format!("it is for an audience of some followers, and {reader} is not in it"))
            }
            Reach::Named(_) if self.belongs => (true, format!("it is addressed to {reader}")),
            Reach::Named(_) => {
                (false, format!("it is for named readers alone, and {reader} was not one of them, or was blocked then"))
            }
        };
        Some(found(Rule::Audience, holds, detail))
    }

    /// The rules about the edge: the follow, the shields, and what was published before the follow.
    fn edge(&self) -> Vec<Finding> {
        let (reader, author) = (self.reader, &self.item.author);
        let own = reader == author;
        let everyone = self.author.everyone_since.is_some() && !own;
        let (follows, shields) = self.held.map_or((everyone, Shields(0)), |held| (held.follows, held.shields));
        let edge = match (follows, self.held) {
            (true, _) if own => format!("the own items of {author} stand in the feeds of {author}"),
            (false, _) if own => "own items stand in the feeds of their author only with own_posts = true".to_owned(),
            (true, Some(_)) => format!("{reader} follows {author}"),
            (true, None) => format!("everyone follows {author}"),
            (false, Some(held)) if held.asked => {
                format!("{reader} has asked to follow {author}, and has no answer yet")
            }
            (false, _) => format!("{reader} does not follow {author}"),
        };
        let everyone_since = self.author.everyone_since.unwrap_or(0);
        let (past, generation) = self.held.map_or((everyone_since, 0), |held| (held.past, held.generation));
        let shield = shield(shields, reader, author);
        vec![
            found(Rule::Edge, follows, edge),
            found(Rule::Shield, shields == Shields(0), shield),
            self.past(past, generation),
        ]
    }

    fn past(&self, past: OutboxSeq, generation: Generation) -> Finding {
        let (backfill, seq) = (backfill_of(generation, self.backfill), self.item.outbox_seq);
        let (holds, detail) = match (seq > past, self.belongs) {
            (true, _) if past == 0 => {
                (true, format!("it is record {seq} of the outbox, and the follow shows all from the first one on"))
            }
            (true, _) => {
                (true, format!("it is record {seq} of the outbox, and the follow stands behind record {past}"))
            }
            (false, true) => {
                (true, format!("it is older than the follow, and one of the {backfill} that a follow brings"))
            }
            (false, false) if backfill == 0 => {
                (false, "it is older than the follow, which brings nothing from before".to_owned())
            }
            (false, false) => {
                (false, format!("it is older than the follow, which brings only the newest {backfill} of before"))
            }
        };
        found(Rule::Past, holds, detail)
    }

    fn age(&self) -> Finding {
        let is_young = self.expired_before.is_none_or(|then| self.item.published_at >= then);
        let detail = if is_young { "is not too old" } else { "is older than its feed shows" };
        found(Rule::Age, is_young, format!("it {detail}"))
    }

    /// How the item comes to the inbox, and whether it is there.
    fn arrival(&self) -> Vec<Finding> {
        let is_there = self.place != Place::Nowhere;
        let (reader, author, seq) = (self.reader, &self.item.author, self.item.outbox_seq);
        let none = "there is no inbox now".to_owned();
        let upto = |what: &str, taken: Option<u64>| taken.map_or(none.clone(), |n| format!("{what} up to number {n}"));
        let mut findings = match self.door {
            Door::Push(done) => {
                vec![found(
                    Rule::Door,
                    is_there || done >= seq,
                    format!("push brings it: it is record {seq}, and push has come to {done}"),
                )]
            }
            Door::Pull(taken) => vec![
                found(Rule::Door, true, format!("{author} is a big account, so {reader} pulls it with the next read")),
                found(Rule::Watermark, is_there, upto("the inbox has pulled", taken)),
            ],
            Door::Direct(taken) => vec![
                found(Rule::Door, true, "it is addressed, so a worker brings it".to_owned()),
                found(Rule::Watermark, is_there, upto("the inbox has taken in what is addressed", taken)),
            ],
        };
        let place = match self.place {
            Place::Log(offset) => format!("it is change {offset} of the log"),
            Place::BelowFloor => "it is at or below the floor of the log, so pages take it from the Archive".to_owned(),
            Place::Nowhere => "the log does not have it yet".to_owned(),
            Place::NoInbox => {
                format!("{reader} has no inbox now; the next read builds it from the Archive, with the item")
            }
        };
        findings.push(found(Rule::Floor, is_there, place));
        findings
    }
}

/// The shields between two users, in words.
fn shield(shields: Shields, reader: &UserId, author: &UserId) -> String {
    let words = [
        (Shields::MUTED, format!("{reader} has muted {author}")),
        (Shields::HIDDEN, format!("{author} hides from {reader}")),
        (Shields::BLOCKED_BY_READER, format!("{reader} has blocked {author}")),
        (Shields::BLOCKED_BY_AUTHOR, format!("{author} has blocked {reader}")),
    ];
    let up: Vec<String> =
        words.into_iter().filter(|(shield, _)| shields.any_of(*shield)).map(|(_, words)| words).collect();
    if up.is_empty() { format!("no shield is up between {reader} and {author}") } else { up.join(", and ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UserNo;

    fn item(direct: bool) -> Item {
        let outbox_seq = if direct { 0 } else { 5 };
        Item { published_at: 1000, rank: 1000, direct, outbox_seq, ..Item::sample(7) }
    }

    const FOLLOW: Held =
        Held { author: UserNo(1), follows: true, asked: false, shields: Shields(0), generation: 1, past: 2, since: 1 };

    /// What decides about the item, and in which words, after `change` of evidence that shows it.
    fn decided(direct: bool, change: impl FnOnce(&mut Evidence<'_>)) -> (Verdict, Rule, String) {
        let (reader, item) = ("bob".parse().unwrap(), item(direct));
        let held = FOLLOW;
        let mut evidence = Evidence {
            reader: &reader,
            item: &item,
            reach: if direct { Reach::Named(true) } else { Reach::Followers },
            belongs: direct,
            held: Some(held),
            author: Author::default(),
            backfill: 100,
            feed: "feed",
            expired_before: None,
            door: Door::Push(9),
            place: Place::Log(3),
        };
        change(&mut evidence);
        let (verdict, findings) = explain(&evidence);
        let last = findings.iter().find(|finding| !finding.holds).or(findings.last()).unwrap();
        (verdict, last.rule, last.detail.clone())
    }

    #[test]
    fn the_first_rule_that_does_not_hold_decides() {
        use Verdict::{Hidden, Shown, Waits};
        let held = |evidence: &mut Evidence<'_>, change: fn(&mut Held)| change(evidence.held.as_mut().unwrap());
        let says = |(verdict, rule, detail): (Verdict, Rule, String), wanted, of, words: &str| {
            assert_eq!((verdict, rule), (wanted, of), "{detail}");
            assert!(detail.contains(words), "{detail}");
        };
        says(decided(false, |_| ()), Shown, Rule::Floor, "change 3");
        says(decided(false, |e| e.held = None), Hidden, Rule::Edge, "bob does not follow ann");
        says(decided(false, |e| held(e, |h| h.follows = false)), Hidden, Rule::Edge, "does not follow");
        says(decided(false, |e| held(e, |h| h.shields = Shields::MUTED)), Hidden, Rule::Shield, "bob has muted ann");
        says(decided(false, |e| held(e, |h| h.shields = Shields::HIDDEN)), Hidden, Rule::Shield, "ann hides from bob");
        says(decided(false, |e| held(e, |h| h.past = 5)), Hidden, Rule::Past, "newest 100");
        says(decided(false, |e| held(e, |h| h.past = 0)), Shown, Rule::Floor, "change 3");
        says(decided(false, |e| e.expired_before = Some(1001)), Hidden, Rule::Age, "older");
        says(decided(false, |e| (e.door, e.place) = (Door::Push(4), Place::Nowhere)), Waits, Rule::Door, "come to 4");
        says(
            decided(false, |e| (e.door, e.place) = (Door::Pull(Some(8)), Place::Nowhere)),
            Waits,
            Rule::Watermark,
            "8",
        );
        says(decided(false, |e| e.place = Place::BelowFloor), Shown, Rule::Floor, "Archive");
        says(decided(false, |e| e.place = Place::NoInbox), Shown, Rule::Floor, "next read");
        says(decided(true, |e| e.held = None), Shown, Rule::Floor, "change 3");
        let narrowed = |has| decided(false, move |e| e.reach = Reach::Narrowed(has));
        says(narrowed(true), Shown, Rule::Floor, "change 3");
        says(narrowed(false), Hidden, Rule::Audience, "bob is not in it");
        says(decided(true, |e| e.belongs = false), Hidden, Rule::Audience, "was not one of them");
    }

    #[test]
    fn whom_everyone_follows_needs_no_edge_and_shows_nothing_of_before() {
        let everyone = |since| move |e: &mut Evidence<'_>| (e.held, e.author.everyone_since) = (None, Some(since));
        assert_eq!(decided(false, everyone(4)).0, Verdict::Shown);
        let (_, rule, detail) = decided(false, everyone(5));
        assert_eq!((rule, &*detail), (Rule::Past, "it is older than the follow, which brings nothing from before"));
    }

    #[test]
    fn s11_of_each_ranking_it_is_said_whether_it_opens_the_item() {
        let (reader, item) = ("bob".parse().unwrap(), item(false));
        let held = |follows, shields| Held { follows, shields, ..FOLLOW };
        let ranked = |held, reach| {
            let evidence = Evidence {
                reader: &reader,
                item: &item,
                reach,
                belongs: false,
                held,
                author: Author::default(),
                backfill: 100,
                feed: "feed",
                expired_before: None,
                door: Door::Push(9),
                place: Place::Nowhere,
            };
            let Finding { rule, holds, detail } = explain_ranking(&evidence, "hot", 7);
            assert!(
                rule == Rule::Ranking && detail.starts_with("it stands in the ranking \"hot\" of bob with rank 7, ")
            );
            (holds, detail.split(", ").nth(1).unwrap().to_owned())
        };
        let yes = (true, "and so bob may see it".to_owned());
        assert_eq!(ranked(None, Reach::Followers), yes, "nobody has to follow");
        assert_eq!(ranked(Some(held(true, Shields(0))), Reach::Narrowed(true)), yes);
        let no = |why: &str| (false, why.to_owned());
        assert_eq!(ranked(Some(held(true, Shields::MUTED)), Reach::Followers), no("but bob has muted ann"));
        let some = no("but a ranking opens nothing that is for some alone");
        assert_eq!(
            [Reach::Named(false), Reach::Narrowed(false)].map(|reach| ranked(None, reach)),
            [some.clone(), some]
        );
        assert_eq!(ranked(None, Reach::Narrowed(true)), no("but bob does not follow ann"));
    }
}
