//! Carries out `connect`: reads the token, and makes this connection the one of its device.
//!
//! ```text
//!   token ──▶ user number ──▶ seat in the pool ──▶ is it revoked? ──▶ claim ──▶ close whom it replaced (4500)
//! ```
//!
//! If this connection has ended before its claim was answered, the device may have connected again meanwhile, and the
//! claim has replaced that connection. So it is closed with 3011, after which the device connects once more.
//!
//! The seat comes before the claim, so that the answer to a later claim always finds it; before the first read, so that
//! no wake is lost in between; and before the look for a revocation, so that a later one finds the seat.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use feedgate_common::archive::Names;
use feedgate_common::doorbell::Closing;
use feedgate_common::sessions::User;
use feedgate_common::{DeviceId, UserId, UserNo};
use tokio::task::yield_now;

use super::outcome::{Outcome, Stop, Then, bad};
use super::shared::Shared;
use crate::auth::Claims;
use crate::clock;
use crate::net::address::Client;
use crate::node::bounded::bounded;
use crate::node::identity::{Identity, client_name};
use crate::node::revocations::Revocations;
use crate::node::slot::Slot;
use crate::protocol::{Close, Connect, ErrorCode};

/// Carries out `connect`. The future must be run to its end: if it is dropped, a claim that it made is not released.
pub(crate) async fn connect(shared: Arc<Shared>, slot: Arc<Slot>, asked: Box<Connect>, client: Client) -> Outcome {
    if asked.token.is_empty() {
        return Err(ErrorCode::Unauthorized.because("connect needs a token: the JWT of a user").into());
    }
    let claims = shared.verifier.verify(&asked.token, client)?;
    let own = claims.device.clone().or(asked.device);
    let durable = own.is_some();
    let device = match own {
        Some(device) => device,
        None => nameless(&shared, &slot)?,
    };
    let no = bounded(number_of(&*shared.names, &claims.user)).await?;
    let who = Identity::new(User { no, id: claims.user.clone() }, device, durable, clock::now());
    who.shows(claims.issued_at);
    if shared.local.pool.enter(&who, &slot).is_err() {
        return Err(Stop::Close(Close::ConnectionLimit));
    }
    if let Err(stop) = not_revoked(&shared.revocations, no, &claims).await {
        shared.local.pool.leave(no, slot.connection);
        return Err(stop);
    }
    let claim = who.claim(&shared.local.node, slot.connection);
    let claimed = match unless_left(&slot, bounded(shared.local.sessions.claim(claim))).await {
        Some(Ok(claimed)) => claimed,
        failed => {
            shared.local.pool.leave(no, slot.connection);
            shared.local.ghosts.note(no);
            let error = failed.and_then(Result::err);
            return Err(error.map_or_else(|| ErrorCode::Internal.into(), Into::into));
        }
    };
    who.claimed(claimed.token);
    // A slow claim may have replaced a connection that the device made after it had left this connection. The yield
    // lets this connection read a goodbye that came before the answer to the claim.
    yield_now().await;
    let why = if slot.ends() { Closing::Displaced } else { Closing::Replaced };
    shared.local.pool.end_older(&who, why);
    if let Some((node, connection)) = claimed.replaced {
        shared.local.close(&node, no, connection, why).await;
    }
    Ok(Then::Connected(who, claims.expires_at))
}

/// Gives the answer of a call, or `None` if the peer of `slot` has left before the answer came. The call is dropped
/// then, and may or may not have taken effect. This is seen at the next poll: [`Slot::leave`] wakes nobody.
async fn unless_left<T>(slot: &Slot, call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    std::future::poll_fn(|context| {
        if slot.has_left() {
            return Poll::Ready(None);
        }
        call.as_mut().poll(context).map(Some)
    })
    .await
}

/// Refuses a token that was revoked.
pub(super) async fn not_revoked(revocations: &Revocations, user: UserNo, claims: &Claims) -> Result<(), Stop> {
    let before = revocations.before(user).await?;
    Ok(claims.outlive(before)?)
}

fn nameless(shared: &Shared, slot: &Slot) -> Result<DeviceId, Stop> {
    let name = client_name(&shared.local.node, slot.connection);
    name.parse().map_err(|error| bad(format!("connect: name a device in data.device_id; {error}")))
}

async fn number_of(names: &dyn Names, user: &UserId) -> feedgate_common::error::Result<UserNo> {
    let user = std::slice::from_ref(user);
    match names.user_nos(user).await?[0] {
        Some(no) => Ok(no),
        None => Ok(names.intern(user).await?[0]),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn i17_a_claim_that_waits_is_given_up_once_its_peer_has_left() {
        let slot = Slot::new(1);
        assert_eq!(unless_left(&slot, ready(7)).now_or_never(), Some(Some(7)));
        let mut waits = Box::pin(unless_left(&slot, pending::<u32>()));
        assert_eq!(waits.as_mut().now_or_never(), None);
        slot.leave();
        assert_eq!(waits.now_or_never(), Some(None));
    }
}
