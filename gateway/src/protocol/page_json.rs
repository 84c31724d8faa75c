//! A feed page as JSON, the same by HTTP and by `rpc page`, with the cursor that leads to the next page.
//!
//! ```text
//!   {"items":[{…}], "next":"AQAAA…" | null, "position":{"epoch":"7","offset":12}, "unread":3,
//!    "people":{"ann":{"name":"Ann","avatar":"/a.png"}}}   only if there is anything to show of an author
//!
//!   an item to which somebody has reacted: {…, "counts":{"like":3}, "own":["like"]}
//!   a repost: {…, "ref":"7", "ref_item":{…}}, or "ref_gone":true in place of "ref_item"
//! ```

use feedgate_common::around::Onlooker;
use feedgate_common::feed::{Cards, Page};
pub(crate) use feedgate_common::feed::{cursor_text, parse_cursor, parse_profile_cursor, profile_cursor_text};
use feedgate_common::{Archive, Position, error};
use serde::Serialize;

use crate::around::{self, Shown};

/// The most items on a page.
pub(crate) const LIMIT_MAX: usize = 100;

/// The number of items on a page if the client names none.
pub(crate) const LIMIT_DEFAULT: usize = 20;

/// A page as clients see it.
#[derive(Debug, Serialize)]
pub(crate) struct PageJson {
    items: Vec<Shown>,
    next: Option<String>,
    position: Position,
    unread: usize,
    #[serde(skip_serializing_if = "Cards::is_empty")]
    people: Cards,
}

impl PageJson {
    /// The page as the onlooker sees it: the items with what stands around them, and the people with the authors of
    /// originals too. A page that would then hold more than about `cut` bytes is cut shorter.
    pub(crate) async fn joined(
        page: Page,
        archive: &dyn Archive,
        onlooker: Onlooker,
        cut: usize,
    ) -> error::Result<Self> {
        let Page { items, mut next, position, unread, mut people } = page;
        let all = items.len();
        let items = around::join(archive, onlooker, items, cut).await?;
        if items.len() < all {
            next = items.last().map(|shown| shown.item().key());
            people.retain(|author, _| items.iter().any(|shown| shown.item().author == *author));
        }
        people.extend(around::authors_of_originals(archive, &items).await?);
        Ok(Self { items, next: next.map(cursor_text), position, unread, people })
    }
}
