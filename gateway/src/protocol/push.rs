//! What a device is sent without having asked.

use std::io::Write;

/// Our ping, and a device's pong.
pub(crate) const PING: &[u8] = b"{}";

/// Appends a publication: a change, as JSON, at its offset.
pub(crate) fn publication(out: &mut Vec<u8>, offset: u64, change: &[u8]) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, r#"{{"offset":{offset},"data":"#);
    out.extend_from_slice(change);
    out.push(b'}');
}

/// Appends a push of one publication. Several pushes in a frame stand on a line each. `channel` is the name of a feed:
/// nothing in it needs an escape.
pub(crate) fn push(out: &mut Vec<u8>, channel: &str, offset: u64, change: &[u8]) {
    let _ = write!(out, r#"{{"push":{{"channel":"{channel}","pub":"#);
    publication(out, offset, change);
    out.extend_from_slice(b"}}");
}

/// Appends the push of notify mode, which says that the log's last offset is `head`.
pub(crate) fn behind(out: &mut Vec<u8>, channel: &str, head: u64) {
    push(out, channel, head, br#"{"op":"behind"}"#);
}
