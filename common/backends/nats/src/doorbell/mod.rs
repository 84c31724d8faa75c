//! Wakes over core NATS, to the nodes that hold the readers.
//!
//! ```text
//!   ring ─▶ who holds these readers? (Sessions, after the append) ─▶ per node its inboxes ─▶ feed.node.<node>
//!   seen ─▶ who holds this reader? ─▶ feed.node.<node>
//!   hot  ─▶ feed.all.hot.<author>      confirm ─▶ feed.all.confirm, both to every node
//!   stirred ─▶ feed.items, to every node
//!   listen ◀── feed.node.<this node>, feed.all.>, feed.items      a gap in the connection ─▶ Heard::Missed
//! ```
//!
//! A node's name becomes one token of the subject: letters, digits, `-` and `_` stand for themselves, every other
//! byte is `%` and two hex digits, so `web-1.1732` is at `feed.node.web-1%2E1732`.
//!
//! Invariants: a node is told only of inboxes whose readers it holds; a ring takes at most [`RING`]; wakes that could
//! not be sent in that time are lost, and only the debug log says so; a reader of whom the session pool can say nothing
//! keeps no other reader from being told; a listener hears of it whenever messages to it may have been lost.

mod ear;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::HeaderMap;
use async_trait::async_trait;
use feedgate_common::archive::PullHead;
use feedgate_common::doorbell::{Closing, Doorbell, Growth, Listening, OnHeard, Onlooker, Stir};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::inboxes::Grown;
use feedgate_common::trace::Traced;
use feedgate_common::{Sessions, UserNo};
use tokio::sync::oneshot;

use crate::bus::{Bus, failed, within};

/// The longest a ring may hold its caller up.
const RING: Duration = Duration::from_millis(500);

/// The beginning of the subject on which every node hears that a pulled author has news; the author's number follows.
const HOT: &str = "feed.all.hot.";

/// The subject on which every node hears which users' sessions it must confirm.
const CONFIRM: &str = "feed.all.confirm";

/// The subject on which every node hears what has changed around items. It is not below [`ALL`], because a gateway of a
/// version that does not know such messages would take each for a sign that it has missed something.
const ITEMS: &str = "feed.items";

/// The subjects, besides [`ITEMS`], to which every node listens.
const ALL: &str = "feed.all.>";

/// The header of a growth that names a [`Traced`] change; there is one header for each such change.
const TRACED: &str = "Feedgate-Traced";

/// Readers looked up at a time.
const LOOKUP_MAX: usize = 1000;

/// The NATS home of [`Doorbell`], as one node uses it.
pub struct NatsDoorbell {
    bus: Bus,
    node: String,
    nodes: Arc<dyn Sessions>,
    /// How many messages may not have been heard.
    lost: AtomicU64,
}

impl NatsDoorbell {
    /// The doorbell of `node`, which rings at the nodes where `nodes` finds the readers. A process that holds no
    /// sessions never listens, and gives any name.
    pub fn open(bus: Bus, node: &str, nodes: Arc<dyn Sessions>) -> Self {
        Self { bus, node: node.to_owned(), nodes, lost: AtomicU64::new(0) }
    }

    async fn tell(&self, growth: &Growth) -> Result<()> {
        self.bus.connected().await?;
        let mut partial = false;
        for inboxes in growth.inboxes.chunks(LOOKUP_MAX) {
            let readers: Vec<UserNo> = inboxes.iter().map(|grown| grown.key.reader).collect();
            let holders = self.nodes.nodes(&readers).await?;
            partial |= holders.iter().any(|holders| holders.partial);
            let mut by_node: BTreeMap<&str, Vec<Grown>> = BTreeMap::new();
            for (grown, holders) in inboxes.iter().zip(&holders) {
                for node in &holders.nodes {
                    by_node.entry(node).or_default().push(*grown);
                }
            }
            for (node, inboxes) in by_node {
                for message in wire::growth(growth.author, &growth.records, &inboxes) {
                    self.publish_traced(node, message, &growth.traced).await?;
                }
            }
        }
        if partial {
            return Err(StoreError::unavailable("a part of the session pool does not answer"));
        }
        Ok(())
    }

