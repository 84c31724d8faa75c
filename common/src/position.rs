//! Positions of devices in a change log.
//!
//! An offset alone is not enough after a loss of data: a log that was rebuilt counts from 1 again. So a position always
//! names the *epoch* of the log in which it counts (the idea is Centrifuge's `StreamPosition`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of one life of an inbox. It is greater than every epoch given before, since the Archive counts epochs.
///
/// In JSON an epoch is a decimal string, never empty and never `_`, as the client SDKs require.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The error for a text that is no epoch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an epoch is the decimal number that the server gave, not {0:?}")]
pub struct BadEpoch(String);

impl FromStr for Epoch {
    type Err = BadEpoch;
    fn from_str(text: &str) -> Result<Self, BadEpoch> {
        let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        plain.then(|| text.parse().ok().map(Self)).flatten().ok_or_else(|| BadEpoch(text.chars().take(32).collect()))
    }
}

impl Serialize for Epoch {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Epoch {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A place in the log of an inbox: all changes up to and including `offset` are known.
///
/// Positions are ordered: the greater one is in a later epoch, or further on in the same one. So the order of the
/// fields matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The epoch of the log.
    pub epoch: Epoch,
    /// The sequence id of the last change taken in; 0 before the first.
    pub offset: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_text_is_an_epoch_as_it_is_written_or_none(text in "[0-9]{0,21}|\\PC{0,8}") {
            if let Ok(epoch) = text.parse::<Epoch>() {
                proptest::prop_assert_eq!(epoch.to_string(), text);
            }
        }
    }

    #[test]
    fn an_epoch_is_read_as_it_was_given_and_in_no_other_spelling() {
        for epoch in [0, 6, u64::MAX].map(Epoch) {
            assert_eq!(epoch.to_string().parse(), Ok(epoch));
            let json = serde_json::to_string(&epoch).unwrap();
            assert_eq!(serde_json::from_str::<Epoch>(&json).unwrap(), epoch);
        }
        for bad in ["", "06", "00", "+6", "-6", " 6", "6 ", "_", "6.0", "18446744073709551616"] {
            assert!(bad.parse::<Epoch>().is_err(), "{bad:?}");
        }
    }
}
