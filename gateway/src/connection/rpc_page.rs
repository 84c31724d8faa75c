//! `rpc page`: a stretch of the feed in display order, the same JSON as by HTTP.

use std::sync::Arc;

use super::outcome::{Outcome, Then, bad};
use crate::Gateway;
use crate::identity::Identity;
use crate::page_json::{LIMIT_DEFAULT, LIMIT_MAX, parse_cursor};
use crate::protocol::{PageAsk, Reply};

/// Carries it out. Changes nothing.
pub(crate) async fn page(gateway: Arc<Gateway>, who: Arc<Identity>, asked: Box<PageAsk>) -> Outcome {
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
    gateway.touches.note(key);
    let _turn = gateway.reads.acquire().await.expect("the semaphore is never closed");
    let page = gateway.parts.feeds.page(key, before, limit).await?;
    Ok(Then::Reply(Reply::Page(Box::new(page.into()))))
}
