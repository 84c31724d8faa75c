//! The lives of the buckets: calls that need one, and a look at all of them.
//!
//! A script that finds its bucket without a life answers nil and has done nothing. It is then sent again with an
//! epoch from the Archive, which begins one, unless another call has begun one meanwhile.

use feedgate_common::error::{Result, StoreError};
use feedgate_common::{Bucket, Epoch};
use futures_util::future::try_join_all;
use redis::Value;

use super::RedisSessions;
use super::scripts::{bucket_key, number, reply, words};
use crate::link::Script;

/// How often a bucket may lose its life under one call.
const TRIES: usize = 4;

impl RedisSessions {
    /// Runs a script that needs the bucket to have a life; its first argument is the epoch of a new one, if it comes to
    /// that.
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

    /// The epoch of every bucket's life. Those that have none begin one, all in the same epoch.
    pub(super) async fn lives(&self) -> Result<Vec<Epoch>> {
        let life = |bucket: u16| [bucket_key(Bucket(bucket))];
        let found = (0..self.buckets).map(|bucket| async move {
            let none = Vec::from(words![""]);
            reply::<Option<String>>(self.link.script(&self.scripts.life, &life(bucket), &none).await?)
        });
        let mut lives = try_join_all(found).await?;
        if lives.contains(&None) {
            let fresh = &self.epochs.next_epoch().await?;
            let begun = lives.iter().enumerate().filter(|(_, life)| life.is_none()).map(|(bucket, _)| async move {
                let fresh = Vec::from(words![fresh.0]);
                let begun = self.in_life(&self.scripts.life, &life(bucket as u16), fresh).await?;
                Ok::<_, StoreError>((bucket, reply::<Option<String>>(begun)?))
            });
            for (bucket, life) in try_join_all(begun).await? {
                lives[bucket] = life;
            }
        }
        lives.iter().flatten().map(|epoch| number(epoch).map(Epoch)).collect()
    }
}
