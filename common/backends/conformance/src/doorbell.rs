//! The tests that every implementation ("home") of [`Doorbell`] must pass: a wake arrives while someone listens, and
//! only then.
//!
//! A doorbell may lose wakes by contract, so each test rings again until it is heard.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use feedgate_common::archive::PullHead;
use feedgate_common::doorbell::{Closing, Growth, Heard, OnHeard, Onlooker, Stir, Talked, Touch};
use feedgate_common::{Doorbell, Epoch, FeedId, InboxKey, ItemId, Position, UserNo};
use tokio::sync::Notify;

/// Runs all tests of the doorbell. `open` gives a doorbell that nobody else rings, at a node called [`NODE`] that holds
/// every reader.
pub async fn doorbell(open: impl AsyncFn() -> Arc<dyn Doorbell>) {
    every_listener_hears_every_inbox(open().await).await;
    who_stopped_listening_hears_nothing(open().await).await;
    a_node_is_told_what_to_close(open().await).await;
    whoever_listens_hears_of_a_hot_author(open().await).await;
    everybody_is_told_whose_sessions_to_confirm(open().await).await;
    a_node_is_told_that_its_reader_has_seen_more(open().await).await;
    a_node_is_passed_what_devices_send(open().await).await;
    whoever_listens_hears_what_has_changed_around_items(open().await).await;
    ringing_without_listeners_is_fine(open().await).await;
}

/// The name of the node in this suite.
pub const NODE: &str = "node";

/// What one listener has heard so far.
#[derive(Default)]
struct Ear {
    heard: Mutex<BTreeSet<InboxKey>>,
    closed: Mutex<Vec<(UserNo, u64, Closing)>>,
    hot: Mutex<BTreeSet<PullHead>>,
    confirm: Mutex<Vec<UserNo>>,
    messages: Mutex<BTreeSet<(u128, Vec<u8>)>>,
    seen: Mutex<BTreeSet<(InboxKey, String, u64)>>,
    stirs: Mutex<Vec<Stir>>,
    news: Notify,
}

impl Ear {
    fn on_heard(self: &Arc<Self>) -> OnHeard {
        let ear = self.clone();
        Arc::new(move |heard| {
            match heard {
                Heard::Growth(growth) => {
                    ear.heard.lock().expect("no test panics with it").extend(growth.inboxes.iter().map(|g| g.key));
                }
                Heard::Close { user, connection, why } => {
                    ear.closed.lock().expect("no test panics with it").push((user, connection, why));
                }
                Heard::Hot(head) => drop(ear.hot.lock().expect("no test panics with it").insert(head)),
                Heard::Confirm(users) => *ear.confirm.lock().expect("no test panics with it") = users.to_vec(),
                Heard::Message { session, message } => {
                    ear.messages.lock().expect("no test panics with it").insert((session, message.to_vec()));
                }
                Heard::Seen(Onlooker { key, node, connection }) => {
                    ear.seen.lock().expect("no test panics with it").insert((key, node.to_owned(), connection));
                }
                Heard::Stirred(stir) => ear.stirs.lock().expect("no test panics with it").push(stir.clone()),
                Heard::Missed => {}
            }
            ear.news.notify_one();
        })
    }

    fn has_heard(&self, key: InboxKey) -> bool {
        self.heard.lock().expect("no test panics with it").contains(&key)
    }

