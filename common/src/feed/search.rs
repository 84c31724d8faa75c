//! A page of a search: candidates of the index, each read as it is now, that match and that the viewer may see.

use std::sync::Arc;

use async_trait::async_trait;

use super::limit::{Limit, Stretch};
use crate::archive::Search;
use crate::error::Result;
use crate::search::{ItemQuery, LOOKED_AT, SearchPlace, TextFields};
use crate::{Item, ItemId};

/// How often one page asks the index at most. Each time, the index reads a bounded number of rows.
const LOOKS_MAX: usize = 16;

/// How many bytes of bodies one page looks at.
const LOOKED_AT_BYTES: usize = 2 << 20;

/// Reads items as somebody may see them.
#[async_trait]
pub trait Seeing: Send + Sync {
    /// The items of these ids that live and may be seen, as they are now, in the order asked; `None` for the others.
    async fn of(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>>;
}

/// What a search has found.
#[derive(Debug, Default)]
pub struct FoundItems {
    /// The items, newest first.
    pub items: Vec<Arc<Item>>,
    /// Behind which place to go on; `None` if everything was looked at, and only then.
    pub next: Option<SearchPlace>,
    /// Whether the index is still being built, so that items may be missing.
    pub building: bool,
}

/// The items that are looked for, strictly behind a place, until `page` is full. It looks at a bounded number of
/// candidates, so a page may be shorter and yet go on. Fails if a store does.
pub async fn find_items(
    index: &(impl Search + ?Sized),
    fields: &TextFields,
    query: &ItemQuery,
    seeing: &dyn Seeing,
    mut behind: Option<SearchPlace>,
    page: Limit,
) -> Result<FoundItems> {
    let (mut stretch, mut building, mut looked, mut bytes) = (Stretch::new(page), false, 0, 0);
    for _ in 0..LOOKS_MAX {
        let hits = index.find(fields, &query.look(behind, stretch.wants())).await?;
        building |= hits.building;
        let ids: Vec<ItemId> = hits.places.iter().map(|place| ItemId(place.id)).collect();
        let seen = if ids.is_empty() { vec![] } else { seeing.of(&ids).await? };
        for (place, item) in hits.places.into_iter().zip(seen) {
            looked += 1;
            bytes += item.as_ref().map_or(0, |item| item.bytes());
            stretch.extend(item.filter(|item| query.takes(fields, item)));
            if stretch.is_cut() {
                return Ok(FoundItems { items: stretch.finish().0, next: behind, building });
            }
            behind = Some(place);
        }
        if hits.next.is_none() {
            return Ok(FoundItems { items: stretch.finish().0, next: None, building });
        }
        behind = hits.next;
        if looked >= LOOKED_AT || bytes >= LOOKED_AT_BYTES {
            break;
        }
    }
    Ok(FoundItems { items: stretch.finish().0, next: behind, building })
}
