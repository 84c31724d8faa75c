//! Redis servers of a test's own: child processes on free ports of loopback, gone with the test.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, FromRedisValue, cmd};
use tempfile::TempDir;

/// A redis-server. Every write is in its append-only file before it is answered.
pub(crate) struct Server {
    dir: TempDir,
    port: u16,
    bus: u16,
    clustered: bool,
    process: Child,
}

impl Server {
    /// Starts one and waits until it answers.
    pub(crate) async fn start(clustered: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (port, bus) = (free_port(), free_port());
        let server = Self { process: launch(dir.path(), port, bus, clustered), dir, port, bus, clustered };
        server.answers().await;
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills it and starts it again on the same port, with or without what it had.
    pub(crate) async fn restart(&mut self, with_data: bool) {
        self.kill();
        if !with_data {
            std::fs::remove_dir_all(self.dir.path().join("appendonlydir")).unwrap();
        }
        self.process = launch(self.dir.path(), self.port, self.bus, self.clustered);
        self.answers().await;
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// A command, past the pool.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> T {
        command.query_async(&mut self.connection().await.unwrap()).await.unwrap()
    }

    async fn connection(&self) -> redis::RedisResult<MultiplexedConnection> {
        Client::open(self.url()).unwrap().get_multiplexed_async_connection().await
    }

    async fn answers(&self) {
        until("a redis-server answers", async || {
            let Ok(mut connection) = self.connection().await else { return false };
            cmd("PING").query_async::<String>(&mut connection).await.is_ok()
        })
        .await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A Redis Cluster of three masters.
pub(crate) struct Cluster(pub(crate) Vec<Server>);

impl Cluster {
    pub(crate) async fn start() -> Self {
        let mut nodes = vec![];
        for slots in [(0, 5000), (5001, 10_000), (10_001, 16_383)] {
            let node = Server::start(true).await;
            node.ask::<()>(cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(slots.0).arg(slots.1)).await;
            nodes.push(node);
        }
        for node in &nodes[1..] {
            nodes[0].ask::<()>(cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(node.port).arg(node.bus)).await;
        }
        let cluster = Self(nodes);
        cluster.whole().await;
        cluster
    }

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> = self.0.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis://{}", hosts.join(","))
    }

    /// Waits until every node knows who has which slot.
    pub(crate) async fn whole(&self) {
        for node in &self.0 {
            until("the cluster is whole", async || {
                let info: String = node.ask(cmd("CLUSTER").arg("INFO")).await;
                info.contains("cluster_state:ok") && info.contains("cluster_size:3")
            })
            .await;
        }
    }
}

/// Waits for a condition that is sure to come.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited 30 s in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn launch(dir: &Path, port: u16, bus: u16, clustered: bool) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"]).arg(dir);
    command.args(["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
    if clustered {
        command.args(["--cluster-enabled", "yes", "--cluster-port", &bus.to_string()]);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("redis-server is installed")
}
