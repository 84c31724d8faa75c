//! Named feeds: which kinds of items go to each, and how much of it is shown.
//!
//! ```text
//!   item.kind ──of_kind──▶ FeedId ──▶ the record, and so the inbox (reader, feed) that it reaches
//! ```
//!
//! An item goes to the feed that claims its kind when it is accepted, and stays there whatever is configured later.
//! Inside, feeds have numbers, which the Archive gave to their names. A name keeps its number for ever, so a feed that
//! is removed from the configuration and put back later is the same feed.

use compact_str::CompactString;

use crate::inboxes::KEEP;
use crate::{FeedId, Millis};

/// How many named feeds there may be. Each follow step brings items to all of them.
pub const NAMED_MAX: usize = 16;

/// The greatest number of items that a named feed may show.
pub const CAP_MAX: usize = KEEP;

/// How many characters the kind of an item may have.
pub const KIND_MAX: usize = 64;

/// A feed besides [`FeedId::MAIN`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFeed {
    /// The number that the Archive gave to `name`.
    pub id: FeedId,
    /// The name that clients use, as a channel and as `?name=`.
    pub name: CompactString,
    /// The kinds of items that go to this feed, and to no other.
    pub kinds: Vec<CompactString>,
    /// Whether this feed holds the ranking that a recommender gives to each reader. Then no kind of item goes to it.
    pub ranked: bool,
    /// How many of the newest items are shown, 1 to [`CAP_MAX`].
    pub cap: usize,
    /// How many ms after their publication items are shown; `None` means for ever.
    pub ttl: Option<Millis>,
}

/// All named feeds that are configured. No two have a name, a number or a kind in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedFeeds(Vec<NamedFeed>);

impl NamedFeeds {
    /// Checks these feeds and makes the configuration of them.
    ///
    /// # Errors
    /// A sentence with what is wrong and what would be right: a name or a kind that occurs twice, a name that is
    /// reserved or not valid, a feed without kinds that is not ranked, a ranked one with kinds, a cap out of bounds, or
    /// too many feeds.
    pub fn new(feeds: Vec<NamedFeed>) -> Result<Self, String> {
        if feeds.len() > NAMED_MAX {
            return Err(format!("there may be at most {NAMED_MAX} named feeds, there are {}", feeds.len()));
        }
        let mut claimed: Vec<(&CompactString, &CompactString)> = vec![];
        for (at, NamedFeed { name, kinds, cap, ranked, .. }) in feeds.iter().enumerate() {
            if !is_name(name) {
                return Err(format!("a feed's name must be 1 to 64 of A-Za-z0-9_-, it is {name:?}"));
            }
            if name == FeedId::MAIN_NAME || feeds[..at].iter().any(|other| other.name == name) {
                return Err(format!("there is another feed named {name:?}; choose another name"));
            }
            if kinds.is_empty() && !ranked {
                return Err(format!(
                    "feeds.{name}.kinds must name at least one kind of item, or feeds.{name}.ranked must be true"
                ));
            }
            if !kinds.is_empty() && *ranked {
                return Err(format!("feeds.{name}.ranked: a ranked feed holds rankings alone; leave its kinds out"));
            }
            if !(1..=CAP_MAX).contains(cap) {
                return Err(format!("feeds.{name}.cap must be 1 to {CAP_MAX}, it is {cap}"));
            }
            for kind in kinds {
                if !(1..=KIND_MAX).contains(&kind.chars().count()) || kind.contains(char::is_control) {
                    return Err(format!(
                        "feeds.{name}.kinds: a kind has 1 to {KIND_MAX} characters, none of them a control character, not {kind:?}"
                    ));
                }
                if let Some((_, other)) = claimed.iter().find(|(taken, _)| *taken == kind) {
                    return Err(format!("feeds.{name}.kinds: {kind:?} goes to feed {other:?} already"));
                }
                claimed.push((kind, name));
            }
        }
        Ok(Self(feeds))
    }

    /// The feed to which an item of this kind goes.
    pub fn of_kind(&self, kind: Option<&str>) -> FeedId {
        let claims = |feed: &&NamedFeed| kind.is_some_and(|kind| feed.kinds.iter().any(|claimed| claimed == kind));
        self.0.iter().find(claims).map_or(FeedId::MAIN, |feed| feed.id)
    }

    /// One of the kinds of items that go to this feed; `None` if the feed claims no kind.
    pub fn a_kind(&self, id: FeedId) -> Option<&str> {
        self.get(id)?.kinds.first().map(CompactString::as_str)
    }

    /// Whether a feed holds a ranking, and nothing else.
    pub fn is_ranked(&self, id: FeedId) -> bool {
        self.get(id).is_some_and(|feed| feed.ranked)
    }

    /// The feeds that hold rankings.
    pub fn ranked(&self) -> impl Iterator<Item = &NamedFeed> {
        self.0.iter().filter(|feed| feed.ranked)
    }

    /// The names of all ranked feeds, quoted, for an error.
    pub fn names_of_ranked(&self) -> String {
        self.ranked().map(|feed| format!("{:?}", feed.name)).collect::<Vec<_>>().join(", ")
    }

    /// The feed with this name, if there is one.
    pub fn by_name(&self, name: &str) -> Option<FeedId> {
        if name == FeedId::MAIN_NAME {
            return Some(FeedId::MAIN);
        }
        self.0.iter().find(|feed| feed.name == name).map(|feed| feed.id)
    }

