//! Runs a script on a bucket. A bucket that has no life in this Redis gets one first.
//!
//! ```text
//!   script ─▶ answer                       no life: Redis is new, or has another past
//!     ▲  └ "life" ─▶ one call at a time ─▶ "life" again ─▶ an epoch after an announcement ─▶ renewed ┐
//!     └──────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```

use feedgate_common::error::{Result, StoreError};
use feedgate_common::{Bucket, InboxKey};

use super::RedisInboxes;
use super::layout::{bucket_key, inbox_key, number};
use super::scripts::Reply;
use crate::link::Script;

/// How often a bucket may turn out to have no life within one call.
const TRIES: usize = 4;

impl RedisInboxes {
    /// A script on one inbox.
    pub(super) async fn on_inbox(&self, script: &Script, key: InboxKey, arguments: Vec<Vec<u8>>) -> Result<Reply> {
        let bucket = self.bucket_of(key);
        self.run(script, bucket, &[bucket_key(bucket), inbox_key(bucket, key)], arguments).await
    }

    /// A script on one bucket; if the bucket has no life here, it gets one first.
    pub(super) async fn run(
        &self,
        script: &Script,
        bucket: Bucket,
        keys: &[Vec<u8>],
        mut arguments: Vec<Vec<u8>>,
    ) -> Result<Reply> {
        arguments.insert(0, self.layout.clone().into_bytes());
        let mut renewing = None;
        for _ in 0..TRIES {
            let reply = self.judged(Reply::of_one(self.link.script(script, keys, &arguments).await?)?)?;
            match (&*reply.word, &renewing) {
                ("life", None) => renewing = Some(self.renewals[usize::from(bucket.0)].lock().await),
                ("life", Some(_)) => self.renew(bucket).await?,
                _ => return Ok(reply),
            }
        }
        Err(StoreError::unavailable(format_args!("{bucket:?} loses its life in Redis as fast as it gets one")))
    }

    /// Judges the answers that any script may give without doing anything: an error, or the reply itself.
    pub(super) fn judged(&self, mut reply: Reply) -> Result<Reply> {
        match &*reply.word {
            "replica" => {
                self.link.look_again(None);
                Err(StoreError::unavailable("Redis answers as a replica; its master is looked for again"))
            }
            "layout" => Err(StoreError::corrupt(format_args!(
                "Redis holds inboxes of layout {} (version/buckets) and this process is set to {}: set the same number of buckets \
                 everywhere and run the version that made them, or empty this Redis",
                String::from_utf8_lossy(&reply.bytes()?),
                self.layout
            ))),
            _ => Ok(reply),
        }
    }

    /// Gives the bucket a life, and with it a least epoch, which is greater than the epoch of everything that the
    /// bucket holds. See `scripts/renew.lua`.
    async fn renew(&self, bucket: Bucket) -> Result<()> {
        let mut announced = Vec::new();
        for _ in 0..TRIES {
            let epoch = number(self.epochs.next_epoch().await?.0)?.to_string().into_bytes();
            let arguments = [self.layout.clone().into_bytes(), epoch, announced];
            let reply = self.link.script(&self.scripts.renew, &[bucket_key(bucket)], &arguments).await?;
            let mut reply = self.judged(Reply::of(reply)?)?;
            match &*reply.word {
                "announced" => announced = reply.bytes()?,
                "alive" => return Ok(()),
                "renewed" => {
                    match reply.number()? {
                        0 => tracing::info!(
                            ?bucket,
                            "Redis holds nothing of it: it is new, or was lost; inboxes are built as readers come"
                        ),
                        _ => tracing::warn!(
                            ?bucket,
                            "Redis was restarted, replaced or rolled back: inboxes are rebuilt as readers come"
                        ),
                    }
                    return Ok(());
                }
                "back" => {
                    return Err(StoreError::corrupt(format_args!(
                        "the Archive gives epochs that were given before ({} was): was it restored from a copy?",
                        String::from_utf8_lossy(&reply.bytes()?)
                    )));
                }
                _ => return Err(reply.unexpected()),
            }
        }
        Err(StoreError::unavailable(format_args!("others renew {bucket:?} at the same time")))
    }
}
