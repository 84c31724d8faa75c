//! Carries out `rpc page`: gives a page of the feed in display order, as JSON like by HTTP; a page of large items is
//! shorter.

use std::sync::Arc;

use feedgate_common::feed::Limit;

use super::outcome::{Outcome, Then, bad};
use super::shared::Shared;
use crate::limits::budget::{REPLY_BYTES, most};
use crate::node::identity::Identity;
use crate::protocol::one_line::one_line;
use crate::protocol::page_json::{LIMIT_DEFAULT, LIMIT_MAX, PageJson, parse_cursor};
use crate::protocol::{Large, PageAsk, Reply};

/// Carries out `rpc page`. May be dropped at any time.
pub(crate) async fn page(shared: Arc<Shared>, who: Arc<Identity>, asked: Box<PageAsk>) -> Outcome {
    let limit = match asked.limit {
        None => LIMIT_DEFAULT,
        Some(limit @ 1..=100) => limit as usize,
        Some(other) => return Err(bad(format!("rpc page: limit must be 1 to {LIMIT_MAX}, not {other}"))),
    };
    let before = match asked.cursor.as_deref().map(parse_cursor).transpose() {
        Ok(before) => before,
        Err(why) => return Err(bad(format!("rpc page: {why}"))),
    };
    let key = who.inbox(asked.feed);
    shared.node.touches.note(key);
    let mut held = shared.budget.of(&who.user.id).reserve(most(limit + 1, REPLY_BYTES)).await?;
    let _permit = shared.node.read_permit().await;
    let page = shared.node.pages.page(key, before, Limit { items: limit, bytes: REPLY_BYTES }).await?;
    let mut bytes = serde_json::to_vec(&PageJson::from(page)).expect("a page is plain data");
    one_line(&mut bytes);
    held.shrink(bytes.capacity());
    Ok(Then::Reply(Reply::Page(Large { bytes, held: Some(held) })))
}
