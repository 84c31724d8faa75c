//! The connection to one server, made when it is needed and replaced when it has failed.

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, Cmd, RedisResult, Value};
use tokio::sync::Mutex;

use super::Timeouts;

/// A connection to one Redis server, shared by all calls.
pub(super) struct Single {
    client: Client,
    config: AsyncConnectionConfig,
    current: Mutex<Option<MultiplexedConnection>>,
}

impl Single {
    pub(super) fn new(client: Client, timeouts: Timeouts) -> Self {
        // The caller limits how long the whole call may take.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(timeouts.connect)).set_response_timeout(None);
        Self { client, config, current: Mutex::default() }
    }

    pub(super) async fn call(&self, command: &Cmd) -> RedisResult<Value> {
        self.connection().await?.req_packed_command(command).await
    }

    /// In a cluster: a command about keys that are on their way to this server.
    pub(super) async fn call_asking(&self, command: &Cmd) -> RedisResult<Value> {
        let both = redis::pipe().add_command(redis::cmd("ASKING")).add_command(command.clone()).clone();
        let answers = self.connection().await?.req_packed_commands(&both, 0, 2).await?;
        Ok(answers.into_iter().last().unwrap_or(Value::Nil))
    }

    /// The next call connects anew. Calls under way end as they may.
    pub(super) fn forget(&self) {
        // If it is locked, somebody is connecting already.
        if let Ok(mut current) = self.current.try_lock() {
            *current = None;
        }
    }

    /// One call connects, the others wait for it.
    async fn connection(&self) -> RedisResult<MultiplexedConnection> {
        let mut current = self.current.lock().await;
        if let Some(connection) = &*current {
            return Ok(connection.clone());
        }
        let connection = self.client.get_multiplexed_async_connection_with_config(&self.config).await?;
        Ok(current.insert(connection).clone())
    }
}
