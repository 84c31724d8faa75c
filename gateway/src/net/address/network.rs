//! A network of addresses, such as 10.0.0.0/8.

use std::net::IpAddr;
use std::str::FromStr;

/// A network, as its first address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    first: IpAddr,
    /// How many leading bits all addresses of the network share.
    prefix: u32,
}

impl Network {
    /// Whether `address` is in the network. `address` must be canonical: an IPv4 address is not written as an IPv6
    /// address.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let shares = |a: u128, b: u128, bits: u32| (a ^ b).checked_shr(bits - self.prefix).unwrap_or(0) == 0;
        match (self.first, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => shares(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => shares(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no network such as \"10.0.0.0/8\" and no address such as \"::1\"");
        let (first, prefix) = match text.split_once('/') {
            Some((first, prefix)) => (first, Some(prefix.parse::<u32>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let first: IpAddr = first.parse().map_err(|_| wrong())?;
        let bits = if first.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(bits);
        if prefix > bits || (first.is_ipv6() && first.to_canonical().is_ipv4()) {
            return Err(wrong());
        }
        Ok(Self { first, prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_what_shares_its_prefix() {
        let contains = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse::<IpAddr>().unwrap())
        };
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("192.0.2.1", "192.0.2.1") && !contains("192.0.2.1", "192.0.2.0"));
        assert!(contains("fd00::/8", "fd12::1") && !contains("fd00::/8", "fe00::1"));
        assert!(contains("0.0.0.0/0", "203.0.113.1") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "2001:db8::1"));
    }

    #[test]
    fn what_is_no_network_is_refused_by_its_text() {
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "host", "10.0.0.0/", "10.0.0.0/-1", "::ffff:10.0.0.1"] {
            let error = wrong.parse::<Network>().unwrap_err();
            assert!(error.starts_with(&format!("{wrong:?} is no network")), "{error}");
        }
    }
}
