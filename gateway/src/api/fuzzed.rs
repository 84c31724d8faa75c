//! The fuzz targets of what the HTTP API reads.

use feedgate_common::around::{CommentPlace, Place};
use feedgate_common::sealed::seal;
use feedgate_common::search::SearchPlace;
use serde_json::value::RawValue;

use super::fields::Fields;
use super::problem::Problem;
use super::transfer::{export, line};
use super::{audience_lists, comments, cursor, graph, people, publish, rankings, reactions};

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

/// The Unix time in ms at which [`bodies`] are read.
const NOW: i64 = 1_800_000_000_000;

/// The body of a request. The first byte names the route, and the others are JSON. An item that is accepted has its
/// body with every byte as it was sent; an error says what was wrong, and repeats no more than the request.
pub fn bodies(bytes: &[u8]) {
    let Some((route, json)) = bytes.split_first() else { return };
    let Ok(raw) = serde_json::from_slice::<&RawValue>(json) else { return };
    let at = || "/ops/0".to_owned();
    let read: Result<(), Problem> = match route % 7 {
        0 => Fields::of(raw, "", publish::FIELDS).and_then(|fields| {
            let publish = publish::read(&fields, NOW)?;
            assert!(raw.get().contains(publish.body.get()));
            Ok(())
        }),
        1 => graph::operation(raw, at()).map(drop),
        2 => audience_lists::operation(raw, at()).map(drop),
        3 => reactions::many::operation(raw, at()).map(drop),
        4 => Fields::of(raw, at(), comments::many::FIELDS)
            .and_then(|fields| comments::many::operation(raw, at(), &fields, None).map(drop)),
        5 => people::operation(raw, at()).map(drop),
        _ => match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
            Ok(list) => rankings::places(&list, "/items").map(|places| assert_eq!(places.len(), list.len())),
            Err(_) => return,
        },
    };
    if let Err(Problem { detail, .. }) = read {
        assert!(!detail.is_empty() && detail.len() <= 2048 + 10 * json.len(), "{detail}");
    }
}

/// Cursors of lists, searches and exports: text that came from outside, and the same bytes behind the right digest.
pub fn api_cursors(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    read_back::<SearchPlace>(&text, bytes);
    read_back::<Place>(&text, bytes);
    read_back::<CommentPlace>(&text, bytes);
    read_back::<cursor::Repost>(&text, bytes);
    if let Ok(cursor) = text.parse::<export::Cursor>() {
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
    }
}

/// A cursor that is understood is the same when it is written again.
fn read_back<P: cursor::Place>(text: &str, bytes: &[u8]) {
    for text in [text, &seal(P::PURPOSE, bytes.to_vec())] {
        assert!(cursor::parse::<P>(text).is_none_or(|place| cursor::text(&place) == text));
    }
}
