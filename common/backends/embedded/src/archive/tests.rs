//! What cannot be seen from outside.

use super::EmbeddedArchive;
use crate::database::Database;

#[tokio::test]
async fn a_store_keeps_the_layout_it_was_created_with() {
    let dir = tempfile::tempdir().unwrap();
    for buckets in [16, 64] {
        let db = Database::open(dir.path()).unwrap();
        let archive = EmbeddedArchive::open(db, buckets).await.unwrap();
        assert_eq!(archive.setup.buckets, 16);
    }
}