    /// The name of a feed; `None` if it is not configured.
    pub fn name(&self, id: FeedId) -> Option<&str> {
        if id == FeedId::MAIN {
            return Some(FeedId::MAIN_NAME);
        }
        self.get(id).map(|feed| feed.name.as_str())
    }

    /// The names of all feeds that clients may use, quoted, for an error.
    pub fn names(&self) -> String {
        let names = std::iter::once(FeedId::MAIN_NAME).chain(self.0.iter().map(|feed| feed.name.as_str()));
        names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
    }

    /// All feeds that are configured, without [`FeedId::MAIN`].
    pub fn iter(&self) -> impl Iterator<Item = &NamedFeed> {
        self.0.iter()
    }

    /// How many of the newest items of a feed are shown; `None` means all.
    pub fn cap(&self, id: FeedId) -> Option<usize> {
        self.get(id).map(|feed| feed.cap)
    }

    /// The time, in Unix ms, such that items published before it are not shown at `now`; `None` if all items are shown.
    pub fn expired_before(&self, id: FeedId, now: Millis) -> Option<Millis> {
        self.get(id)?.ttl.map(|ttl| now.saturating_sub(ttl))
    }

    fn get(&self, id: FeedId) -> Option<&NamedFeed> {
        self.0.iter().find(|feed| feed.id == id)
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(id: u16, name: &str, kinds: &[&str]) -> NamedFeed {
        let kinds = kinds.iter().map(|&kind| kind.into()).collect();
        NamedFeed { id: FeedId(id), name: name.into(), kinds, ranked: false, cap: 100, ttl: Some(1000) }
    }

    #[test]
    fn a_kind_goes_to_the_feed_that_claims_it_and_every_other_to_the_main_one() {
        let feeds =
            NamedFeeds::new(vec![feed(2, "notifications", &["like", "comment"]), feed(1, "stories", &["story"])]);
        let feeds = feeds.unwrap();
        let of = |kind| feeds.of_kind(kind).0;
        assert_eq!([feeds.a_kind(FeedId(2)), feeds.a_kind(FeedId::MAIN)], [Some("like"), None]);
        assert_eq!([of(Some("like")), of(Some("story")), of(Some("post")), of(None)], [2, 1, 0, 0]);
        assert_eq!(
            [feeds.by_name("feed"), feeds.by_name("stories"), feeds.by_name("x")].map(|id| id.map(|id| id.0)),
            [Some(0), Some(1), None]
        );
        assert_eq!(feeds.names(), r#""feed", "notifications", "stories""#);
        assert_eq!((feeds.cap(FeedId::MAIN), feeds.cap(FeedId(1))), (None, Some(100)));
        assert_eq!(
            (feeds.expired_before(FeedId::MAIN, 5000), feeds.expired_before(FeedId(2), 5000)),
            (None, Some(4000))
        );
    }

    #[test]
    fn s11_a_ranked_feed_claims_no_kind() {
        let ranked = NamedFeed { ranked: true, ..feed(2, "for-you", &[]) };
        let feeds = NamedFeeds::new(vec![feed(1, "likes", &["like"]), ranked]).unwrap();
        assert_eq!([FeedId::MAIN, FeedId(1), FeedId(2)].map(|id| feeds.is_ranked(id)), [false, false, true]);
        assert_eq!((feeds.names_of_ranked().as_str(), feeds.a_kind(FeedId(2))), ("\"for-you\"", None));
        assert_eq!(feeds.of_kind(Some("for-you")), FeedId::MAIN);
    }

    #[test]
    fn what_is_wrong_with_a_feed_is_named_with_what_would_be_right() {
        let ranked = |kinds| NamedFeed { ranked: true, ..feed(1, "a", kinds) };
        let of_cap = |cap| NamedFeed { cap, ..feed(1, "a", &["x"]) };
        let cases = [
            (vec![feed(1, "feed", &["x"])], "another feed named \"feed\""),
            (vec![feed(1, "a", &["x"]), feed(2, "a", &["y"])], "another feed named \"a\""),
            (vec![feed(1, "a b", &["x"])], "1 to 64 of A-Za-z0-9_-, it is \"a b\""),
            (
                vec![feed(1, "a", &[])],
                "feeds.a.kinds must name at least one kind of item, or feeds.a.ranked must be true",
            ),
            (vec![ranked(&["x"])], "feeds.a.ranked: a ranked feed holds rankings alone; leave its kinds out"),
            (
                vec![feed(1, "a", &["x", ""])],
                "feeds.a.kinds: a kind has 1 to 64 characters, none of them a control character, not \"\"",
            ),
            (vec![feed(1, "a", &["x\n"])], "none of them a control character, not \"x\\n\""),
            (vec![of_cap(0)], "feeds.a.cap must be 1 to 1000, it is 0"),
            (vec![of_cap(1001)], "feeds.a.cap must be 1 to 1000, it is 1001"),
            (vec![feed(1, "a", &["x"]), feed(2, "b", &["x"])], "feeds.b.kinds: \"x\" goes to feed \"a\" already"),
            ((0..17).map(|n| feed(n, &format!("a{n}"), &[&format!("k{n}")])).collect(), "at most 16"),
        ];
        for (feeds, wrong) in cases {
            let said = NamedFeeds::new(feeds).unwrap_err();
            assert!(said.contains(wrong), "{said}");
        }
    }
}
