//! How every stream of this crate is set up.

use std::fmt::Display;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::Config;
use feedgate_common::StoreError;
use feedgate_common::error::Result;

use crate::bus::{Bus, not_set_up};

/// Creates the stream if it is missing, and sets it to `config` if it differs. Gives its number of replicas, which is
/// never lowered here: an operator who wants more copies of a stream raises the number in NATS, and it must outlast
/// every start of a process.
pub(crate) async fn stream(bus: &Bus, mut config: Config) -> Result<usize> {
    let name = config.name.clone();
    config.num_replicas = config.num_replicas.max(replicas(bus, &name).await?);
    let stream = bus.jetstream().create_or_update_stream(config).await;
    Ok(stream.map_err(|error| cannot(&name, error))?.config.num_replicas)
}

/// How many replicas the stream has; 0 if it is missing.
async fn replicas(bus: &Bus, name: &str) -> Result<usize> {
    match bus.jetstream().get_stream(name).await {
        Ok(stream) => Ok(stream.cached_info().config.num_replicas),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(refusal) if refusal.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(0),
            _ => Err(cannot(name, error)),
        },
    }
}

fn cannot(name: &str, error: impl Display) -> StoreError {
    not_set_up(format_args!("stream {name}"), error)
}
