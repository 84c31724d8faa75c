//! Times in requests are Unix milliseconds. A time in seconds is refused: it would be taken for a day in 1970.

use std::ops::Range;

use feedgate_common::Millis;

/// What is a time since 1973 in seconds. In milliseconds these are times from 2 January to 26 April 1970, which no app
/// has to write.
const IN_SECONDS: Range<Millis> = 100_000_000..10_000_000_000;

/// Refuses a time that is in seconds. The error goes behind the name of what has the time.
pub(super) fn not_seconds(at: Millis) -> Result<(), String> {
    if !IN_SECONDS.contains(&at) {
        return Ok(());
    }
    Err(format!("must be a Unix time in milliseconds, and {at} is one in seconds: give {at}000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_seconds_is_refused_and_one_in_milliseconds_is_taken() {
        for taken in [0, 99_999_999, 10_000_000_000, 1_795_185_562_024, Millis::MIN, Millis::MAX] {
            assert_eq!(not_seconds(taken), Ok(()));
        }
        for refused in [100_000_000, 1_795_185_562, 9_999_999_999] {
            let why = not_seconds(refused).unwrap_err();
            assert!(why.ends_with(&format!("give {refused}000")), "{why}");
        }
    }
}
