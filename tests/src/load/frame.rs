//! As much of RFC 6455 as a device that behaves needs: masked text out, unmasked frames in.

/// A whole frame at the start of what was received.
pub struct Frame<'a> {
    /// [`TEXT`], [`CLOSE`] or another of the RFC's.
    pub opcode: u8,
    /// The payload, without a mask, as servers send it.
    pub payload: &'a [u8],
    /// Header and payload, in bytes.
    pub len: usize,
}

/// Opcode of a text frame.
pub const TEXT: u8 = 1;
/// Opcode of a binary frame.
pub const BINARY: u8 = 2;
/// Opcode of a close frame.
pub const CLOSE: u8 = 8;

/// The mask of all frames that a test sends. Any mask is legal.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// The first frame of `bytes`; `None` until it is there whole.
pub fn first(bytes: &[u8]) -> Option<Frame<'_>> {
    let (&[head, short], rest) = bytes.split_first_chunk()?;
    let (len, header): (usize, usize) = match short & 0x7f {
        126 => (usize::from(u16::from_be_bytes(*rest.first_chunk()?)), 4),
        127 => (usize::try_from(u64::from_be_bytes(*rest.first_chunk()?)).ok()?, 10),
        short => (usize::from(short), 2),
    };
    let payload = bytes.get(header..header.checked_add(len)?)?;
    Some(Frame { opcode: head & 0x0f, payload, len: header + len })
}

/// A text frame as a client must send it. At most 65,535 bytes.
pub fn text(payload: &[u8]) -> Vec<u8> {
    masked(TEXT, payload)
}

/// A frame of this opcode as a client must send it. At most 65,535 bytes.
pub fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80 | opcode];
    match u16::try_from(payload.len()).expect("commands are short") {
        len @ 0..=125 => out.push(0x80 | len as u8),
        len => {
            out.push(0x80 | 126);
            out.extend(len.to_be_bytes());
        }
    }
    out.extend(MASK);
    out.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}
