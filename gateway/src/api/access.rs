//! Who asks, and what that opens.
//!
//! ```text
//!   Authorization: Bearer <api key>   Backend   everything
//!                  Bearer <JWT>       Reader    GET on what belongs to `sub`, nothing else
//! ```
//!
//! A handler states its need by the first extractor it takes: [`Backend`], or [`Caller`] and then
//! [`Caller::may_read`]. So credentials are judged before anything else of the request is. They are
//! never part of a problem or a log line; nothing here can print them. On a port that offers
//! [`Surface::Readers`] nobody is a Backend.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use feedgate_common::UserId;

use super::Api;
use super::problem::{Kind, Problem};
use crate::Surface;
use crate::auth::TokenError;

/// Somebody with good credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Holds the API key.
    Backend,
    /// Holds a token of this user.
    Reader(UserId),
}

/// Holds the API key.
#[derive(Debug)]
pub(crate) struct Backend;

impl Caller {
    /// 403 unless what belongs to `user` is open to the caller.
    pub(crate) fn may_read(&self, user: &UserId) -> Result<(), Problem> {
        match self {
            Self::Reader(me) if me != user => Err(Problem::new(
                Kind::Forbidden,
                format!("this token is of user {me} and opens nothing of user {user}"),
            )),
            Self::Backend | Self::Reader(_) => Ok(()),
        }
    }
}

impl FromRequestParts<Arc<Api>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let bearer = bearer(parts)?;
        let keys = &api.gateway.parts.keys;
        if Surface::of(parts) == Surface::All && keys.is_api_key(bearer) {
            return Ok(Self::Backend);
        }
        api.gateway.verify(bearer).map(|claims| Self::Reader(claims.user)).map_err(|error| {
            let detail = match error {
                TokenError::Expired => "the token has expired; get a new one from your backend".to_owned(),
                TokenError::Invalid(why) => {
                    format!("the bearer is neither the API key nor a token that this server takes ({why})")
                }
            };
            Problem::new(Kind::BadCredentials, detail)
        })
    }
}

impl FromRequestParts<Arc<Api>> for Backend {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        if Surface::of(parts) == Surface::Readers {
            let detail = "what takes the API key is not on this port; it is where the server's admin_listen says";
            return Err(Problem::new(Kind::NoSuchRoute, detail));
        }
        match Caller::from_request_parts(parts, api).await? {
            Caller::Backend => Ok(Self),
            Caller::Reader(_) => {
                Err(Problem::new(Kind::Forbidden, "a reader's token may not do this; it takes the API key"))
            }
        }
    }
}

/// The credentials, of which there must be one.
fn bearer(parts: &Parts) -> Result<&str, Problem> {
    let mut lines = parts.headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else {
        let detail = "send the header Authorization: Bearer and the API key, or a reader's token";
        return Err(Problem::new(Kind::NoCredentials, detail));
    };
    if lines.next().is_some() {
        return Err(Problem::new(Kind::BadCredentials, "there are two Authorization headers; send one"));
    }
    let bearer = line.to_str().ok().and_then(|line| line.split_once(' ')).and_then(|(scheme, rest)| {
        scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim()).filter(|rest| !rest.is_empty())
    });
    bearer
        .ok_or_else(|| Problem::new(Kind::BadCredentials, "the Authorization header must be Bearer and one credential"))
}
