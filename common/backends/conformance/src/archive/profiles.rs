//! Tests of profiles: what an author has published, as a viewer may see it (S13).

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::archive::Archive;
use feedgate_common::around::{Viewer, seen_by};
use feedgate_common::error::Result;
use feedgate_common::feed::{ItemsOf, Seeing, pinned, profile};
use feedgate_common::graph::Shield;
use feedgate_common::{DisplayKey, FeedId, Item, ItemId, UserNo};

use super::audiences::narrowed_to;
use super::{NOW, accept, change, delete, follow, number, post, shield, write};

/// The viewer for whom a profile is read.
#[derive(Clone, Copy)]
enum Eyes {
    /// A backend, which may name a viewer.
    Key(Viewer),
    /// A reader with a token.
    Token(UserNo),
}

struct Seen<'a>(&'a dyn Archive, Eyes);

#[async_trait]
impl Seeing for Seen<'_> {
    async fn of(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
        match self.1 {
            Eyes::Key(viewer) => self.0.originals(ids, viewer).await,
            Eyes::Token(reader) => seen_by(self.0, Some(reader), self.0.items(ids).await?).await,
        }
    }
}

/// What is pinned on a profile, as somebody may see it.
async fn pins(archive: &dyn Archive, author: UserNo, feed: FeedId, eyes: Eyes) -> Vec<ItemId> {
    let pinned = pinned(archive, ItemsOf::Outbox(author, feed), &Seen(archive, eyes)).await.unwrap();
    pinned.iter().map(|item| item.id).collect()
}

/// All pages of a profile of the main feed, each of `limit` items.
async fn pages(archive: &dyn Archive, author: UserNo, eyes: Eyes, limit: usize) -> Vec<ItemId> {
    let (mut all, mut before): (Vec<ItemId>, Option<DisplayKey>) = (vec![], None);
    loop {
        let seen = Seen(archive, eyes);
        let (items, next) =
            profile(archive, ItemsOf::Outbox(author, FeedId::MAIN), &seen, before, limit.into(), &[]).await.unwrap();
        assert!(next.is_none() || items.len() == limit, "a page is full unless it is the last");
        all.extend(items.iter().map(|item| item.id));
        let Some(next) = next else { return all };
        before = Some(next);
    }
}

pub(super) async fn s13_a_profile_shows_a_viewer_what_is_for_that_viewer(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    for reader in ["in", "out", "muting", "blocked", "hidden"] {
        change(archive, follow(reader, "ann")).await;
    }
    let (mut all, mut open) = (vec![], vec![]);
    for n in 0..8 {
        let (item, _) = match n % 3 {
            0 => accept(archive, post("ann", &format!("for all {n}")), NOW + n).await,
            _ => accept(archive, narrowed_to("ann", &format!("for some {n}"), &["in", "muting"]), NOW + n).await,
        };
        all.insert(0, item);
        if n % 3 == 0 {
            open.insert(0, item);
        }
    }
    accept(archive, post("ben", "of another author"), NOW).await;
    write(archive, shield("muting", Shield::Mute, "ann", true)).await.unwrap();
    write(archive, shield("ann", Shield::Block, "blocked", true)).await.unwrap();
    write(archive, shield("ann", Shield::Hide, "hidden", true)).await.unwrap();
    let ann = number(archive, "ann").await;
    let none = vec![];
    let wanted = [
        ("ann", &all, &all),
        ("in", &all, &all),
        ("out", &open, &open),
        ("stranger", &open, &none),
        ("muting", &none, &none),
        ("blocked", &none, &none),
        ("hidden", &none, &none),
    ];
    for limit in [1, 2, 3, 100] {
        for (name, by_key, by_token) in wanted {
            let user = number(archive, name).await;
            let key = pages(archive, ann, Eyes::Key(Viewer::User(Some(user))), limit).await;
            assert_eq!(key, *by_key, "{name} by a backend, {limit} a page");
            assert_eq!(pages(archive, ann, Eyes::Token(user), limit).await, *by_token, "{name} by a token");
        }
        assert_eq!(pages(archive, ann, Eyes::Key(Viewer::Backend), limit).await, all);
        assert_eq!(pages(archive, ann, Eyes::Key(Viewer::User(None)), limit).await, open, "who was never named");
    }
    let closed = *all.iter().find(|item| !open.contains(item)).unwrap();
    for item in [open[0], closed, open[1]] {
        archive.pin(ann, item).await.unwrap().unwrap();
    }
    let (of_all, of_open) = (vec![open[1], closed, open[0]], vec![open[1], open[0]]);
    for (name, by_key, by_token) in wanted {
        let user = number(archive, name).await;
        let shown = |of: &Vec<ItemId>| match of.len() {
            0 => vec![],
            len if len == all.len() => of_all.clone(),
            _ => of_open.clone(),
        };
        let key = pins(archive, ann, FeedId::MAIN, Eyes::Key(Viewer::User(Some(user)))).await;
        assert_eq!(key, shown(by_key), "{name} by a backend");
        assert_eq!(pins(archive, ann, FeedId::MAIN, Eyes::Token(user)).await, shown(by_token), "{name} by a token");
    }
    assert_eq!(pins(archive, ann, FeedId::MAIN, Eyes::Key(Viewer::Backend)).await, of_all);
    assert_eq!(
        pins(archive, ann, FeedId(9), Eyes::Key(Viewer::Backend)).await,
        [],
        "of another feed nothing is pinned"
    );
    write(archive, delete(open[0])).await.unwrap();
    assert_eq!(pins(archive, ann, FeedId::MAIN, Eyes::Key(Viewer::User(None))).await, [open[1]]);
    let out = number(archive, "out").await;
    assert_eq!(pages(archive, ann, Eyes::Token(out), 1).await, open[1..], "what is deleted is on no page");
}
