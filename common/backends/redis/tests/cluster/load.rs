//! Callers who never stop, each on a bucket of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use feedgate_common::{InboxKey, Inboxes, UserNo};
use feedgate_conformance::inboxes::InboxesExt as _;
use feedgate_engines::RedisCluster;
use feedgate_redis::{Link, RedisInboxes, Timeouts};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::support::{EPOCHS, until};

/// Buckets, and callers: enough that each master has many.
const CALLERS: u16 = 96;

/// What became of one caller's calls.
#[derive(Debug, Default)]
struct Calls {
    answered: AtomicU64,
    failed: AtomicU64,
}

/// Ends when it is dropped.
pub(crate) struct Load {
    calls: Arc<[Calls]>,
    _callers: JoinSet<()>,
}

impl Load {
    /// Begins; every caller has been answered when this returns.
    pub(crate) async fn on(cluster: &RedisCluster) -> Self {
        let link = Link::connect(&cluster.url(), Timeouts::default()).await.unwrap();
        let store = Arc::new(RedisInboxes::open(link, EPOCHS.clone(), CALLERS).await.unwrap());
        let calls: Arc<[Calls]> = (0..CALLERS).map(|_| Calls::default()).collect();
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let (store, calls) = (store.clone(), calls.clone());
            let key = InboxKey::main(UserNo(caller.into()));
            callers.spawn(async move { call(&*store, key, &calls[usize::from(caller)]).await });
        }
        let load = Self { calls, _callers: callers };
        load.all_are_answered().await;
        load
    }

    /// Waits until each caller was answered from now on.
    pub(crate) async fn all_are_answered(&self) {
        let everybody: Vec<u16> = (0..CALLERS).collect();
        self.are_answered(&everybody, 1).await;
    }

    /// Waits until these callers were answered so many times from now on.
    pub(crate) async fn are_answered(&self, callers: &[u16], times: u64) {
        let count = || callers.iter().map(|caller| self.calls[usize::from(*caller)].answered.load(Ordering::Relaxed));
        let before: Vec<u64> = count().collect();
        until("every caller is answered", async || count().zip(&before).all(|(now, before)| now >= before + times))
            .await;
    }

    /// Waits until each of these callers has failed from now on.
    pub(crate) async fn fail(&self, callers: &[u16]) {
        let count = || callers.iter().map(|caller| self.calls[usize::from(*caller)].failed.load(Ordering::Relaxed));
        let before: Vec<u64> = count().collect();
        until("every caller fails", async || count().zip(&before).all(|(now, before)| now > *before)).await;
    }
}

/// The callers whose buckets lie on a master, by its place in the cluster, and the others.
pub(crate) fn callers_of(cluster: &RedisCluster, node: usize) -> (Vec<u16>, Vec<u16>) {
    (0..CALLERS).partition(|caller| cluster.holder_of(slot_of(cluster, *caller)) == node)
}

/// The slot of a caller's bucket.
pub(crate) fn slot_of(cluster: &RedisCluster, caller: u16) -> u16 {
    let tag = format!("{{b{caller:03}}}");
    cluster.nodes()[0].cli(&["cluster", "keyslot", &tag]).trim().parse().unwrap()
}

async fn call(store: &dyn Inboxes, key: InboxKey, calls: &Calls) {
    loop {
        if store.heads(&[key]).await.is_ok() {
            calls.answered.fetch_add(1, Ordering::Relaxed);
        } else {
            calls.failed.fetch_add(1, Ordering::Relaxed);
            // While the breaker is open it is refused at once.
            sleep(Duration::from_millis(10)).await;
        }
    }
}
