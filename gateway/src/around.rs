//! Items with what stands around them, as clients see them: `counts` and `own` beside the fields of the item, where
//! there are any, and `ref_item` or `ref_gone` at a repost.
//!
//! Invariants:
//! - All items of an answer are joined by one read of the store for originals, if there are reposts, and one for
//!   counts, however many they are; originals of more than [`FETCH`] items are read in pieces.
//! - An item around which nothing stands is written as the item alone, byte by byte.
//! - An original is shown without an original of its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use feedgate_common::archive::{Items, People, Reactions};
use feedgate_common::around::{
    Around, Comment, KIND_MAX_BYTES, KINDS_MAX, Onlooker, Original, ReactionKind, originals_of,
};
use feedgate_common::feed::{Cards, FETCH, people_of};
use feedgate_common::{Body, Item, ItemId, Millis, UserId, error};
use serde::{Serialize, Serializer};

/// The most bytes in JSON of what stands around one item: each kind may be in `counts` and in `own`, and each of its
/// bytes may be escaped as two; and the numbers of comments and of reposts.
pub(crate) const AROUND_MAX: usize = KINDS_MAX * (2 * (2 * KIND_MAX_BYTES + 3) + 21) + 2 * 40;

/// An item with what stands around it, as one viewer sees it.
#[derive(Debug)]
pub(crate) struct Shown {
    item: Arc<Item>,
    around: Around,
    /// What a repost shows of its original; `None` for any other item, and for an original.
    original: Option<ShownOriginal>,
    /// Whether the item stands before all others on the profile of its author.
    pinned: bool,
}

#[derive(Debug)]
enum ShownOriginal {
    Here(Box<Shown>),
    Gone,
}

impl Shown {
    /// The item without what stands around it.
    pub(crate) fn item(&self) -> &Item {
        &self.item
    }

    /// Marks the item as pinned: it stands before all others on this page.
    pub(crate) fn pin(&mut self) {
        self.pinned = true;
    }

    /// The original that is shown with the item, if there is one.
    fn original(&self) -> Option<&Shown> {
        match &self.original {
            Some(ShownOriginal::Here(original)) => Some(original),
            Some(ShownOriginal::Gone) | None => None,
        }
    }

    /// About how many bytes the item takes in an answer.
    fn bytes(&self) -> usize {
        let own = self.around.own.iter().map(ReactionKind::as_str);
        let names = self.around.named().map(|(name, _)| name).chain(own);
        self.item.bytes() + names.map(|name| name.len() + 24).sum::<usize>() + self.original().map_or(0, Self::bytes)
    }
}

/// Joins items with what stands around them, in their order: all of them, or the first ones that fit into an answer
/// that ends once it holds `cut` bytes; at least one, if there is one. Makes no read if there are no items. An onlooker
/// who sees only what some users do is not told how many comments and reposts there are.
pub(crate) async fn join(
    archive: &(impl Items + Reactions + ?Sized),
    onlooker: Onlooker,
    mut items: Vec<Arc<Item>>,
    cut: usize,
) -> error::Result<Vec<Shown>> {
    if items.is_empty() {
        return Ok(vec![]);
    }
    let (mut originals, mut read, mut bytes) = (HashMap::new(), 0, 0);
    for piece in items.chunks(FETCH) {
        if bytes >= cut {
            break;
        }
        let found = originals_of(archive, piece, onlooker.viewer).await?;
        let shown = piece.iter().filter_map(|item| here(found.get(&item.repost_of?)));
        bytes += piece.iter().chain(shown).map(|item| item.bytes()).sum::<usize>();
        read += piece.len();
        originals.extend(found);
    }
    items.truncate(read);
    let shown = items.iter().chain(originals.values().filter_map(|original| here(Some(original))));
    let ids = Vec::from_iter(shown.map(|item| item.id).collect::<BTreeSet<ItemId>>());
    let around = archive.around(&ids, onlooker).await?;
    let around = around.into_iter().map(|around| told_to(onlooker, around));
    let around: HashMap<ItemId, Around> = ids.into_iter().zip(around).collect();
    let show = |item: Arc<Item>, original| {
        let around = around.get(&item.id).cloned().unwrap_or_default();
        Shown { item, around, original, pinned: false }
    };
    let original = |of: ItemId| match here(originals.get(&of)) {
        Some(item) => ShownOriginal::Here(Box::new(show(item.clone(), None))),
        None => ShownOriginal::Gone,
    };
    let mut shown: Vec<Shown> = items
        .into_iter()
        .map(|item| {
            let original = item.repost_of.map(original);
            show(item, original)
        })
        .collect();
    shown.truncate(fits(&shown, cut));
    Ok(shown)
}

