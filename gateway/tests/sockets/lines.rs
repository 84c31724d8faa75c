//! The lines between nodes of one process: wakes reach every node, a close reaches the node it names; both may be lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use feedgate_common::archive::PullHead;
use feedgate_common::doorbell::{Closing, Growth, Heard, Listening, OnHeard, Onlooker, Stir};
use feedgate_common::error::Result;
use feedgate_common::{Doorbell, UserNo};
use parking_lot::Mutex;

/// The lines between all nodes of a test.
pub(crate) struct Lines {
    /// Rung by the worker.
    wakes: Arc<dyn Doorbell>,
    ears: Mutex<HashMap<String, Vec<OnHeard>>>,
    /// Whether what is said now is lost.
    pub(crate) cut: AtomicBool,
    /// Whether nobody can be told to close anything, and who tells knows that.
    pub(crate) dead: AtomicBool,
    /// Whether it is lost that authors who are pulled have news.
    pub(crate) cold: AtomicBool,
    /// If there, wakes end here instead of at their node.
    pub(crate) caught: Mutex<Option<Vec<(String, Growth)>>>,
}

/// The line of one node, which is its doorbell.
pub(crate) struct Line {
    node: String,
    lines: Arc<Lines>,
}

impl Lines {
    pub(crate) fn over(wakes: Arc<dyn Doorbell>) -> Arc<Self> {
        Arc::new(Self {
            wakes,
            ears: Mutex::default(),
            cut: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            cold: AtomicBool::new(false),
            caught: Mutex::default(),
        })
    }

    pub(crate) fn of(self: &Arc<Self>, node: &str) -> Arc<Line> {
        Arc::new(Line { node: node.to_owned(), lines: self.clone() })
    }

    /// Tells a node something, whether the lines are cut or not.
    pub(crate) fn tell(&self, node: &str, heard: Heard<'_>) {
        self.ears.lock().get(node).into_iter().flatten().for_each(|ear| ear(heard));
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }
}

#[async_trait]
impl Doorbell for Line {
    async fn ring(&self, growth: &Growth) {
        self.lines.wakes.ring(growth).await;
    }

    async fn hot(&self, head: PullHead) {
        self.lines.wakes.hot(head).await;
    }

    async fn close(&self, node: &str, user: UserNo, connection: u64, why: Closing) -> bool {
        if self.lines.dead.load(Ordering::Acquire) {
            return false;
        }
        if !self.lines.is_cut() {
            self.lines.tell(node, Heard::Close { user, connection, why });
        }
        true
    }

    async fn pass(&self, node: &str, session: u128, message: &[u8]) {
        if !self.lines.is_cut() {
            self.lines.tell(node, Heard::Message { session, message });
        }
    }

    async fn seen(&self, by: Onlooker<'_>) {
        self.lines.wakes.seen(by).await;
    }

    async fn stirred(&self, stir: &Stir) {
        self.lines.wakes.stirred(stir).await;
    }

    async fn confirm(&self, users: &[UserNo]) {
        self.lines.wakes.confirm(users).await;
    }

    fn listen(&self, on_heard: OnHeard) -> Listening {
        self.lines.ears.lock().entry(self.node.clone()).or_default().push(on_heard.clone());
        let (lines, node) = (Arc::downgrade(&self.lines), self.node.clone());
        self.lines.wakes.listen(Arc::new(move |heard| {
            let Some(lines) = lines.upgrade().filter(|lines| !lines.is_cut()) else { return };
            match (&mut *lines.caught.lock(), heard) {
                (_, Heard::Hot(_)) if lines.cold.load(Ordering::Acquire) => {}
                (Some(caught), Heard::Growth(growth)) => caught.push((node.clone(), growth.clone())),
                _ => on_heard(heard),
            }
        }))
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}
