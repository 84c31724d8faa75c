//! Who makes a request, and what this caller may do.
//!
//! ```text
//!   Authorization: Bearer <API key>   backend   what the roles of the key allow: read, publish, admin
//!                  Bearer <key>       console   everything; the key of a session of the console
//!                  Bearer <JWT>       reader    GET on what belongs to `sub`, and on what is said of any user; writes in
//!                                               the name of `sub`: what was seen, reactions and comments; nothing else
//!   no request: a message of a backend           publish, and read; who may send one, the bus has checked
//! ```
//!
//! A handler states its need by the first extractor it takes. For a backend it is [`ReadKey`], [`PublishKey`] or
//! [`AdminKey`]. For a reader, or a backend that may read, it is [`Caller`], and then [`Caller::may_read`]; for a
//! reader who writes, or a backend that may publish, it is [`ReaderOrPublisher`], and then the same check. So
//! credentials are checked before anything else of the request is. They are never part of a problem or a log line;
//! nothing here can print them. On a port that offers [`Surface::Readers`] no caller is a backend.
//!
//! The reads of each reader, and of all readers at one address, are limited in number at once and per second. This is
//! checked here too, so that it holds for every route that a reader's token opens. The rate of backends is not limited.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use feedgate_common::UserId;
use feedgate_common::archive::Names;

use super::Api;
use super::answer::{Permit, Tickets};
use super::coding::Coding;
use super::inside::Inside;
use super::names::user_no;
use super::problem::{Kind, Problem};
use crate::auth::console::Console;
use crate::auth::verifier::Verifier;
use crate::auth::{Claims, Role, Roles, TokenError};
use crate::limits::budget::{Budget, Reservation, Share};
use crate::limits::quotas::{Quotas, Ticket, TooMany};
use crate::net::address::{AddressKey, Client};
use crate::net::lobby::{Guest, Standing};
use crate::net::surface::Surface;
use crate::node::revocations::Revocations;
use crate::node::uptime::Uptime;
use crate::node::{Node, Reads};
use crate::settings::{LiveSettings, Settings};

/// How many reads of its address a token that never was valid costs.
const REFUSED_COSTS: u32 = 10;

/// What callers are checked with, and what limits the reads of callers.
pub(crate) struct Access {
    pub(super) verifier: Arc<Verifier>,
    /// The tickets and the sessions of the console.
    pub(super) console: Arc<Console>,
    budget: Arc<Budget>,
    /// Limits what each user reads.
    users: Arc<Quotas<UserId>>,
    /// Limits what is read from each address.
    addresses: Arc<Quotas<AddressKey>>,
    reads: Arc<Reads>,
    revocations: Arc<Revocations>,
    uptime: Uptime,
    settings: Arc<LiveSettings>,
}

impl Access {
    pub(crate) fn new(node: &Node, verifier: Arc<Verifier>, console: Arc<Console>, budget: Arc<Budget>) -> Arc<Self> {
        let now = node.settings.now();
        let users = Quotas::new(now.reads_per_user, now.reads_per_user_per_sec);
        let addresses = Quotas::new(now.reads_per_address, now.reads_per_address_per_sec);
        let (reads, revocations) = (node.reads.clone(), node.revocations.clone());
        let (uptime, settings) = (node.uptime, node.settings.clone());
        Arc::new(Self { verifier, console, budget, users, addresses, reads, revocations, uptime, settings })
    }

    /// Sets how much each user and each address may read from now on.
    pub(crate) fn allow(&self, settings: &Settings) {
        self.users.allow(settings.reads_per_user, settings.reads_per_user_per_sec);
        self.addresses.allow(settings.reads_per_address, settings.reads_per_address_per_sec);
    }

    /// What these credentials allow a backend to do; `None` if they are not those of a backend.
    fn roles_of(&self, bearer: &str) -> Option<Roles> {
        self.verifier.keys().roles_of(bearer).or_else(|| self.console.is_key(bearer).then_some(Roles::ADMIN))
    }

    /// Counts a request without credentials in its head for its address, until the ticket is dropped. If a limit is
    /// reached, gives this limit.
    pub(super) fn ticket(&self, client: Client) -> Result<Option<Ticket<AddressKey>>, TooMany> {
        client.0.map(|key| self.addresses.begin(key, self.uptime.elapsed_ms())).transpose()
    }

    /// The valid token of a reader: `own`, which the request has outside the header, or else the token in the header.
    pub(super) fn token<'a>(&self, request: &'a Parts, own: Option<&'a str>) -> Result<&'a str, Problem> {
        let token = own.map_or_else(|| bearer(request), Ok)?;
        let client = Client::of(&request.extensions);
        let ticket = self.ticket(client)?;
        self.claims(token, client, ticket.as_ref(), Takes::SessionTokens)?;
        shown(request, Standing::Reader);
        Ok(token)
    }

