//! The way to Redis: one server or a cluster, by URL.
//!
//! Invariants: no call takes longer than [`Timeouts::call`]; what a call did that was cut short is not known.

use std::time::Duration;

use feedgate_common::StoreError;
use feedgate_common::error::Result;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{Client, Cmd, Pipeline, RedisError, Script, Value};

/// How long Redis may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect.
    pub connect: Duration,
    /// To answer one call.
    pub call: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(2), call: Duration::from_secs(1) }
    }
}

/// A multiplexed connection, shared by everybody in the process. Cloning it is cheap.
#[derive(Clone)]
pub struct Link {
    route: Route,
    timeouts: Timeouts,
}

#[derive(Clone)]
enum Route {
    One(ConnectionManager),
    Cluster(ClusterConnection),
}

impl Link {
    /// Connects to `redis://host:port/db` or, with several hosts (`redis://a:7000,b:7000`), to the cluster they
    /// belong to; `rediss://` by TLS.
    ///
    /// # Errors
    /// `Unavailable`, naming the URL without its password, if it is no such URL or nobody answers.
    pub async fn connect(url: &str, timeouts: Timeouts) -> Result<Self> {
        let route = match cluster_hosts(url) {
            None => {
                let client = Client::open(url).map_err(|e| StoreError::unavailable(format_args!("inbox_url: {e}")))?;
                let config = ConnectionManagerConfig::new()
                    .set_connection_timeout(Some(timeouts.connect))
                    .set_response_timeout(Some(timeouts.call))
                    .set_number_of_retries(1);
                Route::One(ConnectionManager::new_with_config(client, config).await.map_err(failed)?)
            }
            Some(hosts) => {
                let client = ClusterClientBuilder::new(hosts)
                    .connection_timeout(timeouts.connect)
                    .response_timeout(timeouts.call)
                    .retries(2)
                    .build()
                    .map_err(failed)?;
                Route::Cluster(client.get_async_connection().await.map_err(failed)?)
            }
        };
        Ok(Self { route, timeouts })
    }

    /// One command.
    pub(crate) async fn call(&self, command: &Cmd) -> Result<Value> {
        self.within(async {
            match self.route.clone() {
                Route::One(mut connection) => connection.req_packed_command(command).await,
                Route::Cluster(mut connection) => connection.req_packed_command(command).await,
            }
        })
        .await
    }

    /// Commands sent together, an answer each; not one transaction. In a cluster all keys lie in one slot.
    pub(crate) async fn pipeline(&self, commands: &Pipeline) -> Result<Vec<Value>> {
        let count = commands.len();
        self.within(async {
            match self.route.clone() {
                Route::One(mut connection) => connection.req_packed_commands(commands, 0, count).await,
                Route::Cluster(mut connection) => connection.req_packed_commands(commands, 0, count).await,
            }
        })
        .await
    }

    /// A script by its hash; sent whole again if the server has forgotten it.
    pub(crate) async fn script(&self, script: &Script, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Result<Value> {
        let mut call = script.prepare_invoke();
        keys.iter().for_each(|key| _ = call.key(&key[..]));
        arguments.iter().for_each(|argument| _ = call.arg(&argument[..]));
        self.within(async {
            match self.route.clone() {
                Route::One(mut connection) => call.invoke_async(&mut connection).await,
                Route::Cluster(mut connection) => call.invoke_async(&mut connection).await,
            }
        })
        .await
    }

    async fn within<T>(&self, call: impl Future<Output = redis::RedisResult<T>>) -> Result<T> {
        match tokio::time::timeout(self.timeouts.call, call).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => {
                Err(StoreError::unavailable(format_args!("Redis did not answer within {:?}", self.timeouts.call)))
            }
        }
    }
}

/// The nodes named by a URL with several hosts, a URL each.
fn cluster_hosts(url: &str) -> Option<Vec<String>> {
    let (scheme, rest) = url.split_once("://")?;
    let (credentials, hosts) = rest.rsplit_once('@').map_or(("", rest), |(c, hosts)| (c, hosts));
    let at = if credentials.is_empty() { String::new() } else { format!("{credentials}@") };
    let hosts = hosts.trim_end_matches('/');
    hosts.contains(',').then(|| hosts.split(',').map(|host| format!("{scheme}://{at}{host}")).collect())
}

fn failed(error: RedisError) -> StoreError {
    StoreError::unavailable(format_args!("Redis: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_several_hosts_names_a_cluster() {
        assert_eq!(cluster_hosts("redis://127.0.0.1:6379/0"), None);
        let hosts = cluster_hosts("rediss://u:p@a:7000,b:7001/").unwrap();
        assert_eq!(hosts, ["rediss://u:p@a:7000", "rediss://u:p@b:7001"]);
    }
}
