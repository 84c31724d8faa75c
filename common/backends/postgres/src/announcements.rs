//! The announcements for other programs: stored in the transaction of each write, read and forgotten by the one relay
//! that holds the lease.

use std::time::Duration;

use compact_str::CompactString;
use feedgate_common::Millis;
use feedgate_common::announce::{Act, Announcement, Numbered};
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::rows::{self, column};

/// The order of the rows is that of the operations, and so is that of their numbers.
const KEEP: &str = r#"
INSERT INTO announcements (at, act, "user", other, item, version, detail)
SELECT at, act, "user", other, item, version, detail
FROM unnest($1::bigint[], $2::smallint[], $3::integer[], $4::integer[], $5::bigint[], $6::integer[], $7::text[])
    WITH ORDINALITY AS n(at, act, "user", other, item, version, detail, nth)
ORDER BY nth"#;

const BEYOND: &str = r#"
SELECT number, at, act, "user", other, item, version, detail FROM announcements
WHERE number > $1 ORDER BY number LIMIT $2"#;

const FORGET: &str = "DELETE FROM announcements WHERE number = ANY($1)";

/// The lease is measured by the clock of the database server, so that the clocks of relays need not agree.
const LEASE: &str = "
UPDATE announcement_relay SET relay = $1, until = clock_timestamp() + $2 * interval '1 millisecond'
WHERE relay = $1 OR until < clock_timestamp()";

/// Stores the announcements of the operations of a call. The caller must hold the locks of what the operations change:
/// they give the announcements their order.
pub(crate) async fn keep(connection: &mut PgConnection, told: &[Announcement]) -> sqlx::Result<()> {
    sqlx::query(KEEP)
        .bind(column(told, |told| told.at))
        .bind(column(told, |told| told.act as i16))
        .bind(column(told, |told| rows::user(told.user)))
        .bind(column(told, |told| told.other.map(rows::user)))
        .bind(column(told, |told| told.item.map(rows::item)))
        .bind(column(told, |told| told.version.map(u32::cast_signed)))
        .bind(column(told, |told| told.detail.as_deref()))
        .execute(connection)
        .await
        .map(drop)
}

/// The announcements beyond `after`, by number, at most `limit`.
pub(crate) async fn beyond(connection: &mut PgConnection, after: u64, limit: usize) -> sqlx::Result<Vec<Numbered>> {
    type Row = (i64, Millis, i16, i32, Option<i32>, Option<i64>, Option<i32>, Option<String>);
    let asked = sqlx::query_as(BEYOND).bind(rows::count(after)).bind(rows::limit(limit));
    let read: Vec<Row> = asked.fetch_all(connection).await?;
    let told = |(number, at, act, user, other, item, version, detail): Row| {
        let known = u8::try_from(act).ok().and_then(Act::from_u8);
        let told = Announcement {
            act: known.ok_or_else(|| corrupt(format_args!("{act} where an act is announced")))?,
            user: rows::user_of(user)?,
            other: other.map(rows::user_of).transpose()?,
            item: item.map(rows::item_of),
            version: version.map(i32::cast_unsigned),
            at,
            detail: detail.map(CompactString::from),
        };
        Ok((rows::count_of(number)?, told))
    };
    read.into_iter().map(told).collect()
}

/// Deletes the announcements with these numbers; those that are gone already do not count.
pub(crate) async fn forget(connection: &mut PgConnection, numbers: &[u64]) -> sqlx::Result<()> {
    let numbers: Vec<i64> = numbers.iter().copied().map(rows::count).collect();
    sqlx::query(FORGET).bind(numbers).execute(connection).await.map(drop)
}

/// Whether the relay gets the lease, which lasts for `lease` from now on.
pub(crate) async fn lease(connection: &mut PgConnection, relay: &str, lease: Duration) -> sqlx::Result<bool> {
    let ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
    let taken = sqlx::query(LEASE).bind(relay).bind(ms as f64).execute(connection).await?;
    Ok(taken.rows_affected() > 0)
}