    async fn tell_seen(&self, by: Onlooker<'_>) -> Result<()> {
        self.bus.connected().await?;
        let holders = self.nodes.nodes(&[by.key.reader]).await?;
        for node in holders.iter().flat_map(|holders| &holders.nodes) {
            self.publish(node, wire::seen(by)).await?;
        }
        Ok(())
    }

    async fn publish(&self, node: &str, message: Vec<u8>) -> Result<()> {
        self.bus.client().publish(subject(node), message.into()).await.map_err(failed)
    }

    /// Publishes what has grown. Under which step that stands is in a header, which an older version does not look at.
    async fn publish_traced(&self, node: &str, message: Vec<u8>, traced: &[Traced]) -> Result<()> {
        if traced.is_empty() {
            return self.publish(node, message).await;
        }
        let mut headers = HeaderMap::new();
        traced.iter().for_each(|one| headers.append(TRACED, one.to_string()));
        let published = self.bus.client().publish_with_headers(subject(node), headers, message.into());
        published.await.map_err(failed)
    }

    async fn tell_everybody(&self, subject: String, messages: Vec<Vec<u8>>) -> Result<()> {
        self.bus.connected().await?;
        for message in messages {
            self.bus.client().publish(subject.clone(), message.into()).await.map_err(failed)?;
        }
        Ok(())
    }

    fn note(&self, told: Result<()>) {
        if let Err(error) = told {
            let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::debug!(%error, lost, "a wake may not have been heard");
        }
    }
}

#[async_trait]
impl Doorbell for NatsDoorbell {
    async fn ring(&self, growth: &Growth) {
        self.note(within(RING, self.tell(growth)).await);
    }

    async fn hot(&self, head: PullHead) {
        let subject = format!("{HOT}{}", head.author.0);
        self.note(within(RING, self.tell_everybody(subject, vec![wire::hot(head)])).await);
    }

    async fn stirred(&self, stir: &Stir) {
        self.note(within(RING, self.tell_everybody(ITEMS.to_owned(), wire::stirred(stir))).await);
    }

    async fn confirm(&self, users: &[UserNo]) {
        self.note(within(RING, self.tell_everybody(CONFIRM.to_owned(), wire::confirm(users))).await);
    }

    async fn close(&self, node: &str, user: UserNo, connection: u64, why: Closing) -> bool {
        let tell = async {
            self.bus.connected().await?;
            self.publish(node, wire::close(user, connection, why)).await
        };
        let told = within(RING, tell).await;
        let is_told = told.is_ok();
        self.note(told);
        is_told
    }

    async fn seen(&self, by: Onlooker<'_>) {
        self.note(within(RING, self.tell_seen(by)).await);
    }

    async fn pass(&self, node: &str, session: u128, message: &[u8]) {
        let tell = async {
            self.bus.connected().await?;
            self.publish(node, wire::message(session, message)).await
        };
        self.note(within(RING, tell).await);
    }

    /// Needs a tokio runtime. The subscriptions stand a moment later. Then `on_heard` is called with
    /// [`Missed`](feedgate_common::doorbell::Heard::Missed), since messages until then may have been missed.
    fn listen(&self, on_heard: OnHeard) -> Listening {
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(ear::listen(
            self.bus.clone(),
            [subject(&self.node), ALL.to_owned(), ITEMS.to_owned()],
            on_heard,
            stopped,
        ));
        Listening::until(move || _ = stop.send(()))
    }

    async fn ping(&self) -> Result<()> {
        self.bus.connected().await?;
        self.bus.round_trip().await
    }
}

/// The subject to which `node` listens. All but letters, digits, `-` and `_` is encoded.
fn subject(node: &str) -> String {
    let mut subject = String::from("feed.node.");
    for byte in node.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            subject.push(byte.into());
        } else {
            write!(subject, "%{byte:02X}").expect("a String takes everything");
        }
    }
    subject
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_one_token_of_a_subject_and_two_nodes_are_two() {
        assert_eq!(subject("web-1.1732"), "feed.node.web-1%2E1732");
        assert_eq!(subject("a b>*.é%2E"), "feed.node.a%20b%3E%2A%2E%C3%A9%252E");
        assert_ne!(subject("a.b"), subject("a%2Eb"));
    }
}
