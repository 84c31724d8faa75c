//! The fuzz targets of this crate. `tests/fuzz` searches for inputs that break them, and a test gives them its corpus.
//!
//! Each takes any bytes, and panics if a decoder breaks what it promises.

use crate::announce::EventId;
use crate::feed::cursor::{PURPOSE, parse_cursor, parse_profile_cursor, profile_cursor_text};
use crate::trace::{At, Traced, trace_of};
use crate::{Epoch, ItemId, UserId, intake, packing, sealed};

/// How many bytes of an error are allowed, besides what it repeats.
const ERROR_MAX: usize = 2048;

/// The cursors of pages: text that came from outside, and the same bytes behind the right digest.
pub fn cursors(bytes: &[u8]) {
    for text in [String::from_utf8_lossy(bytes).into_owned(), sealed::seal(PURPOSE, bytes.to_vec())] {
        match parse_profile_cursor(&text) {
            Ok((key, pinned)) => {
                assert_eq!(profile_cursor_text(key, &pinned), text);
                assert_eq!(parse_cursor(&text).ok(), pinned.is_empty().then_some(key));
            }
            Err(why) => assert!(parse_cursor(&text) == Err(why) && why.contains("cursor")),
        }
    }
}

/// Short values that are written as text: epochs, ids and names.
pub fn names(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<Epoch>() {
        Ok(epoch) => assert_eq!(epoch.to_string(), text),
        Err(why) => assert!(why.to_string().len() < ERROR_MAX),
    }
    match text.parse::<ItemId>() {
        Ok(item) => assert_eq!(item.to_string(), text),
        Err(why) => assert!(why.to_string().len() < ERROR_MAX),
    }
    match text.parse::<UserId>() {
        Ok(user) => assert_eq!(user.as_str(), text),
        Err(why) => assert!(!why.to_string().is_empty() && why.to_string().len() < ERROR_MAX),
    }
    if let Ok(id) = text.parse::<EventId>() {
        assert_eq!(id.to_string().parse(), Ok(id));
    }
}

/// The header `traceparent`, the id of a request, and what processes tell each other of traces.
pub fn traces(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    assert_ne!(trace_of(&text), 0);
    if let Some((at, _)) = At::of_traceparent(&text) {
        assert!(at.trace != 0 && at.span != 0);
        assert_eq!(At::of_traceparent(&at.to_string()), Some((at, true)));
    }
    if let Ok(traced) = text.parse::<Traced>() {
        assert_eq!(traced.to_string().parse(), Ok(traced));
    }
}

/// Entries of inboxes, one after the other: packed again they are the same, in 46 bytes at most.
pub fn entries(mut bytes: &[u8]) {
    let (mut before, mut again) = (packing::START, packing::START);
    while let (from, Some(entry)) = (bytes.len(), packing::take(&mut bytes, &mut before)) {
        let (mut packed, mut back) = (vec![], again);
        packing::put(&mut packed, &entry, &mut again);
        let mut rest = &packed[..];
        assert_eq!(packing::take(&mut rest, &mut back), Some(entry));
        assert!(rest.is_empty() && back == again && packed.len() <= 46 && bytes.len() < from);
        // The next entry is coded against the key of this one as it was read.
        again = before;
    }
}

/// Calls that come over a bus. The lines of the input are the subject, the key and `If-Match`.
pub fn calls(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split('\n');
    let subject = lines.next().unwrap_or_default();
    let (key, version) = (lines.next(), lines.next());
    let header = |name: &str| if name == intake::KEY_HEADER { key } else { version }.map(str::to_owned);
    match intake::read(subject, header, vec![]) {
        Ok(call) => {
            assert!(subject.starts_with(call.verb.word));
            assert!(call.path.starts_with("/v1/") && call.path.bytes().all(|b| b.is_ascii_graphic()), "{call:?}");
            assert!(!call.path.contains(['?', '#']), "{call:?}");
            assert_eq!(call.tokens.len(), subject.split('.').count() - 1);
            assert!(call.key.is_none_or(|key| (1..=intake::KEY_MAX).contains(&key.len())));
        }
        Err(intake::Wrong::Subject(why) | intake::Wrong::Header(_, why)) => {
            assert!(!why.is_empty() && why.len() < ERROR_MAX, "{why}");
        }
    }
}

#[cfg(test)]
#[path = "../../tests/fuzz/replay.rs"]
mod replay;

#[cfg(test)]
replay::corpus_of! { cursors names traces entries calls }
