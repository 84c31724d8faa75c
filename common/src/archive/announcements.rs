//! What accepted writes leave for other programs to be told.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::announce::Numbered;
use crate::error::Result;

/// The announcements of accepted writes. Each is stored in the transaction of its write: nothing that was accepted is
/// missing, and nothing that was refused is there. Imported history is not announced.
#[async_trait]
pub trait Announcements: Send + Sync + 'static {
    /// The announcements with greater numbers than `after`, by number, at most `limit`. Those that belong together are
    /// in the order of their writes, and none of them appears later below one that was read: all of one item; all of
    /// one author's class and of all its items but notifications; the follows of one reader; the shields between two
    /// users. Where [`growth`](Self::growth) answers, this holds for all announcements together, and the numbers are
    /// dense.
    async fn announced(&self, after: u64, limit: usize) -> Result<Vec<Numbered>>;

    /// Forgets these announcements, durably when the call answers. Repeating the call changes nothing.
    async fn forget_announced(&self, numbers: &[u64]) -> Result<()>;

    /// Whether the relay of the process with this name, which no other process has, may publish for as long as `lease`.
    /// No other relay may publish until then, and the same relay may ask again at any time. An Archive of one process
    /// has one relay, and says yes.
    async fn may_publish(&self, relay: &str, lease: Duration) -> Result<bool>;

    /// A stream of the last number given to an announcement: the present number at once, then each time a greater one.
    /// The stream may skip numbers. `None` if announcements are for a relay, which forgets them. Else the Archive keeps
    /// them for a time.
    fn growth(&self) -> Option<BoxStream<'static, u64>>;
}
