//! A feed between two runs of an app.

use serde::{Deserialize, Serialize};

use crate::{Feed, Item, Limits, Place, Position};

/// How a feed is kept between two runs of an app.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stored {
    items: Vec<Item>,
    next: Option<String>,
    position: Option<Position>,
    bottom: Option<Place>,
}

impl Feed {
    /// A feed as [`Self::stored`] gave it.
    pub fn restored(limits: Limits, stored: Stored) -> Self {
        let Stored { items, next, position, bottom } = stored;
        let rewritten = position.as_ref().map_or(0, |position| position.offset);
        let items = items.into_iter().map(|item| (item.id().to_owned(), item)).collect();
        Self { limits, position, next, items, bottom, rewritten, held: Vec::new() }
    }

    /// The feed as it is kept between two runs of an app.
    pub fn stored(&self) -> Stored {
        let items = self.sorted().into_iter().cloned().collect();
        Stored { items, next: self.next.clone(), position: self.position.clone(), bottom: self.bottom.clone() }
    }
}
