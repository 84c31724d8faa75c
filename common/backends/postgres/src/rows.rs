//! Converts our numbers to those of PostgreSQL, which are all signed, and back.
//!
//! Invariant: `a < b` exactly when the converted numbers are in this order.

use feedgate_common::change::{Class, Route};
use feedgate_common::graph::Shields;
use feedgate_common::{DisplayKey, FeedId, ItemId, Op, UserId, UserNo, mentions};
use sqlx::Error;

use crate::fault::corrupt;

/// An item id may be any u64. Its sign bit is flipped, so that 0 becomes the least bigint.
pub(crate) fn item(id: ItemId) -> i64 {
    (id.0 ^ (1 << 63)).cast_signed()
}

pub(crate) fn item_of(column: i64) -> ItemId {
    ItemId(column.cast_unsigned() ^ (1 << 63))
}

pub(crate) fn key_of(rank: i64, item: i64) -> DisplayKey {
    DisplayKey { rank, item: item_of(item) }
}

/// A number that counts from 1. No store ever holds a number beyond bigint, but a caller may ask for one: then the
/// greatest bigint is asked for.
pub(crate) fn count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(crate) fn count_of(column: i64) -> Result<u64, Error> {
    u64::try_from(column).map_err(|_| corrupt(format_args!("{column} where a count stands")))
}

/// The number of a user. A number that this store cannot have given becomes a number that no user has.
pub(crate) fn user(no: UserNo) -> i32 {
    i32::try_from(no.0).unwrap_or(i32::MAX)
}

/// The values of one column, one for each row.
pub(crate) fn column<'a, Row, T>(rows: &'a [Row], value: impl Fn(&'a Row) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// Numbers as PostgreSQL writes an array. A column of arrays of several lengths is bound as texts.
pub(crate) fn array(numbers: impl Iterator<Item = i32>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("{{{}}}", numbers.join(","))
}

pub(crate) fn user_of(column: i32) -> Result<UserNo, Error> {
    u32::try_from(column).map(UserNo).map_err(|_| corrupt(format_args!("{column} where a user's number stands")))
}

/// A number of rows, for the LIMIT of a statement.
pub(crate) fn limit(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The number of a feed. A number that this store cannot have given becomes a number that no feed has.
pub(crate) fn feed(id: FeedId) -> i16 {
    i16::try_from(id.0).unwrap_or(i16::MAX)
}

pub(crate) fn feed_of(column: i16) -> Result<FeedId, Error> {
    u16::try_from(column).map(FeedId).map_err(|_| corrupt(format_args!("{column} where a feed's number stands")))
}

/// The value that the number in a column stands for; an error if there is none. `what` names the value in the error.
fn numbered<T>(column: i16, from_u8: fn(u8) -> Option<T>, what: &str) -> Result<T, Error> {
    let value = u8::try_from(column).ok().and_then(from_u8);
    value.ok_or_else(|| corrupt(format_args!("{column} where {what} stands")))
}

pub(crate) fn op_of(column: i16) -> Result<Op, Error> {
    numbered(column, Op::from_u8, "the op of a record")
}

pub(crate) fn route_of(column: i16) -> Result<Route, Error> {
    numbered(column, Route::from_u8, "the route of a record")
}

/// The value of the column for the route that says an item is direct.
pub(crate) const DIRECT: i16 = 0;

pub(crate) fn class_of(column: i16) -> Result<Class, Error> {
    numbered(column, Class::from_u8, "the class of an author")
}

pub(crate) fn shields_of(column: i16) -> Result<Shields, Error> {
    u8::try_from(column).map(Shields).map_err(|_| corrupt("shields beyond a byte"))
}

/// The users whom an item or a comment mentions, from the text that is stored of them.
pub(crate) fn mentions_of(column: Option<&str>) -> Result<Vec<UserId>, Error> {
    mentions::read(column).ok_or_else(|| corrupt(format_args!("{column:?} where a list of users stands")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_ids_sort_as_bigint_as_they_do_as_themselves() {
        let ids = [0, 1, (1 << 63) - 1, 1 << 63, u64::MAX].map(ItemId);
        assert!(ids.map(item).is_sorted());
        assert_eq!(ids.map(item).map(item_of), ids);
    }
}
