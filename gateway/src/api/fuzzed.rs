//! The fuzz targets of what the HTTP API reads.

use feedgate_common::sealed::seal;

use super::transfer::{export, line};
use super::{comments, reactions, reposts, search};

/// A line of an import. It is read the same each time. An error says what was wrong, and repeats no more than the line.
pub fn import_lines(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = line::read(&text);
    assert_eq!(read.is_ok(), line::read(&text).is_ok());
    if let Err(problem) = read {
        let detail = &problem.detail;
        assert!(!detail.is_empty() && detail.len() <= 2048 + 10 * text.len(), "{detail}");
    }
}

/// Cursors of lists, searches and exports: text that came from outside, and the same bytes behind the right digest.
pub fn api_cursors(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let with = |purpose| [text.clone().into_owned(), seal(purpose, bytes.to_vec())];
    for text in with(search::cursor::PURPOSE) {
        assert!(search::cursor::parse(&text).is_none_or(|place| search::cursor::text(place) == text));
    }
    for text in with(reactions::cursor::PURPOSE) {
        assert!(reactions::cursor::parse(&text).is_none_or(|place| reactions::cursor::text(&place) == text));
    }
    for text in with(comments::cursor::PURPOSE) {
        assert!(comments::cursor::parse(&text).is_none_or(|place| comments::cursor::text(place) == text));
    }
    for text in with(reposts::PURPOSE) {
        assert!(reposts::parse(&text).is_none_or(|before| reposts::text(before) == text));
    }
    if let Ok(cursor) = text.parse::<export::Cursor>() {
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
    }
}
