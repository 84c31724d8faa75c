//! Carries out `presence` and `presence_stats`: the user's other devices that are online.

use std::collections::BTreeMap;
use std::sync::Arc;

use feedgate_common::sessions::SessionInfo;

use super::outcome::{Outcome, Then};
use super::shared::Shared;
use crate::node::identity::{Identity, client_name};
use crate::protocol::{Presence, PresenceInfo, Reply};

/// Lists the user's other devices that are online. May be dropped at any time.
pub(crate) async fn presence(shared: Arc<Shared>, who: Arc<Identity>) -> Outcome {
    let mut present = BTreeMap::new();
    for SessionInfo { device, node, connection, since, .. } in others(&shared, &who).await? {
        let client = client_name(&node, connection);
        let conn_info = PresenceInfo { device: device.to_string(), node, since }.json();
        let presence = Presence { client: client.to_string(), user: who.user.id.to_string(), conn_info };
        present.insert(client.into(), presence);
    }
    Ok(Then::Reply(Reply::Presence(present)))
}

/// Counts the user's other devices that are online. May be dropped at any time.
pub(crate) async fn presence_stats(shared: Arc<Shared>, who: Arc<Identity>) -> Outcome {
    Ok(Then::Reply(Reply::PresenceStats(others(&shared, &who).await?.len())))
}

async fn others(shared: &Shared, who: &Identity) -> feedgate_common::error::Result<Vec<SessionInfo>> {
    let mut sessions = shared.local.sessions.list(who.user.no).await?;
    sessions.retain(|session| session.device != who.device);
    Ok(sessions)
}
