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
use super::answer::{Permit, Tickets};
use super::problem::{Kind, Problem};
use crate::auth::TokenError;
use crate::auth::verifier::Verifier;
use crate::limits::budget::{Budget, Share};
use crate::limits::quotas::Quotas;
use crate::net::address::{AddressKey, Client};
use crate::net::lobby::{Guest, Standing};
use crate::net::surface::Surface;
use crate::node::Node;

/// What a caller is checked with, and what the reads of callers are limited by.
pub(crate) struct Access {
    pub(super) verifier: Arc<Verifier>,
    budget: Arc<Budget>,
    /// Limits what each user reads.
    users: Arc<Quotas<UserId>>,
    /// Limits what is read from each address.
    addresses: Arc<Quotas<AddressKey>>,
    node: Arc<Node>,
}

impl Access {
    pub(crate) fn new(node: Arc<Node>, verifier: Arc<Verifier>, budget: Arc<Budget>) -> Arc<Self> {
        let settings = &node.settings;
        let users = Quotas::new(settings.reads_per_user, settings.reads_per_user_per_sec);
        let addresses = Quotas::new(settings.reads_per_address, settings.reads_per_address_per_sec);
        Arc::new(Self { verifier, budget, users, addresses, node })
    }

    /// Admits the caller of a request, or says why not.
    fn admit(&self, request: &Parts) -> Result<Caller, Problem> {
        let (bearer, node) = (bearer(request)?, self.node.clone());
        if Surface::of(request) == Surface::All && self.verifier.keys.is_api_key(bearer) {
            shown(request, Standing::Backend);
            return Ok(Caller { reader: None, share: self.budget.of_backends(), tickets: Tickets::default(), node });
        }
        // The read is counted before the token is checked, so that guessing tokens counts too.
        let client = Client::of(&request.extensions);
        let address = client.0.map(|key| self.addresses.begin(key, node.elapsed_ms())).transpose()?;
        let user = self.verifier.verify(bearer, client).map_err(refused)?.user;
        shown(request, Standing::Reader);
        let tickets = Tickets { _user: Some(self.users.begin(user.clone(), node.elapsed_ms())?), _address: address };
        Ok(Caller { share: self.budget.of(&user), reader: Some(user), tickets, node })
    }
}

/// A caller whose credentials are valid.
pub(crate) struct Caller {
    /// The user whose token it is; `None` for a caller with the API key.
    reader: Option<UserId>,
    share: Arc<Share>,
    tickets: Tickets,
    node: Arc<Node>,
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
    pub(crate) async fn permit(self, bytes: usize) -> Result<Permit, Problem> {
        let held = self.share.reserve(bytes).await?;
        Ok(Permit::new(held, self.tickets, self.node.read_permit().await))
    }
}

impl FromRequestParts<Api> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        api.access.admit(parts)
    }
}

impl FromRequestParts<Api> for Backend {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
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