    /// Checks a token. A token that never was valid costs its address more: checking a signature takes much longer than
    /// most other things that a stranger may ask for.
    fn claims(
        &self,
        token: &str,
        client: Client,
        ticket: Option<&Ticket<AddressKey>>,
        takes: Takes,
    ) -> Result<Claims, Problem> {
        self.verifier.verify(token, client).map_err(|error| {
            if let (TokenError::Invalid(_), Some(ticket)) = (error, ticket) {
                ticket.costs(REFUSED_COSTS - 1, self.uptime.elapsed_ms());
            }
            refused(error, takes)
        })
    }

    /// Admits the caller of a request, or says why the caller is not admitted.
    async fn admit(&self, request: &Parts, names: &dyn Names) -> Result<Caller, Problem> {
        let reads = self.reads.clone();
        if let Some(Inside { roles }) = request.extensions.get() {
            let (who, share, tickets) = (Who::Backend(*roles), self.budget.of_backends(), Tickets::default());
            return Ok(Caller { who, share, tickets, coding: Coding::Identity, reads });
        }
        let bearer = bearer(request)?;
        let coding = if self.settings.now().compress { Coding::asked(&request.headers) } else { Coding::Identity };
        let takes = match Surface::of(request) {
            Surface::All => Takes::KeysAndTokens,
            Surface::Readers => Takes::Tokens,
        };
        if takes == Takes::KeysAndTokens
            && let Some(roles) = self.roles_of(bearer)
        {
            shown(request, Standing::Backend);
            let (share, tickets) = (self.budget.of_backends(), Tickets::default());
            return Ok(Caller { who: Who::Backend(roles), share, tickets, coding, reads });
        }
        // The read is counted before the token is checked, so that guesses of tokens count too.
        let client = Client::of(&request.extensions);
        let address = self.ticket(client)?;
        let claims = self.claims(bearer, client, address.as_ref(), takes)?;
        // No token of a user without a number was ever revoked.
        if let Some(number) = user_no(names, &claims.user).await? {
            let before = self.revocations.before(number).await?;
            claims.outlive(before).map_err(|error| refused(error, takes))?;
        }
        let user = claims.user;
        shown(request, Standing::Reader);
        let tickets =
            Tickets { _user: Some(self.users.begin(user.clone(), self.uptime.elapsed_ms())?), _address: address };
        Ok(Caller { share: self.budget.of(&user), who: Who::Reader(user), tickets, coding, reads })
    }
}

/// A caller whose credentials are valid.
pub(crate) struct Caller {
    who: Who,
    share: Arc<Share>,
    tickets: Tickets,
    coding: Coding,
    reads: Arc<Reads>,
}

/// The owner of the credentials.
enum Who {
    /// The user whose token it is.
    Reader(UserId),
    /// A backend whose API key has these roles.
    Backend(Roles),
}

impl Caller {
    /// 403 unless the caller may read what belongs to `user`, or write what `user` has seen of it.
    pub(crate) fn may_read(&self, user: &UserId) -> Result<(), Problem> {
        match &self.who {
            Who::Reader(me) if me != user => Err(Problem::new(
                Kind::Forbidden,
                format!("this token is of user {me} and opens nothing of user {user}"),
            )),
            Who::Reader(_) | Who::Backend(_) => Ok(()),
        }
    }

    /// The user whose token this is; `None` for a backend.
    pub(crate) fn reader(&self) -> Option<&UserId> {
        match &self.who {
            Who::Reader(user) => Some(user),
            Who::Backend(_) => None,
        }
    }

    /// The caller, if it is a backend whose API key has `role`, or `admin`.
    fn with(self, role: Role) -> Result<Self, Problem> {
        let Who::Backend(roles) = self.who else {
            return Err(Problem::new(Kind::Forbidden, "a reader's token may not do this; it takes an API key"));
        };
        if !roles.allow(role) {
            let or_admin = if role == Role::Admin { "" } else { ", or admin" };
            let role = role.name();
            let detail = format!("this API key has the role {roles}; what you ask for takes the role {role}{or_admin}");
            return Err(Problem::new(Kind::Forbidden, detail));
        }
        Ok(self)
    }

    /// Waits for room for `bytes`, the most memory that an endless answer takes. Holds nothing if it fails or is
    /// dropped.
    pub(crate) async fn hold(&self, bytes: usize) -> Result<Reservation, Problem> {
        Ok(self.share.reserve(bytes).await?)
    }

    /// Waits for room for `bytes`, the most memory that the read and its answer take, and until the stores may be read.
    /// Holds nothing if it fails or is dropped.
    pub(crate) async fn permit(self, bytes: usize) -> Result<Permit, Problem> {
        let held = self.share.reserve(bytes).await?;
        Ok(Permit::new(held, self.tickets, self.coding, self.reads.permit().await))
    }
}

impl FromRequestParts<Api> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let caller = api.access.admit(parts, &*api.archive).await?;
        if caller.reader().is_some() { Ok(caller) } else { caller.with(Role::Read) }
    }
}

