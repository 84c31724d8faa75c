//! The PROXY protocol, version 2: a binary header before the first byte of a connection.
//!
//! ```text
//!   signature (12) │ version, command (1) │ family, transport (1) │ length (2) │ source, destination, ports … (length)
//! ```

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::{AddressKey, Client};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The bytes of the header's first part, whose length is fixed; its last two bytes are the length of the rest.
pub(crate) const HEAD: usize = 16;

/// The most bytes of the rest that are read: addresses are 36 bytes, and proxies add little to them.
pub(crate) const REST_MAX: usize = 4096;

/// Reads the header that a trusted `peer` begins its connection with, and gives the client that the connection counts
/// for. For a peer that begins with a request instead no limit holds, and its bytes stay unread. Fails if the header is
/// wrong. If the future is dropped, a part of the header may be lost.
pub(crate) async fn read(stream: &mut TcpStream, peer: IpAddr) -> io::Result<Client> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 || first[0] != SIGNATURE[0] {
        return Ok(Client(None));
    }
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).await?;
    let mut rest = vec![0; rest_of(head).map_err(io::Error::other)?];
    stream.read_exact(&mut rest).await?;
    Ok(client(head, &rest, peer))
}

/// How many bytes follow the first part of the header, `head`; an error if that part is wrong.
pub(crate) fn rest_of(head: [u8; HEAD]) -> Result<usize, &'static str> {
    let rest = usize::from(u16::from_be_bytes([head[14], head[15]]));
    match head[12] {
        _ if head[..12] != SIGNATURE => {
            Err("a connection of a trusted proxy begins with no header of PROXY protocol 2")
        }
        0x20 | 0x21 if rest <= REST_MAX => Ok(rest),
        0x20 | 0x21 => Err("a header of PROXY protocol 2 is longer than 4 KiB"),
        _ => Err("a header of PROXY protocol 2 has another version or command"),
    }
}

pub(crate) fn client(head: [u8; HEAD], rest: &[u8], peer: IpAddr) -> Client {
    const LOCAL: u8 = 0x20;
    let source = match head[13] {
        _ if head[12] == LOCAL => return Client(None),
        0x11 => rest.first_chunk::<12>().map(|rest| IpAddr::from(Ipv4Addr::new(rest[0], rest[1], rest[2], rest[3]))),
        0x21 => rest.first_chunk::<36>().and_then(|rest| rest.first_chunk()).map(|bytes| Ipv6Addr::from(*bytes).into()),
        _ => None,
    };
    Client(Some(AddressKey::of(source.unwrap_or(peer))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    fn head(command: u8, family: u8, rest: u16) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..12].copy_from_slice(&SIGNATURE);
        head[12..14].copy_from_slice(&[command, family]);
        head[14..].copy_from_slice(&rest.to_be_bytes());
        head
    }

    fn key(address: IpAddr) -> Client {
        Client(Some(AddressKey::of(address)))
    }

    #[test]
    fn the_source_counts_and_a_proxy_that_speaks_for_itself_counts_for_nobody() {
        let v4 = [198, 51, 100, 7, 10, 0, 0, 9, 1, 2, 0, 80];
        assert_eq!(client(head(0x21, 0x11, 12), &v4, PEER), key(IpAddr::from([198, 51, 100, 7])));
        let v6: Vec<u8> = (0..36).collect();
        let source: [u8; 16] = v6[..16].try_into().unwrap();
        assert_eq!(client(head(0x21, 0x21, 36), &v6, PEER), key(IpAddr::from(source)));
        assert_eq!(client(head(0x20, 0x11, 12), &v4, PEER), Client(None), "LOCAL");
    }

    #[test]
    fn a_source_that_is_not_told_counts_as_the_proxy() {
        assert_eq!(client(head(0x21, 0x00, 0), &[], PEER), key(PEER));
        assert_eq!(client(head(0x21, 0x11, 4), &[1, 2, 3, 4], PEER), key(PEER), "too short to be true");
    }

    #[test]
    fn another_signature_version_or_length_is_refused() {
        assert_eq!(rest_of(head(0x21, 0x11, 12)), Ok(12));
        assert!(rest_of(head(0x11, 0x11, 12)).unwrap_err().contains("version"));
        assert!(rest_of(head(0x21, 0x11, 4097)).unwrap_err().contains("4 KiB"));
        let mut other = head(0x21, 0x11, 12);
        other[3] = b'x';
        assert!(rest_of(other).unwrap_err().contains("begins with no header"));
    }
}
