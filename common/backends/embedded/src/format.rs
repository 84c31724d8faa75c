//! The error for files and rows that another version has written in another format.

use std::fmt::Display;

use feedgate_common::StoreError;

/// `Corrupt`, since `what` is written in the format `format` and this version reads only the format `reads`. The text
/// says what to do.
pub(crate) fn of_another(what: impl Display, format: u32, reads: u32) -> StoreError {
    StoreError::corrupt(format_args!(
        "{what} is of format {format}, and this version reads format {reads} only: start the version that wrote it, or \
         restore a backup from before that version"
    ))
}