/// A caller who may write what a reader says: what was seen, reactions and comments. This is the reader, or a backend
/// whose API key has the role `publish`, or `admin`.
pub(crate) struct ReaderOrPublisher(pub(crate) Caller);

impl FromRequestParts<Api> for ReaderOrPublisher {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let caller = api.access.admit(parts, &*api.archive).await?;
        let caller = if caller.reader().is_some() { caller } else { caller.with(Role::Publish)? };
        Ok(Self(caller))
    }
}

/// A caller whose API key has the role `read`, or `admin`.
pub(crate) struct ReadKey(pub(crate) Caller);

/// A caller whose API key has the role `publish`, or `admin`.
pub(crate) struct PublishKey(pub(crate) Caller);

/// A caller whose API key has the role `admin`.
pub(crate) struct AdminKey;

impl FromRequestParts<Api> for ReadKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        backend(parts, api, Role::Read).await.map(Self)
    }
}

impl FromRequestParts<Api> for PublishKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        backend(parts, api, Role::Publish).await.map(Self)
    }
}

impl FromRequestParts<Api> for AdminKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        backend(parts, api, Role::Admin).await.map(|_| Self)
    }
}

/// A caller who may open a session of the console: by a ticket, or by an API key with the role `admin`.
pub(crate) struct Entering(Option<String>);

impl Entering {
    /// Uses up the ticket; 401 if another request has used it first. A caller with an API key has no ticket.
    pub(super) fn use_up(self, access: &Access) -> Result<(), Problem> {
        match self.0 {
            Some(ticket) if !access.console.take(&ticket) => Err(used()),
            _ => Ok(()),
        }
    }
}

impl FromRequestParts<Api> for Entering {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        not_for_readers(parts)?;
        let ticket = bearer(parts)?;
        if api.access.console.is_ticket(ticket) {
            return Ok(Self(Some(ticket.to_owned())));
        }
        match backend(parts, api, Role::Admin).await {
            Ok(_) => Ok(Self(None)),
            Err(refused) if refused.kind == Kind::BadCredentials => Err(used()),
            Err(refused) => Err(refused),
        }
    }
}

/// The caller of a route that takes an API key with this role. Such a route is not on a port for readers.
async fn backend(parts: &Parts, api: &Api, role: Role) -> Result<Caller, Problem> {
    not_for_readers(parts)?;
    api.access.admit(parts, &*api.archive).await?.with(role)
}

/// 404 on a port that serves readers only.
fn not_for_readers(parts: &Parts) -> Result<(), Problem> {
    let detail = "what takes an API key is not on this port; it is where the server's admin_listen says";
    match Surface::of(parts) {
        Surface::Readers => Err(Problem::new(Kind::NoSuchRoute, detail)),
        Surface::All => Ok(()),
    }
}

/// The problem for a ticket that opens nothing.
fn used() -> Problem {
    let detail =
        "this ticket was used before or is older than 10 minutes; `feedgate console` prints a link with a new one";
    Problem::new(Kind::BadCredentials, detail)
}

/// What a route takes as a bearer, on the port of the request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// API keys and readers' tokens.
    KeysAndTokens,
    /// Readers' tokens alone, since the port is for readers.
    Tokens,
    /// Readers' tokens alone, since the route begins a session.
    SessionTokens,
}

/// The problem for a token that was refused. Its text is the same for an API key that is valid at another port or route
/// and for any other text, so a stranger learns nothing of keys.
fn refused(error: TokenError, takes: Takes) -> Problem {
    let detail = match error {
        TokenError::Expired => "the token has expired; get a new one from your backend".to_owned(),
        TokenError::Revoked => "the token was revoked; get a new one from your backend".to_owned(),
        TokenError::Undated => format!("the {}; get a new one from your backend, with an iat", error.why()),
        TokenError::UnknownKey => format!("the {}; try again in some seconds", error.why()),
        TokenError::Invalid(why) => match takes {
            Takes::KeysAndTokens => {
                format!("the bearer is neither an API key nor a token that this server takes ({why})")
            }
            Takes::Tokens => format!(
                "the bearer is not a token that this server takes ({why}); this port takes no API key, the one that the \
                 server's admin_listen names does"
            ),
            Takes::SessionTokens => format!(
                "the bearer is not a token that this server takes ({why}); a session begins with a reader's token, not \
                 with an API key"
            ),
        },
    };
    Problem::new(Kind::BadCredentials, detail)
}

/// Notes on the connection which credentials it has shown.
fn shown(request: &Parts, standing: Standing) {
    if let Some(guest) = Guest::of(&request.extensions) {
        guest.shows(standing);
    }
}

/// The credentials of the request; there must be exactly one `Authorization` header.
fn bearer(parts: &Parts) -> Result<&str, Problem> {
    let mut lines = parts.headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else {
        let detail = "send the header Authorization: Bearer and an API key, or a reader's token";
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
