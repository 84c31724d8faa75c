//! The lives of the buckets: calls that need one, and a look at all of them.
//!
//! A script that finds its bucket without a life answers nil and has done nothing. The script is then sent again with
//! an epoch from the Archive, with which a life begins, unless another call has begun a life meanwhile.

use feedgate_common::error::{Result, StoreError};
use feedgate_common::{Bucket, Epoch};
use futures_util::future::join_all;
use redis::Value;

use super::RedisSessions;
use super::scripts::{bucket_key, number, reply, words};
use crate::link::Script;

/// How often a bucket may lose its life under one call.
const TRIES: usize = 4;

impl RedisSessions {
    /// Runs a script that needs the bucket to have a life. The first argument of the script is replaced by the epoch of
    /// a new life, if a new life is needed.
    pub(super) async fn in_life(
        &self,
        script: &Script,
        keys: &[Vec<u8>],
        mut arguments: Vec<Vec<u8>>,
    ) -> Result<Value> {
        for _ in 0..TRIES {
            match self.link.script(script, keys, &arguments).await? {
                Value::Nil => arguments[0] = self.epochs.next_epoch().await?.0.to_string().into_bytes(),
                answer => return Ok(answer),
            }
        }
        Err(StoreError::unavailable("Redis lost its memory again and again while it was called"))
    }

    /// The epoch of every bucket's life; in a cluster `None` for a bucket whose master is away. A bucket without a life
    /// begins one.
    ///
    /// # Errors
    /// `Unavailable` if the only server, or every server of a cluster, is away, or the source of epochs is.
    pub(super) async fn lives(&self) -> Result<Vec<Option<Epoch>>> {
        let mut found = join_all((0..self.buckets).map(|bucket| self.life(Bucket(bucket)))).await;
        let away = found.iter().filter(|life| life.is_err()).count();
        if away == found.len() || away > 0 && !self.link.is_cluster() {
            let first = found.iter().position(Result::is_err).unwrap_or_default();
            found.swap_remove(first)?;
        }
        Ok(found.into_iter().map(Result::ok).collect())
    }

    async fn life(&self, bucket: Bucket) -> Result<Epoch> {
        let found = self.in_life(&self.scripts.life, &[bucket_key(bucket)], Vec::from(words![""])).await?;
        number(&reply::<String>(found)?).map(Epoch)
    }
}
