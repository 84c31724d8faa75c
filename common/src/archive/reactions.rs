//! Reactions to items, their counts, and what a viewer has done.

use async_trait::async_trait;

use crate::ItemId;
use crate::around::{Around, Onlooker, Place, Reacted, Reaction, ReactionKind, Unreacted};
use crate::error::Result;

/// Keeps who has reacted to which item. Reactions are state of the item: no reaction enters an outbox or an inbox.
#[async_trait]
pub trait Reactions: Send + Sync + 'static {
    /// Gives these reactions in one durable transaction, and answers for each in order: whether the reaction is new, or
    /// why it was refused, which stops no other. To give a reaction again changes nothing and succeeds. A dropped
    /// future leaves all of them done or none.
    ///
    /// Several calls at the same time, each with an item's first reactions of another new kind, may together pass
    /// [`KINDS_MAX`](crate::around::KINDS_MAX) by as many as there are calls.
    async fn react(&self, reactions: &[Reaction]) -> Result<Vec<std::result::Result<bool, Unreacted>>>;

    /// Takes these reactions back, in one transaction as [`Self::react`] gives them. Answers whether each reaction was
    /// there; the time in a reaction does not matter. Reactions to a deleted item are gone with it, so such an item is
    /// refused.
    async fn unreact(&self, reactions: &[Reaction]) -> Result<Vec<std::result::Result<bool, Unreacted>>>;

    /// What stands around each of `items`, in the order asked; empty for an item that does not live. Reactions are
    /// counted that the onlooker [sees](crate::around::shows_reaction), comments and reposts of everybody. One read of
    /// one snapshot, however many items are asked for: the answer shows every reaction that was answered before, and
    /// the counts agree with the viewer's own reactions.
    async fn around(&self, items: &[ItemId], onlooker: Onlooker) -> Result<Vec<Around>>;

    /// Who has reacted to an item, of those whose reactions the onlooker [sees](crate::around::shows_reaction), with
    /// `kind` or, if that is `None`, with any kind; newest first, strictly below the place `before`, at most `limit`.
    /// Empty if the item does not live.
    async fn reactions(
        &self,
        item: ItemId,
        onlooker: Onlooker,
        kind: Option<&ReactionKind>,
        before: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<Reacted>>;

    /// The first living item after `after` by id that has reactions. For an export.
    async fn reacted_item(&self, after: Option<ItemId>) -> Result<Option<ItemId>>;
}
