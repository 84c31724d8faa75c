//! Devices that push services reach while they are not connected.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use compact_str::CompactString;
use feedgate_common::archive::{PLATFORM_MAX, PUSH_DEVICES_MAX, PUSH_TOKEN_MAX_BYTES, PushDevice};
use feedgate_common::named::{NAMED_MAX, NamedFeeds};
use feedgate_common::{Archive, DeviceId, FeedId, Millis, UserId};
use serde::Serialize;

use super::access::{PublishKey, ReadKey};
use super::fields::{Field, Unit};
use super::names::{intern, user_no};
use super::payload::{ONE, Payload};
use super::problem::{Kind, Problem, short};
use super::query::{NoQuery, Segment, Segments};
use crate::clock;

/// The devices of a user.
#[derive(Serialize)]
pub(super) struct Devices {
    devices: Vec<DeviceJson>,
}

#[derive(Serialize)]
struct DeviceJson {
    device: DeviceId,
    platform: CompactString,
    push_token: CompactString,
    /// The feeds about which the device is told, without feeds that are not configured.
    feeds: Vec<String>,
    since: Millis,
}

/// Answers `GET /v1/users/{user}/devices` with all devices of the user.
pub(super) async fn list(
    _: ReadKey,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
) -> Result<Json<Devices>, Problem> {
    let found = match user_no(&*archive, &user).await? {
        Some(user) => archive.push_devices(&[user]).await?.pop().unwrap_or_default(),
        None => vec![],
    };
    let name = |feed: &FeedId| named.name(*feed).map(str::to_owned);
    let line = |device: PushDevice| DeviceJson {
        device: device.device,
        platform: device.platform,
        push_token: device.token,
        feeds: device.feeds.iter().filter_map(name).collect(),
        since: device.since,
    };
    Ok(Json(Devices { devices: found.into_iter().map(line).collect() }))
}

/// Answers `PUT /v1/users/{user}/devices/{device}` with `{"platform":…,"push_token":…,"feeds":[…]}`.
pub(super) async fn register(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    Segments(user, device): Segments<UserId, DeviceId>,
    _: NoQuery,
    payload: Payload<ONE>,
) -> Result<StatusCode, Problem> {
    let fields = payload.fields(&["platform", "push_token", "feeds"])?;
    let platform = platform(&fields.required("platform")?)?;
    let token = fields.required("push_token")?.printable(PUSH_TOKEN_MAX_BYTES, Unit::Bytes)?;
    let told = fields.get("feeds").map_or_else(|| Ok(vec![FeedId::MAIN]), |field| of_feeds(&field, &named))?;
    let registered = PushDevice { device, platform, token: token.into(), feeds: told, since: clock::now() };
    let number = intern(&*archive, &user).await?;
    if !archive.register(number, registered).await? {
        let detail = format!("user {user} has {PUSH_DEVICES_MAX} devices already; take one away first");
        return Err(Problem::new(Kind::Conflict, detail));
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Answers `DELETE /v1/users/{user}/devices/{device}`. The removal of a device that does not exist succeeds.
pub(super) async fn unregister(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    Segments(user, device): Segments<UserId, DeviceId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    if let Some(number) = user_no(&*archive, &user).await? {
        archive.unregister(number, &device, None).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

fn platform(field: &Field<'_>) -> Result<CompactString, Problem> {
    let word = field.string()?;
    let is_word = word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b));
    if !(1..=PLATFORM_MAX).contains(&word.len()) || !is_word {
        let right =
            format!("must be 1 to {PLATFORM_MAX} of a-z0-9_-, such as \"fcm\" or \"apns\", not {:?}", short(&word));
        return Err(field.refuse(right));
    }
    Ok(word.into())
}

/// The numbers of the feeds that are named, ascending.
fn of_feeds(field: &Field<'_>, named: &NamedFeeds) -> Result<Vec<FeedId>, Problem> {
    let mut feeds = field.feeds(NAMED_MAX + 1, named)?;
    feeds.sort_unstable();
    feeds.dedup();
    Ok(feeds)
}
