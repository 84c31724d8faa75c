//! A Redis Cluster of three masters, and of replicas for the tests that want them.

use crate::kinds::{Redis, redis_cli};
use crate::launcher::wait_until;
use crate::port::{free_port, on_free_ports};

/// The first slot of each master, and the end of the last.
const SLOTS: [u16; 4] = [0, 5461, 10_923, 16_384];
/// After this long without a word a node counts as failed.
const NODE_TIMEOUT_MS: &str = "2000";

/// Three masters that share the 16384 slots; no replica until one is [added](Self::add_replica).
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
    replicas: Vec<Redis>,
    arguments: Vec<String>,
}

impl RedisCluster {
    /// Starts it and waits until every node says `cluster_state:ok`.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// As [`start`](Self::start), with more arguments for each `redis-server`.
    #[must_use]
    pub fn start_with(arguments: &[&str]) -> Self {
        let nodes: Vec<_> = SLOTS.windows(2).map(|_| node(arguments)).collect();
        for (index, (node, slots)) in nodes.iter().zip(SLOTS.windows(2)).enumerate() {
            node.cli(&["cluster", "addslotsrange", &slots[0].to_string(), &(slots[1] - 1).to_string()]);
            node.cli(&["cluster", "set-config-epoch", &(index + 1).to_string()]);
        }
        nodes.iter().skip(1).for_each(|node| meet(&nodes[0], node));
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let cluster = Self { nodes, replicas: vec![], arguments };
        cluster.wait_until_ok();
        cluster
    }

    /// Starts a replica of a master and waits until it is in step and every node knows it as one.
    pub fn add_replica(&mut self, master: usize) {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let (replica, master) = (node(&arguments), &self.nodes[master]);
        meet(master, &replica);
        let (own, id) = (id_of(&replica), id_of(master));
        let knows = || replica.cli(&["cluster", "nodes"]).contains(&id);
        wait_until("the replica knows its master", knows, || replica.cli(&["cluster", "nodes"]));
        replica.cli(&["cluster", "replicate", &id]);
        let in_step = || replica.cli(&["info", "replication"]).contains("master_link_status:up");
        wait_until("the replica is in step", in_step, || replica.cli(&["info", "replication"]));
        let is_known = |nodes: String| {
            nodes.lines().any(|line| line.starts_with(&own) && line.contains("slave") && line.contains(&id))
        };
        let known = || self.nodes.iter().all(|node| is_known(node.cli(&["cluster", "nodes"])));
        wait_until("every node knows the replica as one", known, || master.cli(&["cluster", "nodes"]));
        self.replicas.push(replica);
    }

    /// The replicas, in the order in which they were added.
    pub fn replicas(&self) -> &[Redis] {
        &self.replicas
    }

    /// A replica, to be killed, paused, started again.
    pub fn replica(&mut self, index: usize) -> &mut Redis {
        &mut self.replicas[index]
    }

    /// Moves a slot and what lies in it to another master. Callers may call the cluster meanwhile.
    pub fn move_slot(&self, slot: u16, to: usize) {
        let (from, to) = (&self.nodes[self.holder_of(slot)], &self.nodes[to]);
        let slot = slot.to_string();
        to.cli(&["cluster", "setslot", &slot, "importing", &id_of(from)]);
        from.cli(&["cluster", "setslot", &slot, "migrating", &id_of(to)]);
        for key in from.cli(&["cluster", "getkeysinslot", &slot, "1000"]).lines().filter(|key| !key.is_empty()) {
            from.cli(&["migrate", "127.0.0.1", &to.port().to_string(), key, "0", "5000"]);
        }
        for node in [to, from] {
            node.cli(&["cluster", "setslot", &slot, "node", &id_of(to)]);
        }
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

    /// Waits until another node has found that this master is away.
    pub fn wait_until_failed(&self, index: usize) {
        let away = id_of_killed(&self.nodes[index]);
        let says = |node: &Redis| redis_cli(node.port(), &["cluster", "nodes"]).unwrap_or_default();
        let failed = |nodes: String| {
            nodes.lines().any(|line| line.starts_with(&away) && line.split(' ').nth(2).is_some_and(is_failed))
        };
        let others = || self.nodes.iter().enumerate().filter(|(other, _)| *other != index);
        let seen = || others().map(|(_, node)| says(node)).collect();
        wait_until("a master counts as failed", || others().any(|(_, node)| failed(says(node))), seen);
    }

    /// Waits until every master knows the others and serves; after a restart, for example.
    pub fn wait_until_ok(&self) {
        let infos = || self.nodes.iter().map(|node| redis_cli(node.port(), &["cluster", "info"]).unwrap_or_else(|e| e));
        let known = format!("cluster_known_nodes:{}\n", self.nodes.len() + self.replicas.len());
        let ok = |info: String| info.contains("cluster_state:ok") && info.contains(&known);
        wait_until("cluster_state:ok on every node", || infos().all(ok), || infos().collect());
    }
}

fn node(arguments: &[&str]) -> Redis {
    on_free_ports(|| {
        let bus = free_port().to_string();
        let own = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-node-timeout", NODE_TIMEOUT_MS];
        // By default a replica whose master was silent for ten such times takes over no more. Here that is 20 seconds,
        // which an election may take on a busy machine; in use it is minutes.
        let takes_over = ["--cluster-replica-validity-factor", "0"];
        Redis::try_start(free_port(), &[&own[..], &takes_over, arguments].concat())
    })
}

fn meet(one: &Redis, other: &Redis) {
    one.cli(&["cluster", "meet", "127.0.0.1", &other.port().to_string(), &bus_of(other)]);
}

/// The node's own line of `CLUSTER NODES`.
fn myself(nodes: &str) -> &str {
    nodes.lines().find(|line| line.contains("myself")).expect("a node knows itself")
}

/// The port on which a node hears the others: `<id> <ip>:<port>@<bus>,<hostname> …`.
fn bus_of(node: &Redis) -> String {
    let nodes = node.cli(&["cluster", "nodes"]);
    let bus = myself(&nodes).split('@').nth(1).and_then(|rest| rest.split([',', ' ']).next());
    bus.expect("a node tells its bus").to_owned()
}

fn id_of(node: &Redis) -> String {
    node.cli(&["cluster", "myid"]).trim().to_owned()
}

/// The id of a node that may be away, from the file that it keeps.
fn id_of_killed(node: &Redis) -> String {
    let nodes = std::fs::read_to_string(node.directory().join("nodes.conf")).expect("a node of a cluster has a file");
    myself(&nodes).split(' ').next().expect("a line has a first word").to_owned()
}

fn is_failed(flags: &str) -> bool {
    flags.split(',').any(|flag| flag == "fail")
}
