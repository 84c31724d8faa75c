//! The shields between users: a user can mute others (not see them), hide from them (not be seen by them), or block
//! them (both).
//!
//! A change is durable when it is answered; the lists show it at once, the feeds soon after. Putting up a shield that
//! is up already changes nothing. Each shield is taken down separately.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, put};
use feedgate_common::archive::Write;
use feedgate_common::graph::Shield;
use feedgate_common::{Archive, UserId};

use super::access::{Caller, PublishKey};
use super::problem::Problem;
use super::query::{NoQuery, Query, Segment, Segments};
use super::writer::Writer;
use super::{Api, follows};

/// Answers `PUT` and `DELETE` of `/v1/users/{user}/{muted|hidden|blocked}/{other}`.
pub(super) fn one(shield: Shield) -> MethodRouter<Api> {
    let handler = move |up| {
        move |_: PublishKey, State(writer): State<Writer>, names: Segments<UserId, UserId>, _: NoQuery| async move {
            set(&writer, shield, names, up).await
        }
    };
    put(handler(true)).delete(handler(false))
}

/// Answers `GET /v1/users/{user}/{muted|hidden|blocked}` with the users for whom this shield is up.
pub(super) fn all(shield: Shield) -> MethodRouter<Api> {
    get(move |caller: Caller, State(archive): State<Arc<dyn Archive>>, of: Segment<UserId>, query: Query| async move {
        let Segment(user) = of;
        caller.may_read(&user)?;
        follows::list(&*archive, caller, &user, query, |user, cursor, limit| {
            archive.shielded(user, shield, cursor, limit)
        })
        .await
    })
}

async fn set(
    writer: &Writer,
    shield: Shield,
    Segments(user, other): Segments<UserId, UserId>,
    up: bool,
) -> Result<StatusCode, Problem> {
    let write = write(user, other, shield, up).map_err(|why| Problem::parameter("other", format!("other {why}")))?;
    writer.write_one(write).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The write that puts a shield up or takes it down; the error says what is wrong.
pub(super) fn write(user: UserId, other: UserId, shield: Shield, up: bool) -> Result<Write, &'static str> {
    check(&user, &other)?;
    Ok(Write::Shield { user, other, shield, up })
}

/// Checks that `user` and `other` are different users; the error says what is wrong.
pub(super) fn check(user: &UserId, other: &UserId) -> Result<(), &'static str> {
    match user == other {
        true => Err("must be another user: nobody mutes, hides from or blocks themself"),
        false => Ok(()),
    }
}
