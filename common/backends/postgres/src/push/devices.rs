//! Devices that push services reach. A change of devices locks the row of the reader, which says whether the reader has
//! devices. After an error the connection is closed, which ends the transaction.

use std::collections::HashMap;

use feedgate_common::archive::{PUSH_DEVICES_MAX, PushDevice};
use feedgate_common::{DeviceId, UserNo};
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::rows;

const LOCK: &str = "SELECT listens FROM readers WHERE reader = $1 FOR UPDATE";

const OTHERS: &str = "SELECT count(*) FROM push_devices WHERE reader = $1 AND device <> $2";

const REGISTER: &str = "
INSERT INTO push_devices AS known (reader, device, platform, token, feeds, since) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (reader, device) DO UPDATE
SET platform = excluded.platform, token = excluded.token, feeds = excluded.feeds, since = excluded.since
WHERE (known.platform, known.token, known.feeds) <> (excluded.platform, excluded.token, excluded.feeds)";

/// What was addressed to the reader before it had a device is no news for the device.
const LISTEN: &str = "UPDATE readers SET listens = true, noted = direct WHERE reader = $1 AND NOT listens";

const UNREGISTER: &str =
    "DELETE FROM push_devices WHERE reader = $1 AND device = $2 AND ($3::text IS NULL OR token = $3)";

const HUSH: &str = "
UPDATE readers SET listens = false
WHERE reader = $1 AND listens AND NOT EXISTS (SELECT FROM push_devices WHERE reader = $1)";

const DEVICES: &str = "
SELECT reader, device, platform, token, feeds, since FROM push_devices WHERE reader = ANY($1) ORDER BY reader, device";

/// Registers a device, unless the user has too many others. Answers whether the device is registered.
pub(crate) async fn register(connection: &mut PgConnection, user: UserNo, device: &PushDevice) -> sqlx::Result<bool> {
    let user = rows::user(user);
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    sqlx::query(LOCK).bind(user).fetch_one(&mut *connection).await?;
    let others: i64 =
        sqlx::query_scalar(OTHERS).bind(user).bind(device.device.as_str()).fetch_one(&mut *connection).await?;
    let fits = others < rows::limit(PUSH_DEVICES_MAX);
    if fits {
        let feeds: Vec<i16> = device.feeds.iter().copied().map(rows::feed).collect();
        sqlx::query(REGISTER)
            .bind(user)
            .bind(device.device.as_str())
            .bind(device.platform.as_str())
            .bind(device.token.as_str())
            .bind(feeds)
            .bind(device.since)
            .execute(&mut *connection)
            .await?;
        sqlx::query(LISTEN).bind(user).execute(&mut *connection).await?;
    }
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(fits)
}

/// Removes a device; if `token` is given, only if the device has this token. Answers whether the device was removed.
pub(crate) async fn unregister(
    connection: &mut PgConnection,
    user: UserNo,
    device: &DeviceId,
    token: Option<&str>,
) -> sqlx::Result<bool> {
    let user = rows::user(user);
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    sqlx::query(LOCK).bind(user).fetch_optional(&mut *connection).await?;
    let taken = sqlx::query(UNREGISTER).bind(user).bind(device.as_str()).bind(token).execute(&mut *connection).await?;
    sqlx::query(HUSH).bind(user).execute(&mut *connection).await?;
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(taken.rows_affected() > 0)
}

/// The devices of each of these users, in the order of device ids.
pub(crate) async fn devices(connection: &mut PgConnection, users: &[UserNo]) -> sqlx::Result<Vec<Vec<PushDevice>>> {
    let asked: Vec<i32> = users.iter().copied().map(rows::user).collect();
    let read: Vec<(i32, String, String, String, Vec<i16>, i64)> =
        sqlx::query_as(DEVICES).bind(asked).fetch_all(connection).await?;
    let mut found: HashMap<UserNo, Vec<PushDevice>> = HashMap::new();
    for (reader, device, platform, token, feeds, since) in read {
        let device =
            device.parse().map_err(|error| corrupt(format_args!("the device {device:?} of a reader: {error}")))?;
        let feeds = feeds.into_iter().map(rows::feed_of).collect::<sqlx::Result<_>>()?;
        let device = PushDevice { device, platform: platform.into(), token: token.into(), feeds, since };
        found.entry(rows::user_of(reader)?).or_default().push(device);
    }
    Ok(users.iter().map(|user| found.get(user).cloned().unwrap_or_default()).collect())
}
