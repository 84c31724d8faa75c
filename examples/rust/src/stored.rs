//! A feed between two runs of an app.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Feed, Item, Limits, Person, Place, Position};

/// How a feed is kept between two runs of an app.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stored {
    items: Vec<Item>,
    next: Option<String>,
    position: Option<Position>,
    bottom: Option<Place>,
    #[serde(default)]
    people: BTreeMap<String, Person>,
}

impl Feed {
    /// A feed as [`Self::stored`] gave it.
    pub fn restored(limits: Limits, stored: Stored) -> Self {
        let Stored { items, next, position, bottom, people } = stored;
        let rewritten = position.as_ref().map_or(0, |position| position.offset);
        let items = items.into_iter().map(|item| (item.id().to_owned(), item)).collect();
        Self { limits, position, next, items, people, bottom, rewritten, ..Self::default() }
    }

    /// The feed as it is kept between two runs of an app.
    pub fn stored(&self) -> Stored {
        let items = self.sorted().into_iter().cloned().collect();
        let (position, bottom, people) = (self.position.clone(), self.bottom.clone(), self.people.clone());
        Stored { items, next: self.next.clone(), position, bottom, people }
    }
}