/// The part of what stands around an item that this onlooker is told. The numbers of comments and reposts are told only
/// to an onlooker who sees what all users do.
pub(crate) fn told_to(onlooker: Onlooker, around: Around) -> Around {
    if onlooker.sees_some() { around.of_some() } else { around }
}

/// The item of an original that is shown.
fn here(original: Option<&Original>) -> Option<&Arc<Item>> {
    match original {
        Some(Original::Shown(item)) => Some(item),
        Some(Original::Gone) | None => None,
    }
}

/// The names and avatars of the authors of `items` and of their originals: one read of the store, and none if there are
/// no items.
pub(crate) async fn authors_of(people: &(impl People + ?Sized), items: &[Shown]) -> error::Result<Cards> {
    let all = items.iter().flat_map(|shown| [Some(shown), shown.original()]).flatten();
    people_of(people, &Vec::from_iter(all.map(|shown| shown.item.clone()))).await
}

/// The names and avatars of the authors of the originals in `items`: one read of the store, and none if there are no
/// originals.
pub(crate) async fn authors_of_originals(people: &(impl People + ?Sized), items: &[Shown]) -> error::Result<Cards> {
    let originals: Vec<Arc<Item>> = items.iter().filter_map(|shown| Some(shown.original()?.item.clone())).collect();
    people_of(people, &originals).await
}

/// How many of the first items fit into an answer that ends once it holds `cut` bytes; at least one, if there is one.
fn fits(items: &[Shown], cut: usize) -> usize {
    let mut bytes = 0;
    let begun = |item: &&Shown| {
        let begins = bytes < cut;
        bytes += item.bytes();
        begins
    };
    items.iter().take_while(begun).count()
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.around.is_empty() && self.original.is_none() && !self.pinned {
            return self.item.serialize(s);
        }
        let Self { item, around, original, pinned } = self;
        let (pinned, ref_gone) = (*pinned, matches!(original, Some(ShownOriginal::Gone)));
        let (counts, own) = (Counts(around), &around.own[..]);
        Joined { item, counts, own, ref_item: self.original(), ref_gone, pinned }.serialize(s)
    }
}

/// An item around which something stands, or that is pinned.
#[derive(Serialize)]
struct Joined<'a> {
    #[serde(flatten)]
    item: &'a Item,
    #[serde(skip_serializing_if = "Counts::is_empty")]
    counts: Counts<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    own: &'a [ReactionKind],
    #[serde(skip_serializing_if = "Option::is_none")]
    ref_item: Option<&'a Shown>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ref_gone: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pinned: bool,
}

/// Counts of reactions by kind, and the numbers of comments and of reposts, as an object:
/// `{"like": 3, "comments": 2, "reposts": 1}`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts<'a>(pub(crate) &'a Around);

impl Counts<'_> {
    fn is_empty(&self) -> bool {
        self.0.named().next().is_none()
    }
}

impl Serialize for Counts<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.named())
    }
}

/// A comment as clients see it. A deleted comment that has replies is shown as a placeholder, which names nobody.
#[derive(Debug, Serialize)]
pub(crate) struct CommentJson<'a> {
    id: ItemId,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a Body>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    mentions: &'a [UserId],
    created_at: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
}

