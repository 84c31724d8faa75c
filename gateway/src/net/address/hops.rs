//! The addresses that proxies have noted in a header: each proxy appends the address that its request came from.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;

use super::ClientAddress;

const FORWARDED: &str = "forwarded";
const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The addresses in the header that `told_by` names, the last appended address first. `None` stands for an element that
/// holds no address.
///
/// Elements are split at every comma, inside quotes too: so nothing that a client has written, such as a quote left
/// open, changes how the elements after it are read.
pub(super) fn nearest_first(told_by: ClientAddress, headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let (name, read): (_, fn(&str) -> Option<IpAddr>) = match told_by {
        ClientAddress::Forwarded => (Some(FORWARDED), forwarded),
        ClientAddress::XForwardedFor => (Some(X_FORWARDED_FOR), address),
        ClientAddress::Connection | ClientAddress::ProxyProtocol => (None, address),
    };
    let lines = name.into_iter().flat_map(|name| headers.get_all(name).into_iter().rev());
    let elements = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    elements.map(move |element| str::from_utf8(element).ok().and_then(read))
}

/// The address that `for=` names in an element of the header `Forwarded`.
fn forwarded(element: &str) -> Option<IpAddr> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    address(value.trim().trim_matches('"'))
}

/// Reads an address, with a port or without one; an IPv6 address in brackets or without them.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = || text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text).parse().ok();
    text.parse::<SocketAddr>().map(|socket| socket.ip()).ok().or_else(bare)
}
