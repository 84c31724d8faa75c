//! Changes of what stands around items that also tell those whom they concern.

use async_trait::async_trait;
use compact_str::CompactString;

use crate::around::{CommentWrite, Commented, Reaction, Uncommented, Unreacted};
use crate::error::Result;
use crate::notify::lines::{Line, Member};
use crate::notify::{Notified, Rules};
use crate::{ItemId, Millis, UserNo};

/// Tells users by direct items what other users did, in the transaction of the change that is told. [`Writes::write`]
/// does so for follows and reposts; this trait makes the changes around items. [`Reactions::react`],
/// [`Reactions::unreact`] and [`Comments::comment`] tell nobody: these three are for imported history and for erasures.
///
/// [`Writes::write`]: super::Writes::write
/// [`Reactions::react`]: super::Reactions::react
/// [`Reactions::unreact`]: super::Reactions::unreact
/// [`Comments::comment`]: super::Comments::comment
#[async_trait]
pub trait Notifications: Send + Sync + 'static {
    /// Sets the rules by which users are told, for all later calls of this handle. Until then, users are told of
    /// nothing. All nodes must set the same rules.
    fn notify_by(&self, rules: Rules);

    /// Gives these reactions (`on`) or takes them back, as [`Reactions::react`](super::Reactions::react) and
    /// [`Reactions::unreact`](super::Reactions::unreact) do, and tells the authors of the items. A reaction that
    /// changes nothing tells nobody. One durable transaction.
    async fn react_and_notify(
        &self,
        reactions: &[Reaction],
        on: bool,
    ) -> Result<Notified<std::result::Result<bool, Unreacted>>>;

    /// Makes these changes, as [`Comments::comment`](super::Comments::comment) does, and tells the author of the item,
    /// and of the comment that is answered. One durable transaction.
    async fn comment_and_notify(
        &self,
        writes: Vec<CommentWrite>,
        now: Millis,
    ) -> Result<Notified<std::result::Result<Commented, Uncommented>>>;

    /// Lets the deeds with these keys leave the lines that tell of them, seen or not. Answers the readers for whom
    /// something has changed. One durable transaction.
    async fn leave_lines(&self, keys: Vec<CompactString>, now: Millis) -> Result<Vec<UserNo>>;

    /// Members of lines with their lines, by line and place, strictly behind `after`, at most `limit`.
    async fn line_members(&self, after: Option<(ItemId, u64)>, limit: usize) -> Result<Vec<(ItemId, Line, Member)>>;
}