impl<'a> From<&'a Comment> for CommentJson<'a> {
    fn from(comment: &'a Comment) -> Self {
        let body = comment.body.as_ref();
        Self {
            id: comment.place.id,
            author: body.map(|_| &comment.author),
            body,
            mentions: &comment.mentions,
            created_at: comment.place.at,
            reply_to: comment.reply_to,
            version: body.map(|_| comment.version),
            deleted: body.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use feedgate_common::around::{Place, Reacted, Reaction, Unreacted, Viewer, Visible};
    use feedgate_common::error::Result;
    use feedgate_common::{DisplayKey, FeedId, Replaced, UserNo};

    use super::*;

    /// A store that counts its reads. In it users 1 and 2 like every item with an even id, and each item with an id of
    /// 1000 or more lives.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    #[async_trait]
    impl Items for Counting {
        async fn items(&self, _: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
            unreachable!("items are in hand")
        }
        async fn originals(&self, ids: &[ItemId], _: Viewer) -> Result<Vec<Option<Arc<Item>>>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(ids.iter().map(|id| (id.0 >= 1000).then(|| item(id.0))).collect())
        }
        async fn reposts(&self, _: ItemId, _: Option<ItemId>, _: usize) -> Result<Vec<ItemId>> {
            unreachable!("no reposts are asked for")
        }
        async fn versions(&self, _: ItemId) -> Result<Vec<Replaced>> {
            unreachable!("no versions are asked for")
        }
        async fn published(&self, _: &[ItemId]) -> Result<Vec<Option<(UserNo, Millis)>>> {
            unreachable!("no time is asked for")
        }
        async fn item_by_foreign_id(&self, _: &str) -> Result<Option<ItemId>> {
            unreachable!("no key is asked for")
        }
        async fn profile(&self, _: UserNo, _: FeedId, _: Option<DisplayKey>, _: usize) -> Result<Vec<DisplayKey>> {
            unreachable!("no profile is asked for")
        }
        async fn sent(&self, _: UserNo, _: Option<DisplayKey>, _: usize) -> Result<Vec<DisplayKey>> {
            unreachable!("nothing that was sent is asked for")
        }
        async fn addressed(&self, _: UserNo, _: &[ItemId]) -> Result<Vec<ItemId>> {
            unreachable!("what a viewer may see is the rule of originals")
        }
    }

    #[async_trait]
    impl Reactions for Counting {
        async fn react(&self, _: &[Reaction]) -> Result<Vec<std::result::Result<bool, Unreacted>>> {
            unreachable!("nothing is written")
        }
        async fn unreact(&self, _: &[Reaction]) -> Result<Vec<std::result::Result<bool, Unreacted>>> {
            unreachable!("nothing is written")
        }
        async fn around(&self, items: &[ItemId], onlooker: Onlooker) -> Result<Vec<Around>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            let like = || "like".parse::<ReactionKind>().unwrap();
            let own = if onlooker.viewer.user() == Some(UserNo(1)) { vec![like()] } else { vec![] };
            let liked = Around { counts: vec![(like(), 2)], own, ..Around::default() };
            Ok(items.iter().map(|id| if id.0 % 2 == 0 { liked.clone() } else { Around::default() }).collect())
        }
        async fn reactions(
            &self,
            _: ItemId,
            _: Onlooker,
            _: Option<&ReactionKind>,
            _: Option<&Place>,
            _: usize,
        ) -> Result<Vec<Reacted>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(vec![])
        }
        async fn reacted_item(&self, _: Option<ItemId>) -> Result<Option<ItemId>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(None)
        }
    }

    fn item(id: u64) -> Arc<Item> {
        Arc::new(Item {
            id: ItemId(id),
            author: "ann".parse().unwrap(),
            author_no: UserNo(7),
            kind: None,
            foreign_id: None,
            repost_of: None,
            mentions: vec![],
            body: Body::parse(r#"{"b":[1, 2]}"#.to_owned()).unwrap(),
            published_at: 1,
            rank: 1,
            direct: false,
            narrowed: false,
            version: 1,
            outbox_seq: 1,
        })
    }

    const BOB: Onlooker = Onlooker { viewer: Viewer::User(Some(UserNo(1))), visible: Visible::All };

    fn repost(id: u64, of: u64) -> Arc<Item> {
        Arc::new(Item { repost_of: Some(ItemId(of)), ..Item::clone(&item(id)) })
    }

    #[tokio::test]
    async fn s8_twenty_reposts_are_joined_by_as_many_reads_as_one() {
        for count in [1, 20, FETCH as u64] {
            let store = Counting::default();
            let items = (1..=count).map(|id| repost(id, 1000 + id)).collect();
            assert_eq!(join(&store, BOB, items, usize::MAX).await.unwrap().len() as u64, count);
            assert_eq!(store.0.load(Ordering::SeqCst), 2, "one read for originals, and one for counts");
        }
        let store = Counting::default();
        // Nobody likes an item with an odd id, so all of them take the same number of bytes.
        let all = (1..=100).map(|nth| repost(2 * nth - 1, 999 + 2 * nth)).collect();
        let shown = join(&store, BOB, all, 3 * item(1).body.get().len()).await.unwrap();
        assert_eq!(shown.len(), 2, "an original counts as what it takes: two reposts have four bodies");
        assert_eq!(store.0.load(Ordering::SeqCst), 2, "no originals are read of what no longer fits");
    }

    #[tokio::test]
    async fn s8_a_repost_shows_its_original_with_its_counts_one_level_deep() {
        let store = Counting::default();
        let shown = join(&store, BOB, vec![repost(1, 1000), repost(3, 5)], usize::MAX).await.unwrap();
        let json = |at: usize| serde_json::to_value(&shown[at]).unwrap();
        let original = &json(0)["ref_item"];
        assert_eq!((&json(0)["ref"], &original["id"]), (&"1000".into(), &"1000".into()));
        assert_eq!((&original["counts"]["like"], &original["own"][0]), (&2.into(), &"like".into()));
        assert_eq!((json(0).get("ref_gone"), json(0).get("counts")), (None, None));
        assert_eq!((json(1).get("ref_item"), &json(1)["ref_gone"]), (None, &true.into()));
        let text = serde_json::to_string(&shown[0]).unwrap();
        assert_eq!(text.matches(r#""body":{"b":[1, 2]}"#).count(), 2, "both bodies are as they were published: {text}");
        let deeper = Shown { item: repost(1000, 1001), around: Around::default(), original: None, pinned: false };
        let deeper = serde_json::to_value(&deeper).unwrap();
        assert_eq!((&deeper["ref"], deeper.get("ref_item"), deeper.get("ref_gone")), (&"1001".into(), None, None));
    }

    #[tokio::test]
    async fn s2_twenty_items_are_joined_by_as_many_reads_as_one() {
        for count in [1, 20, 100] {
            let store = Counting::default();
            let shown = join(&store, BOB, (1..=count).map(item).collect(), usize::MAX).await.unwrap();
            assert_eq!((shown.len() as u64, store.0.load(Ordering::SeqCst)), (count, 1));
        }
        let store = Counting::default();
        assert!(join(&store, Onlooker::BACKEND, vec![], usize::MAX).await.unwrap().is_empty());
        assert_eq!(store.0.load(Ordering::SeqCst), 0, "nothing is read for nothing");
    }

    #[tokio::test]
    async fn s2_counts_and_own_stand_beside_the_item_and_nothing_where_there_are_none() {
        let shown = join(&Counting::default(), BOB, vec![item(1), item(2)], usize::MAX).await.unwrap();
        let alone = serde_json::to_string(&*item(1)).unwrap();
        assert_eq!(serde_json::to_string(&shown[0]).unwrap(), alone);
        let joined = serde_json::to_string(&shown[1]).unwrap();
        assert!(joined.ends_with(r#","counts":{"like":2},"own":["like"]}"#), "{joined}");
        assert!(joined.contains(r#""body":{"b":[1, 2]}"#), "the body is as it was published: {joined}");
        let others = join(&Counting::default(), Onlooker::user(UserNo(2)), vec![item(2)], usize::MAX).await.unwrap();
        assert!(serde_json::to_string(&others).unwrap().ends_with(r#","counts":{"like":2}}]"#));
    }

    #[test]
    fn s1_the_numbers_of_comments_and_reposts_stand_among_the_counts() {
        let like = || "like".parse::<ReactionKind>().unwrap();
        let of = |counts, comments, reposts| {
            let around = Around { counts, own: vec![], comments, reposts };
            serde_json::to_value(Shown { item: item(1), around, original: None, pinned: false }).unwrap()["counts"]
                .take()
        };
        assert_eq!(of(vec![(like(), 2)], 3, 0), serde_json::json!({"like": 2, "comments": 3}));
        assert_eq!(of(vec![], 1, 2), serde_json::json!({"comments": 1, "reposts": 2}));
        assert_eq!(of(vec![], 0, 1), serde_json::json!({"reposts": 1}));
        assert_eq!(of(vec![], 0, 0), serde_json::Value::Null);
    }

    #[test]
    fn s3_how_many_comments_and_reposts_there_are_is_told_to_who_sees_the_comments_of_all() {
        let around = Around { comments: 3, reposts: 3, ..Around::default() };
        let told_to = |onlooker| told_to(onlooker, around.clone());
        for (viewer, told) in [(Viewer::Backend, 3), (Viewer::User(None), 0), (Viewer::User(Some(UserNo(1))), 0)] {
            let seen = told_to(Onlooker { viewer, visible: Visible::Mutual });
            assert_eq!((seen.comments, seen.reposts), (told, told));
            let seen = told_to(Onlooker { viewer, visible: Visible::All });
            assert_eq!((seen.comments, seen.reposts), (3, 3));
        }
    }

    #[test]
    fn an_answer_ends_before_the_first_item_that_no_longer_fits() {
        let one = |id| Shown { item: item(id), around: Around::default(), original: None, pinned: false };
        let all = [one(1), one(2), one(3)];
        let bytes = all[0].bytes();
        assert_eq!([1, bytes, bytes + 1, 3 * bytes].map(|cut| fits(&all, cut)), [1, 1, 2, 3]);
        assert_eq!(fits(&[], 1), 0);
    }
}
