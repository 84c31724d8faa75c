//! Who makes a request, and what that caller may do.
//!
//! ```text
//!   Authorization: Bearer <api key>   Backend   everything
//!                  Bearer <JWT>       Reader    GET on what belongs to `sub`, nothing else
//! ```
//!
//! A handler states its need by the first extractor it takes: [`Backend`], or [`Caller`] and then [`Caller::may_read`].
//! So credentials are checked before anything else of the request is. They are never part of a problem or a log line;
//! nothing here can print them. On a port that offers [`Surface::Readers`] no caller is a Backend.
//!
//! The reads of each reader, and of all readers at one address, are limited in number at once and per second. This is
//! checked here too, so that it holds for every route that a reader's token opens. The rate of backends is not limited.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use feedgate_common::UserId;

use super::Api;
use super::answer::{Tickets, Turn};
use super::problem::{Kind, Problem};
use crate::Surface;
use crate::auth::TokenError;
use crate::limits::budget::Share;
use crate::net::address::Client;
use crate::net::lobby::{Guest, Standing};

/// A caller whose credentials are valid.
pub(crate) struct Caller {
    /// The user whose token it is; `None` for a caller with the API key.
    reader: Option<UserId>,
    share: Arc<Share>,
    tickets: Tickets,
}

/// A caller with the API key.
pub(crate) struct Backend(pub(crate) Caller);

impl Caller {
    /// 403 unless the caller may read what belongs to `user`.
    pub(crate) fn may_read(&self, user: &UserId) -> Result<(), Problem> {
        match &self.reader {
            Some(me) if me != user => Err(Problem::new(
                Kind::Forbidden,
                format!("this token is of user {me} and opens nothing of user {user}"),
            )),
            _ => Ok(()),
        }
    }

    /// The user whose token this is; `None` for a backend.
    pub(crate) fn reader(&self) -> Option<&UserId> {
        self.reader.as_ref()
    }

    /// Waits for room for `bytes`, the most that the read and its answer take in memory, and until the stores may be
    /// read. Holds nothing if it fails or is dropped.
    pub(crate) async fn turn(self, api: &Api, bytes: usize) -> Result<Turn<'_>, Problem> {
        let held = self.share.reserve(bytes).await?;
        Ok(Turn::new(held, self.tickets, api.gateway.node.turn().await))
    }
}

impl FromRequestParts<Arc<Api>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let bearer = bearer(parts)?;
        let gateway = &api.gateway;
        if Surface::of(parts) == Surface::All && gateway.keys.is_api_key(bearer) {
            shown(parts, Standing::Backend);
            return Ok(Self { reader: None, share: gateway.budget.of_backends(), tickets: Tickets::default() });
        }
        // The read is counted before the token is checked, so that guessing tokens counts too.
        let client = Client::of(&parts.extensions);
        let address = client.0.map(|key| gateway.addresses.begin(key, gateway.node.elapsed_ms())).transpose()?;
        let user = gateway.verify(bearer, client).map_err(refused)?.user;
        shown(parts, Standing::Reader);
        let tickets =
            Tickets { _user: Some(gateway.users.begin(user.clone(), gateway.node.elapsed_ms())?), _address: address };
        Ok(Self { share: gateway.budget.of(&user), reader: Some(user), tickets })
    }
}

impl FromRequestParts<Arc<Api>> for Backend {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        if Surface::of(parts) == Surface::Readers {
            let detail = "what takes the API key is not on this port; it is where the server's admin_listen says";
            return Err(Problem::new(Kind::NoSuchRoute, detail));
        }
        let caller = Caller::from_request_parts(parts, api).await?;
        match caller.reader {
            None => Ok(Self(caller)),
            Some(_) => Err(Problem::new(Kind::Forbidden, "a reader's token may not do this; it takes the API key")),
        }
    }
}

/// The problem for a token that was refused.
fn refused(error: TokenError) -> Problem {
    let detail = match error {
        TokenError::Expired => "the token has expired; get a new one from your backend".to_owned(),
        TokenError::Invalid(why) => {
            format!("the bearer is neither the API key nor a token that this server takes ({why})")
        }
    };
    Problem::new(Kind::BadCredentials, detail)
}

/// Notes at the connection which credentials it has shown.
fn shown(request: &Parts, standing: Standing) {
    if let Some(guest) = Guest::of(&request.extensions) {
        guest.shows(standing);
    }
}

/// The credentials of the request; there must be exactly one `Authorization` header.
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
