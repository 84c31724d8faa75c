//! The attacker's sockets at the byte level, from an address of the attacker's own.

use std::io;
use std::net::SocketAddr;

use feedgate_tests::load::frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// The attacker's receive buffer, in bytes, so that what is not read soon fills it.
const SMALL_BUFFER: u32 = 4096;

/// Connects from the attacker's address.
pub(crate) async fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(SMALL_BUFFER)?;
    socket.bind(([127, 0, 0, 66], 0).into())?;
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Asks for a WebSocket; an error if the server does not give one.
pub(crate) async fn upgrade(stream: &mut TcpStream) -> io::Result<()> {
    let request = "GET /connection/websocket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::with_capacity(512);
    while !answer.ends_with(b"\r\n\r\n") {
        // Byte by byte: what comes behind the answer belongs to the WebSocket.
        answer.push(stream.read_u8().await?);
    }
    if answer.starts_with(b"HTTP/1.1 101 ") { Ok(()) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
}

/// `connect` and `subscribe`, in one frame, as the SDKs send them.
pub(crate) fn hello(token: &str) -> Vec<u8> {
    let connect = format!(r#"{{"id":1,"connect":{{"token":"{token}"}}}}"#);
    let subscribe = r#"{"id":2,"subscribe":{"channel":"feed","data":{"deliver":"items"}}}"#;
    frame::text(format!("{connect}\n{subscribe}").as_bytes())
}

/// A short frame under a mask of zero, so that the payload goes as it is. `first`: flags and opcode.
pub(crate) fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | payload.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(payload);
    frame
}
