//! The names and numbers of users, items, devices, feeds and inboxes.
//!
//! Outside, a user is a string that the backend chose ([`UserId`]). Inside, it is the number that the
//! [`Archive`](crate::Archive) gave it ([`UserNo`]), so that an inbox entry stays small.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use compact_str::CompactString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a name was refused: a sentence with what is wrong and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadName(pub String);

/// At most 64 characters of text that came from outside, for an error that repeats it.
pub fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(64) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

fn checked(what: &str, text: &str, max: usize) -> Result<CompactString, BadName> {
    let count = text.chars().count();
    if count == 0 || count > max {
        return Err(BadName(format!("{what} must have 1 to {max} characters, this one has {count}")));
    }
    match text.chars().find(|c| !(c.is_ascii_alphanumeric() || "._:@-".contains(*c))) {
        Some(bad) => Err(BadName(format!("{what} may hold only A-Z a-z 0-9 . _ : @ -, this one holds {bad:?}"))),
        None => Ok(text.into()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(CompactString);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                checked($what, text, $max).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <Cow<'de, str>>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

name!(
    /// A user as the backend names it: 1-64 of `A-Za-z0-9._:@-`.
    UserId, "a user id", 64
);
name!(
    /// A device of a user: 1-64 of `A-Za-z0-9._:@-`.
    DeviceId, "a device id", 64
);

name!(
    /// A list of users that a user keeps: 1-64 of `A-Za-z0-9._:@-`.
    ListName, "a list", 64
);

/// A user's number inside Feedgate, dense from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserNo(pub u32);

impl UserNo {
    /// The bucket of this reader in a store with `buckets` buckets.
    ///
    /// Numbers are dense, so the remainder spreads readers evenly.
    pub fn bucket(self, buckets: u16) -> Bucket {
        Bucket((self.0 % u32::from(buckets)) as u16)
    }
}

/// The number of a bucket: a fixed share of all readers. Fan-out proceeds bucket by bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bucket(pub u16);

/// The id of an item: a 64-bit number, written as a decimal string in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(pub u64);

impl FromStr for ItemId {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let plain =
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        plain.then(|| text.parse().ok().map(Self)).flatten().ok_or_else(|| {
            BadName(format!("an item id is a decimal number from 0 to {}, not {:?}", u64::MAX, short(text)))
        })
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for ItemId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ItemId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The number of a feed that each reader has: [`FeedId::MAIN`], or one with a [name](crate::named). Every key of an
/// inbox holds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FeedId(pub u16);

impl FeedId {
    /// The feed called `feed`. It gets every kind of item that no other feed claims.
    pub const MAIN: Self = Self(0);
    /// The name that clients use for [`FeedId::MAIN`], as a channel and as `?name=`.
    pub const MAIN_NAME: &'static str = "feed";
}

/// The key of an inbox, which is the change log of one feed of one reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InboxKey {
    /// The reader of the inbox.
    pub reader: UserNo,
    /// The feed of the reader.
    pub feed: FeedId,
}

impl InboxKey {
    /// The key of the reader's inbox of [`FeedId::MAIN`].
    pub fn main(reader: UserNo) -> Self {
        Self { reader, feed: FeedId::MAIN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_id_holds_the_documented_characters_and_nothing_else() {
        for good in ["a", "A.b_c:d@e-9", &"x".repeat(64)] {
            assert!(good.parse::<UserId>().is_ok(), "{good}");
        }
        for bad in ["", "a b", "a/b", "ü", &"x".repeat(65)] {
            assert!(bad.parse::<UserId>().is_err(), "{bad}");
        }
        let why = "ü".repeat(65).parse::<UserId>().unwrap_err().to_string();
        assert_eq!(why, "a user id must have 1 to 64 characters, this one has 65");
    }

    #[test]
    fn an_item_id_is_canonical_decimal() {
        assert_eq!("18446744073709551615".parse(), Ok(ItemId(u64::MAX)));
        for bad in ["", "-1", "+1", "01", "1.0", "18446744073709551616", "0x1"] {
            assert!(bad.parse::<ItemId>().is_err(), "{bad}");
        }
        assert_eq!(serde_json::to_string(&ItemId(7)).unwrap(), "\"7\"");
    }

    #[test]
    fn an_error_repeats_at_most_64_characters_of_what_is_no_item_id() {
        let why = "\u{6}".repeat(100_000).parse::<ItemId>().unwrap_err().to_string();
        assert!(why.contains(&format!("{:?}", "\u{6}".repeat(64) + "…")) && why.len() < 500, "{why}");
    }
}
