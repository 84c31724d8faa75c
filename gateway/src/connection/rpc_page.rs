//! Carries out `rpc page`: gives a page of the feed in display order, as the same JSON as by HTTP. A page of large
//! items has fewer items.

use std::sync::Arc;

use feedgate_common::around::Viewer;
use feedgate_common::feed::Limit;

use super::outcome::{Outcome, Then, bad};
use super::shared::Shared;
use crate::around::AROUND_MAX;
use crate::limits::budget::{REPLY_BYTES, most_with_people};
use crate::node::identity::Identity;
use crate::protocol::one_line::one_line;
use crate::protocol::page_json::{LIMIT_DEFAULT, LIMIT_MAX, PageJson};
use crate::protocol::{Large, PageAsk, Reply};

/// Carries out `rpc page`. May be dropped at any time.
pub(crate) async fn page(shared: Arc<Shared>, who: Arc<Identity>, asked: Box<PageAsk>) -> Outcome {
    let limit = match asked.limit {
        None => LIMIT_DEFAULT,
        Some(limit @ 1..=100) => limit as usize,
        Some(other) => return Err(bad(format!("rpc page: limit must be 1 to {LIMIT_MAX}, not {other}"))),
    };
    let key = who.inbox(asked.feed);
    shared.reads.touches.note(key);
    let bytes = most_with_people(limit + 1, REPLY_BYTES) + limit * AROUND_MAX;
    let mut held = shared.budget.of(&who.user.id).reserve(bytes).await?;
    let _permit = shared.reads.permit().await;
    let page = shared.reads.pages.page(key, asked.before, Limit { items: limit, bytes: REPLY_BYTES }).await?;
    let archive = &**shared.reads.feeds.archive();
    let onlooker = shared.reads.feeds.onlooker(Viewer::User(Some(key.reader)));
    let page = PageJson::joined(page, archive, onlooker, REPLY_BYTES).await?;
    let mut bytes = serde_json::to_vec(&page).expect("a page is plain data");
    one_line(&mut bytes);
    held.shrink(bytes.capacity());
    Ok(Then::Reply(Reply::Page(Large { bytes, held: Some(held) })))
}
