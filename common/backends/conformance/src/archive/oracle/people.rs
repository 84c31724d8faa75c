//! Compares the answers about follows, requests, shields, who may see an item, its reposts, and readers to whom items
//! are addressed.

use feedgate_common::archive::{Follow, ListCursor};
use feedgate_common::around::{Onlooker, Viewer};
use feedgate_common::error::Result;
use feedgate_common::graph::Shield;
use feedgate_common::{ItemId, UserNo};

use super::super::OneEdge;
use super::Asked;
use super::naive::Published;

impl Asked<'_> {
    pub(super) async fn people_agree(&self, user: UserNo) {
        let Self { archive, naive, users, .. } = self;
        let mut followees = archive.followees(user).await.unwrap();
        followees.sort_unstable();
        assert_eq!(followees, naive.followees(user, users));
        for &other in users {
            assert_eq!(archive.edge(user, other).await.unwrap(), naive.edge(user, other));
        }
        for among in [&users[..], &users[..1], &users[1..]] {
            let mut followers = archive.followers_among(user, among).await.unwrap();
            followers.sort_unstable();
            let follows = |reader: &UserNo| naive.edge(*reader, user).on;
            assert_eq!(followers, among.iter().copied().filter(follows).collect::<Vec<_>>());
            let mut followed = archive.followees_among(user, among).await.unwrap();
            followed.sort_unstable();
            let followed_by_user = |author: &UserNo| naive.edge(user, *author).on;
            assert_eq!(followed, among.iter().copied().filter(followed_by_user).collect::<Vec<_>>());
        }
        let following = naive.follows(user, true);
        let back = |whom: UserNo| naive.held.get(&(whom, user)).is_some_and(|held| held.follows);
        let mutual: Vec<_> = following.iter().copied().filter(|(whom, _)| back(*whom)).collect();
        for limit in [1, 3] {
            self.list_agrees(&following, limit, async |cursor| archive.following(user, cursor, limit).await).await;
            let followers = naive.follows(user, false);
            self.list_agrees(&followers, limit, async |cursor| archive.followers(user, cursor, limit).await).await;
            self.list_agrees(&mutual, limit, async |cursor| archive.mutual(user, cursor, limit).await).await;
            let requests = naive.requests(user);
            self.list_agrees(&requests, limit, async |cursor| archive.requests(user, cursor, limit).await).await;
            for shield in [Shield::Mute, Shield::Hide, Shield::Block] {
                let up = naive.shields.iter().rev().filter(|(of, what, ..)| (*of, *what) == (user, shield));
                let wants: Vec<_> = up.map(|(.., whom, since)| (*whom, *since)).collect();
                let page = async |cursor| archive.shielded(user, shield, cursor, limit).await;
                self.list_agrees(&wants, limit, page).await;
            }
        }
        let all: Vec<ItemId> = naive.items.iter().map(|item| item.key.item).collect();
        let shown = archive.originals(&all, Viewer::User(Some(user))).await.unwrap();
        for (item, shown) in naive.items.iter().zip(shown) {
            assert_eq!(shown.is_some(), naive.shows_original(user, item), "{:?} to {user:?}", item.key.item);
        }
        let mut addressed = archive.addressed(user, &all).await.unwrap();
        addressed.sort_unstable();
        let has = |item: &Published| {
            item.readers.contains(&user) || item.audience.as_ref().is_some_and(|readers| readers.contains(&user))
        };
        let to_user = naive.items.iter().filter(|i| has(i) && !naive.blocks(user, i.author));
        let mut wants: Vec<ItemId> = to_user.map(|item| item.key.item).collect();
        wants.sort_unstable();
        assert_eq!(addressed, wants);
    }

    /// Compares the numbers and the lists of reposts of all items.
    pub(super) async fn reposts_agree(&self) {
        let all: Vec<ItemId> = self.naive.items.iter().map(|item| item.key.item).collect();
        let around = self.archive.around(&all, Onlooker::BACKEND).await.unwrap();
        for (item, around) in self.naive.items.iter().zip(around) {
            let wants = self.naive.reposts(item.key.item);
            assert_eq!(self.archive.reposts(item.key.item, None, 1000).await.unwrap(), wants);
            let counted = if item.living { wants.len() as u64 } else { 0 };
            assert_eq!(around.reposts, counted, "reposts of {:?}", item.key.item);
        }
    }

    /// Reads a list in pages, and checks that it shows these users in this order.
    async fn list_agrees(
        &self,
        wants: &[(UserNo, i64)],
        limit: usize,
        page: impl AsyncFn(Option<ListCursor>) -> Result<Vec<Follow>>,
    ) {
        let (mut lines, mut cursor) = (vec![], None);
        loop {
            let some = page(cursor).await.unwrap();
            cursor = some.last().map(|line| line.cursor);
            let last = some.len() < limit;
            lines.extend(some);
            if last {
                break;
            }
        }
        let names: Vec<_> = lines.iter().map(|line| line.user.clone()).collect();
        let numbers = self.archive.intern(&names).await.unwrap();
        let lines: Vec<_> = numbers.into_iter().zip(lines.iter().map(|line| line.since)).collect();
        assert_eq!(lines, wants);
    }
}
