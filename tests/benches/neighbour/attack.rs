//! Attacks, each on a thread of its own until it is told to end.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::anyhow;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::world::Target;
use crate::{floods, unread};

/// What one may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attack {
    UnreadResponses,
    UnreadPages,
    BlankFrames,
    EmptyContinuations,
    UnfinishedHeads,
    HeadsElsewhere,
    UpgradeFlood,
    NeverConnect,
    StarPosts,
    Reconnects,
}

/// All attacks, in the order in which they run.
pub(crate) const ATTACKS: [Attack; 10] = [
    Attack::UnreadResponses,
    Attack::UnreadPages,
    Attack::BlankFrames,
    Attack::EmptyContinuations,
    Attack::UnfinishedHeads,
    Attack::HeadsElsewhere,
    Attack::UpgradeFlood,
    Attack::NeverConnect,
    Attack::StarPosts,
    Attack::Reconnects,
];

impl Attack {
    /// The name under which the table shows the attack.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::UnreadResponses => "300 × GET feed, unread",
            Self::UnreadPages => "64 WebSockets ask for pages, unread",
            Self::BlankFrames => "blank frames on one socket, no connect",
            Self::EmptyContinuations => "empty continuations on one socket",
            Self::UnfinishedHeads => "4,000 unfinished heads of 60 KB",
            Self::HeadsElsewhere => "the same heads to a port that only closes",
            Self::UpgradeFlood => "1,000 upgrades a second, hung up",
            Self::NeverConnect => "1,000 upgrades a second, held silently",
            Self::StarPosts => "a post a second to all readers online",
            Self::Reconnects => "all readers reconnect at once",
        }
    }

    async fn run(self, target: Rc<Target>, count: Count, prepared: &Semaphore) -> anyhow::Result<()> {
        if !matches!(self, Self::StarPosts | Self::Reconnects) {
            prepared.add_permits(1);
        }
        match self {
            Self::UnreadResponses => unread::responses(target, count).await,
            Self::UnreadPages => unread::pages(target, count).await,
            Self::BlankFrames => floods::blank_frames(target, count).await,
            Self::EmptyContinuations => floods::empty_continuations(target, count).await,
            Self::UnfinishedHeads => floods::unfinished_heads(target, count).await,
            Self::HeadsElsewhere => floods::heads_elsewhere(target, count).await,
            Self::UpgradeFlood => floods::upgrades(target, count, Duration::ZERO).await,
            Self::NeverConnect => floods::upgrades(target, count, Duration::from_secs(3600)).await,
            Self::StarPosts => floods::star_posts(&target, count, prepared).await,
            Self::Reconnects => floods::reconnects(&target, count, prepared).await,
        }
    }
}

/// What came of an attacker's connections.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// How many connections or requests the attacker tried.
    pub(crate) opened: u64,
    /// Refused, or ended by the server.
    pub(crate) refused: u64,
}

/// Counts while it runs.
pub(crate) type Count = Rc<Cell<Tally>>;

/// An attack that runs, on a thread of its own.
pub(crate) struct Running {
    stop: CancellationToken,
    prepared: std::sync::Arc<Semaphore>,
    thread: JoinHandle<anyhow::Result<Tally>>,
}

impl Running {
    /// Starts the attack on `target`.
    pub(crate) fn begin(attack: Attack, target: Target) -> anyhow::Result<Self> {
        let (stop, prepared) = (CancellationToken::new(), std::sync::Arc::new(Semaphore::new(0)));
        let (stopped, ready) = (stop.clone(), prepared.clone());
        let thread = std::thread::Builder::new().name("attacker".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let count = Count::default();
            tokio::task::LocalSet::new().block_on(&runtime, async {
                tokio::select! {
                    ended = attack.run(Rc::new(target), count.clone(), &ready) => ended,
                    () = stopped.cancelled() => Ok(()),
                }
            })?;
            Ok(count.get())
        })?;
        Ok(Self { stop, prepared, thread })
    }

    /// Waits until what it needs is there: most need nothing.
    pub(crate) async fn prepared(&self) {
        // An attack that failed has none to give, and its end says why.
        while self.prepared.available_permits() == 0 && !self.thread.is_finished() {
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends it and drops its connections.
    pub(crate) fn end(self) -> anyhow::Result<Tally> {
        self.stop.cancel();
        self.thread.join().map_err(|_| anyhow!("the attacker panicked"))?
    }
}

/// `hands` of them at a time do `once`, for ever: each begins anew as soon as the server has ended what it did.
pub(crate) async fn hands<F>(hands: usize, count: Count, once: impl Fn() -> F) -> anyhow::Result<()>
where
    F: Future<Output = std::io::Result<()>> + 'static,
{
    /// So that refusals alone do not keep the attacker's processor busy.
    const REST: Duration = Duration::from_millis(20);
    let mut working = JoinSet::new();
    for _ in 0..hands {
        working.spawn_local(once());
        add(&count, 1, 0);
    }
    while working.join_next().await.is_some() {
        add(&count, 1, 1);
        let again = once();
        working.spawn_local(async move {
            sleep(REST).await;
            again.await
        });
    }
    Ok(())
}

/// Adds `opened` and `refused` to what was counted so far.
pub(crate) fn add(count: &Count, opened: u64, refused: u64) {
    let Tally { opened: before, refused: refused_before } = count.get();
    count.set(Tally { opened: before + opened, refused: refused_before + refused });
}
