//! An Archive with an item in it, for unit tests of what stands around items.

use std::path::Path;

use feedgate_common::archive::{Publish, Write, Writes, Written};
use feedgate_common::{Body, ItemId, Millis};

use super::EmbeddedArchive;
use crate::database::Database;

/// The Archive in this directory.
pub(super) async fn open(dir: &Path) -> EmbeddedArchive {
    EmbeddedArchive::open(Database::open(dir).unwrap(), 16).await.unwrap()
}

/// A new item by the user ann.
pub(super) async fn published(archive: &EmbeddedArchive) -> ItemId {
    published_at(archive, 1).await
}

/// A new item by the user ann, accepted at this Unix time in ms.
pub(super) async fn published_at(archive: &EmbeddedArchive, now: Millis) -> ItemId {
    let publish = Publish::new("ann".parse().unwrap(), Body::parse("1".to_owned()).unwrap());
    let written = archive.write(vec![Write::Publish(publish)], now).await.unwrap().remove(0);
    let Ok(Written::Published { id, .. }) = written else { panic!("{written:?}") };
    id
}
