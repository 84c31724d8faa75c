//! A Redis of the benchmark's own, without persistence.

use feedgate_engines::Redis;
use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, FromRedisValue, Pipeline, Value, cmd};

pub(crate) struct Server {
    pub(crate) redis: Redis,
    connection: MultiplexedConnection,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let redis = Redis::start_with(&["--appendonly", "no"]);
        let client = Client::open(redis.url()).unwrap();
        Self { connection: client.get_multiplexed_async_connection().await.unwrap(), redis }
    }

    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> T {
        command.query_async(&mut self.connection.clone()).await.unwrap()
    }

    pub(crate) async fn send(&self, pipeline: &Pipeline) {
        let answers: Vec<Value> = pipeline.query_async(&mut self.connection.clone()).await.unwrap();
        assert!(!answers.is_empty());
    }

    /// Seconds of CPU it has used.
    pub(crate) async fn cpu(&self) -> f64 {
        let info: String = self.ask(cmd("INFO").arg("cpu")).await;
        let used = |field: &str| -> f64 {
            let line = info.lines().find_map(|line| line.strip_prefix(field)).unwrap();
            line.trim().parse().unwrap()
        };
        used("used_cpu_sys:") + used("used_cpu_user:")
    }
}
