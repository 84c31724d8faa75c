//! The settings of notifications: about which deeds users are notified, and by items of which kinds.

use compact_str::CompactString;
use feedgate_common::feed::Feeds;
use feedgate_common::named::NamedFeeds;
use feedgate_common::notify::{Rules, SORTS, check_kind};
use serde::{Deserialize, Serialize};

/// The kind of the items that tell of each sort of deed. If a sort has no kind, nobody is told of such deeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Notify {
    /// Tells the author of an item of reactions to it.
    pub(crate) reaction: CompactString,
    /// Tells the author of an item of comments on it.
    pub(crate) comment: CompactString,
    /// Tells the author of a comment of answers to it.
    pub(crate) reply: CompactString,
    /// Tells the author of an item of its reposts.
    pub(crate) repost: CompactString,
    /// Tells a user of followers.
    pub(crate) follow: CompactString,
    /// Tells a user of requests to follow it.
    pub(crate) request: CompactString,
    /// Tells a user that a request to follow was accepted.
    pub(crate) accept: CompactString,
    /// Tells a user of items and comments that mention it.
    pub(crate) mention: CompactString,
    /// The sorts whose notifications are merged into one line until the user has seen them.
    pub(crate) grouped: Vec<CompactString>,
}

impl Default for Notify {
    fn default() -> Self {
        let [reaction, comment, reply, repost, follow, request, accept, mention] =
            [const { CompactString::const_new("") }; 8];
        // Notifications of these sorts say little more than who did the deed, so a reader misses nothing in a count.
        let grouped = ["reaction", "repost", "follow"].map(CompactString::from).to_vec();
        Self { reaction, comment, reply, repost, follow, request, accept, mention, grouped }
    }
}

impl Notify {
    fn kind(&self, sort: &str) -> Option<&CompactString> {
        let Self { reaction, comment, reply, repost, follow, request, accept, mention, .. } = self;
        let place = SORTS.iter().position(|known| *known == sort)?;
        let kinds = [reaction, comment, reply, repost, follow, request, accept, mention];
        Some(kinds[place]).filter(|kind| !kind.is_empty())
    }

    /// What is wrong with each value, with what would be right.
    pub(super) fn problems(&self) -> impl Iterator<Item = String> {
        let unknown = self.grouped.iter().filter(|sort| !SORTS.contains(&sort.as_str()));
        let unknown = unknown.map(|sort| format!("notify.grouped must name some of {SORTS:?}, it names {sort:?}"));
        SORTS.into_iter().filter_map(|sort| check_kind(sort, self.kind(sort)?).err()).chain(unknown)
    }

    /// Lets the Archive of `feeds` tell users by these settings from now on.
    pub(crate) fn hold(&self, feeds: &Feeds) {
        feeds.archive().notify_by(self.rules(&feeds.named()).with_visible(feeds.visible()));
    }

    /// The rules by which users are notified. Each kind goes to the feed of `feeds` that claims it.
    fn rules(&self, feeds: &NamedFeeds) -> Rules {
        let grouped = |sort: &str| self.grouped.iter().any(|named| named == sort);
        Rules::new(|sort| self.kind(sort), |kind| feeds.of_kind(Some(kind)), grouped)
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::FeedId;
    use feedgate_common::named::NamedFeed;
    use feedgate_common::notify::Way;

    use super::*;

    #[test]
    fn a_sort_with_a_kind_goes_to_the_feed_of_the_kind_and_one_without_to_none() {
        let feed =
            NamedFeed { id: FeedId(3), name: "n".into(), kinds: vec!["like".into()], ranked: false, cap: 9, ttl: None };
        let feeds = NamedFeeds::new(vec![feed]).unwrap();
        let notify = Notify {
            reaction: "like".into(),
            follow: "follower".into(),
            grouped: vec!["reaction".into()],
            ..Notify::default()
        };
        let way = |kind: &str, feed, grouped| Some(Way { kind: kind.into(), feed: FeedId(feed), grouped });
        let wanted = Rules { reaction: way("like", 3, true), follow: way("follower", 0, false), ..Rules::default() };
        assert_eq!(notify.rules(&feeds), wanted);
        assert!(Notify::default().rules(&feeds).is_empty(), "nobody is told unless it is asked for");
    }

    #[test]
    fn s6_sorts_that_say_only_who_did_it_are_grouped_and_an_unknown_one_is_named() {
        assert_eq!(Notify::default().grouped, ["reaction", "repost", "follow"]);
        let notify = Notify { grouped: vec!["reply".into(), "likes".into()], ..Notify::default() };
        let problems: Vec<_> = notify.problems().collect();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("notify.grouped must name some of [\"reaction\", "), "{problems:?}");
        assert!(problems[0].ends_with("it names \"likes\""), "{problems:?}");
    }

    #[test]
    fn a_kind_that_no_item_may_have_is_named() {
        let notify = Notify { reply: "a\n".into(), repost: "x".repeat(65).into(), ..Notify::default() };
        let problems: Vec<_> = notify.problems().collect();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("notify.reply must be a kind of 1 to 64 characters"), "{problems:?}");
    }
}
