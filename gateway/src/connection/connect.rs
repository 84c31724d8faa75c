//! Carries out `connect`: reads the token, and makes this connection the one of its device.
//!
//! ```text
//!   token ──▶ user number ──▶ seat in the pool ──▶ claim ──▶ close whom it replaced (4500), on whatever node
//! ```
//!
//! The seat comes before the claim, so that the answer to a later claim always finds it; and before the first read, so
//! that no wake is lost in between.

use std::sync::Arc;

use feedgate_common::archive::Names;
use feedgate_common::doorbell::Closing;
use feedgate_common::sessions::User;
use feedgate_common::{DeviceId, UserId, UserNo};

use super::outcome::{Outcome, Stop, Then, bad};
use super::shared::Shared;
use crate::clock;
use crate::net::address::Client;
use crate::node::bounded::bounded;
use crate::node::identity::{Identity, client_name};
use crate::node::slot::Slot;
use crate::protocol::{Close, Connect, ErrorCode};

/// Carries out `connect`. It must be run to its end once begun: if it is dropped, a claim that it made is not released.
pub(crate) async fn connect(shared: Arc<Shared>, slot: Arc<Slot>, asked: Box<Connect>, client: Client) -> Outcome {
    if asked.token.is_empty() {
        return Err(ErrorCode::Unauthorized.because("connect needs a token: the JWT of a user").into());
    }
    let claims = shared.verifier.verify(&asked.token, client)?;
    let own = claims.device.or(asked.device);
    let durable = own.is_some();
    let device = match own {
        Some(device) => device,
        None => nameless(&shared, &slot)?,
    };
    let no = bounded(number_of(&*shared.names, &claims.user)).await?;
    let who = Identity::new(User { no, id: claims.user }, device, durable, clock::now());
    if shared.node.pool.enter(&who, &slot).is_err() {
        return Err(Stop::Close(Close::ConnectionLimit));
    }
    let claim = who.claim(&shared.node.name, slot.connection);
    let claimed = match bounded(shared.node.sessions.claim(claim)).await {
        Ok(claimed) => claimed,
        Err(error) => {
            shared.node.pool.leave(no, slot.connection);
            shared.node.ghosts.note(no);
            return Err(error.into());
        }
    };
    who.claimed(claimed.token);
    shared.node.pool.end_older(&who);
    if let Some((node, connection)) = claimed.replaced {
        shared.node.close(&node, no, connection, Closing::Replaced).await;
    }
    Ok(Then::Connected(who, claims.expires_at))
}

fn nameless(shared: &Shared, slot: &Slot) -> Result<DeviceId, Stop> {
    let name = client_name(&shared.node.name, slot.connection);
    name.parse().map_err(|error| bad(format!("connect: name a device in data.device_id; {error}")))
}

async fn number_of(names: &dyn Names, user: &UserId) -> feedgate_common::error::Result<UserNo> {
    let user = std::slice::from_ref(user);
    match names.user_nos(user).await?[0] {
        Some(no) => Ok(no),
        None => Ok(names.intern(user).await?[0]),
    }
}
