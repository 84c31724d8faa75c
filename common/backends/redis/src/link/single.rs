//! The connection to one server, made when a call needs it and replaced when it has failed.

use feedgate_tls::StoreTls;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError,
    RedisResult, TlsCertificates, Value,
};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::Timeouts;

/// A connection to one Redis server, shared by all calls.
pub(super) struct Single {
    info: ConnectionInfo,
    tls: StoreTls,
    config: AsyncConnectionConfig,
    current: Mutex<Option<MultiplexedConnection>>,
}

impl Single {
    /// A connection to the server of `info`, by TLS with these files if `info` says TLS.
    pub(super) fn new(info: ConnectionInfo, tls: StoreTls, timeouts: Timeouts) -> Self {
        // The caller limits how long the whole call may take.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(timeouts.connect)).set_response_timeout(None);
        Self { info, tls, config, current: Mutex::default() }
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

    /// Drops the connection, so that the next call connects anew. Calls under way keep the old connection.
    pub(super) fn forget(&self) {
        // If it is locked, a call connects or takes the connection just now. The next call that fails comes here again.
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
        let connection = self.client().await?.get_multiplexed_async_connection_with_config(&self.config).await?;
        Ok(current.insert(connection).clone())
    }

    /// The client that connects, with the files for TLS as they are now.
    async fn client(&self) -> RedisResult<Client> {
        if self.tls.is_empty() || !matches!(self.info.addr(), ConnectionAddr::TcpTls { .. }) {
            return Client::open(self.info.clone());
        }
        let tls = self.tls.clone();
        let read = spawn_blocking(move || tls.read().map_err(|error| error.to_string()));
        let contents = read.await.map_err(|error| error.to_string()).flatten();
        let unread = |why| RedisError::from((ErrorKind::InvalidClientConfig, "a file for TLS", why));
        let contents = contents.map_err(unread)?;
        let client_tls = contents.client.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
        Client::build_with_tls(self.info.clone(), TlsCertificates { client_tls, root_cert: contents.ca })
    }
}
