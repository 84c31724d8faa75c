//! A Redis Cluster of three masters.

use crate::kinds::{Redis, redis_cli};
use crate::launcher::wait_until;
use crate::port::free_port;

/// The first slot of each master, and the end of the last.
const SLOTS: [u16; 4] = [0, 5461, 10_923, 16_384];
/// After this long without a word a node counts as failed.
const NODE_TIMEOUT_MS: &str = "2000";

/// Three masters that share the 16384 slots, no replica.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts it and waits until every node says `cluster_state:ok`.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with more arguments for each `redis-server`.
    #[must_use]
    pub fn start_with(arguments: &[&str]) -> Self {
        let ports: Vec<_> = SLOTS.windows(2).map(|_| free_port().to_string()).collect();
        let nodes: Vec<_> = ports
            .iter()
            .map(|bus| {
                let own =
                    ["--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", NODE_TIMEOUT_MS];
                Redis::start_with(&[&own, arguments].concat())
            })
            .collect();
        for (index, (node, slots)) in nodes.iter().zip(SLOTS.windows(2)).enumerate() {
            node.cli(&["cluster", "addslotsrange", &slots[0].to_string(), &(slots[1] - 1).to_string()]);
            node.cli(&["cluster", "set-config-epoch", &(index + 1).to_string()]);
        }
        for (node, bus) in nodes.iter().zip(&ports).skip(1) {
            nodes[0].cli(&["cluster", "meet", "127.0.0.1", &node.port().to_string(), bus]);
        }
        let cluster = Self { nodes };
        cluster.wait_until_ok();
        cluster
    }

    /// How a client of the cluster is told to connect: every node.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Redis::url).collect()
    }

    /// The first node, from which a client learns the others.
    pub fn url(&self) -> String {
        self.nodes[0].url()
    }

    /// The masters, in the order of their slots.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// A master, to be killed, paused, started again.
    pub fn node(&mut self, index: usize) -> &mut Redis {
        &mut self.nodes[index]
    }

    /// Which master holds the keys of a slot (0-16383).
    pub fn holder_of(&self, slot: u16) -> usize {
        SLOTS.iter().rposition(|first| *first <= slot).expect("slots begin at 0")
    }

    /// Waits until every node knows the others and serves; after a restart, for example.
    pub fn wait_until_ok(&self) {
        let infos = || self.nodes.iter().map(|node| redis_cli(node.port(), &["cluster", "info"]).unwrap_or_else(|e| e));
        let ok = |info: String| info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
        wait_until("cluster_state:ok on every node", || infos().all(ok), || infos().collect());
    }
}