    /// Rings until this listener has heard of all `keys`.
    async fn rung(&self, doorbell: &dyn Doorbell, keys: &[InboxKey]) {
        let hear = async {
            while !keys.iter().all(|key| self.has_heard(*key)) {
                for key in keys {
                    doorbell.ring(&growth(*key)).await;
                }
                tokio::select! {
                    () = self.news.notified() => {}
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
            }
        };
        crate::in_time(hear).await.expect("a listener hears a doorbell that is rung again and again");
    }
}

fn inbox(n: u32) -> InboxKey {
    InboxKey::main(UserNo(n))
}

fn growth(key: InboxKey) -> Growth {
    Growth::of_one(key, UserNo(9), Position { epoch: Epoch(1), offset: 1 })
}

async fn every_listener_hears_every_inbox(doorbell: Arc<dyn Doorbell>) {
    let [one, two] = [Arc::new(Ear::default()), Arc::new(Ear::default())];
    let _listening = [doorbell.listen(one.on_heard()), doorbell.listen(two.on_heard())];
    one.rung(&*doorbell, &[inbox(1), inbox(2)]).await;
    two.rung(&*doorbell, &[inbox(1), inbox(2)]).await;
    assert!(!one.has_heard(inbox(3)), "nobody rang for inbox 3");
}

async fn who_stopped_listening_hears_nothing(doorbell: Arc<dyn Doorbell>) {
    let [gone, stays] = [Arc::new(Ear::default()), Arc::new(Ear::default())];
    let listening = doorbell.listen(gone.on_heard());
    let _stays = doorbell.listen(stays.on_heard());
    gone.rung(&*doorbell, &[inbox(1)]).await;
    drop(listening);
    stays.rung(&*doorbell, &[inbox(2)]).await;
    assert!(!gone.has_heard(inbox(2)), "a dropped guard must end the listening");
}

async fn a_node_is_told_what_to_close(doorbell: Arc<dyn Doorbell>) {
    let ear = Arc::new(Ear::default());
    let _listening = doorbell.listen(ear.on_heard());
    for (connection, why) in [(7, Closing::Replaced), (8, Closing::Kicked), (9, Closing::Displaced)] {
        let wanted = (UserNo(3), connection, why);
        let hear = async {
            while !ear.closed.lock().expect("no test panics with it").contains(&wanted) {
                doorbell.close(NODE, UserNo(3), connection, why).await;
                tokio::select! {
                    () = ear.news.notified() => {}
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
            }
        };
        crate::in_time(hear).await.expect("a node asked again and again hears it");
    }
}

async fn a_node_is_told_that_its_reader_has_seen_more(doorbell: Arc<dyn Doorbell>) {
    let ear = Arc::new(Ear::default());
    let _listening = doorbell.listen(ear.on_heard());
    let likes = InboxKey { feed: FeedId(2), ..inbox(4) };
    for by in
        [Onlooker { key: inbox(3), node: NODE, connection: 7 }, Onlooker { key: likes, node: "", connection: u64::MAX }]
    {
        let wanted = (by.key, by.node.to_owned(), by.connection);
        let hear = async {
            while !ear.seen.lock().expect("no test panics with it").contains(&wanted) {
                doorbell.seen(by).await;
                tokio::select! {
                    () = ear.news.notified() => {}
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
            }
        };
        crate::in_time(hear).await.expect("a node that is told again and again hears it");
    }
}

async fn whoever_listens_hears_of_a_hot_author(doorbell: Arc<dyn Doorbell>) {
    let ears = [Arc::new(Ear::default()), Arc::new(Ear::default())];
    let _listening = ears.each_ref().map(|ear| doorbell.listen(ear.on_heard()));
    let told = [PullHead { pull_seq: 7, author: UserNo(3) }, PullHead { pull_seq: u64::MAX, author: UserNo(u32::MAX) }];
    for ear in &ears {
        let hear = async {
            while *ear.hot.lock().expect("no test panics with it") != BTreeSet::from(told) {
                for head in told {
                    doorbell.hot(head).await;
                }
                tokio::select! {
                    () = ear.news.notified() => {}
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
            }
        };
        crate::in_time(hear).await.expect("a listener hears of an author who is hot again and again");
        assert!(!ear.has_heard(inbox(3)), "nobody rang for inbox 3");
    }
}

async fn whoever_listens_hears_what_has_changed_around_items(doorbell: Arc<dyn Doorbell>) {
    let ears = [Arc::new(Ear::default()), Arc::new(Ear::default())];
    let _listening = ears.each_ref().map(|ear| doorbell.listen(ear.on_heard()));
    let touch = |item, comment| Touch { item: ItemId(item), comment };
    let touches = vec![touch(1, None), touch(u64::MAX, Some((ItemId(7), Talked::Deleted)))];
    let readers = vec![UserNo(3), UserNo(u32::MAX)];
    for ear in &ears {
        // One stir may come in several messages.
        let has_heard = || {
            let stirs = ear.stirs.lock().expect("no test panics with it");
            let all = |touch| stirs.iter().any(|stir| stir.touches.contains(touch));
            touches.iter().all(all) && stirs.iter().any(|stir| stir.readers == readers)
        };
        let hear = async {
            while !has_heard() {
                doorbell.stirred(&Stir { touches: touches.clone(), readers: readers.clone() }).await;
                tokio::select! {
                    () = ear.news.notified() => {}
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
            }
        };
        crate::in_time(hear).await.expect("a listener hears what is told again and again");
    }
}

async fn everybody_is_told_whose_sessions_to_confirm(doorbell: Arc<dyn Doorbell>) {
    let ears = [Arc::new(Ear::default()), Arc::new(Ear::default())];
    let _listening = ears.each_ref().map(|ear| doorbell.listen(ear.on_heard()));
    let users = [UserNo(3), UserNo(u32::MAX)];
    for ear in &ears {
        let hear = async {
            while *ear.confirm.lock().expect("no test panics with it") != users {
                doorbell.confirm(&users).await;
                tokio::select! {
                    () = ear.news.notified() => {}
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
            }
        };
        crate::in_time(hear).await.expect("a listener hears whose sessions to confirm, if it is said again and again");
    }
}

async fn a_node_is_passed_what_devices_send(doorbell: Arc<dyn Doorbell>) {
    let ear = Arc::new(Ear::default());
    let _listening = doorbell.listen(ear.on_heard());
    let passed = [(1, vec![]), (u128::MAX, b"{\"id\":2}".repeat(8000))];
    let hear = async {
        while *ear.messages.lock().expect("no test panics with it") != BTreeSet::from(passed.clone()) {
            for (session, message) in &passed {
                doorbell.pass(NODE, *session, message).await;
            }
            tokio::select! {
                () = ear.news.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
        }
    };
    crate::in_time(hear).await.expect("a node is passed what is sent again and again, whole");
}

async fn ringing_without_listeners_is_fine(doorbell: Arc<dyn Doorbell>) {
    doorbell.ring(&growth(inbox(1))).await;
    doorbell.hot(PullHead { pull_seq: 1, author: UserNo(1) }).await;
    doorbell.close("nobody", UserNo(1), 1, Closing::Kicked).await;
    doorbell.confirm(&[UserNo(1)]).await;
    doorbell.pass("nobody", 1, b"{}").await;
    doorbell.stirred(&Stir { touches: vec![], readers: vec![UserNo(1)] }).await;
}
