//! The people of a page: the name and the avatar of each author of its items, each author once.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::archive::People;
use crate::error::Result;
use crate::people::Card;
use crate::{Item, UserId, UserNo};

/// Names and avatars of the authors of some items, by author. An author with neither is left out.
pub type Cards = BTreeMap<UserId, Card>;

/// The stored names and avatars of the authors of `items`: one read of the store, and none if there are no items. Fails
/// if the store does.
pub async fn people_of(people: &(impl People + ?Sized), items: &[Arc<Item>]) -> Result<Cards> {
    cards_of(people, items.iter().map(|item| (item.author_no, &item.author)).collect()).await
}

/// The stored names and avatars of these users: one read of the store, and none if there are no users. Fails if the
/// store does.
pub async fn cards_of(people: &(impl People + ?Sized), authors: BTreeMap<UserNo, &UserId>) -> Result<Cards> {
    if authors.is_empty() {
        return Ok(Cards::new());
    }
    let numbers: Vec<UserNo> = authors.keys().copied().collect();
    let cards = people.cards(&numbers).await?;
    let known = authors.into_values().zip(cards);
    Ok(known.filter_map(|(author, card)| Some((author.clone(), card.filter(|card| !card.is_empty())?))).collect())
}
