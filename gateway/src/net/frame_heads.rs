//! Finds where the frames begin in what a peer sends, before the WebSocket parser gets the bytes.
//!
//! The socket needs three things that the parser does not tell. First, the parser gives no message for an empty
//! continuation frame, so a flood of such frames would cost the peer nothing. Second, the parser answers the close code
//! 1014 (bad gateway) with 1002, as a forbidden code: IANA registered 1014 after RFC 6455 was written. Third, the
//! parser does not say whether its buffer holds a part of a message.
//!
//! ```text
//!   bytes of a read ──▶ pass: counts the frames, writes 1013 for 1014 ──▶ the parser
//! ```
//!
//! Invariants: a read may end anywhere, also within a head. Only the code of a close frame is ever changed. The parser
//! decides whether a frame is legal.

/// The bit of a head's first byte that says that no further frame of the message follows.
const FIN: u8 = 0x80;

/// The opcode of a close frame, which is the least opcode of a control frame.
const CLOSE: u8 = 8;

/// The first byte of both close codes, 1013 and 1014; the next two constants are their second bytes.
const CODE_HIGH: u8 = (BAD_GATEWAY >> 8) as u8;
const TRY_AGAIN_LOW: u8 = 0xF5;
const BAD_GATEWAY_LOW: u8 = (BAD_GATEWAY & 0xFF) as u8;

/// The close code of a gateway whose upstream has failed.
pub(crate) const BAD_GATEWAY: u16 = 1014;

/// Follows the frames of one connection. It takes only 12 bytes, since every connection has such a follower.
#[derive(Debug, Default)]
pub(crate) struct FrameHeads {
    /// Bytes of the payload that are still to come; within a head, the length as far as it is read. A length that does
    /// not fit is cut to the largest `u32`, which is more than the parser accepts.
    left: u32,
    part: Part,
    opcode: u8,
    /// The second byte of the head: whether there is a mask, and how the length is written.
    second: u8,
    /// The first two bytes of the mask; 0 if there is none.
    mask: [u8; 2],
    close: CloseCode,
    /// Whether a message was begun whose last frame has not begun.
    goes_on: bool,
}

/// Where in a frame the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// In the head, after this many of its bytes.
    Head(u8),
    Payload,
}

impl Default for Part {
    fn default() -> Self {
        Self::Head(0)
    }
}

/// What has been seen of the code of the first close frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum CloseCode {
    #[default]
    Unseen,
    /// The first byte of the code is that of 1014.
    Half,
    /// The code is 1014, and the parser was given 1013.
    BadGateway,
    Other,
}

impl FrameHeads {
    /// Follows `bytes`, which were just read, and gives how many heads have ended in them. Changes the code 1014 of a
    /// close frame to 1013, which the parser accepts.
    pub(crate) fn pass(&mut self, bytes: &mut [u8]) -> u32 {
        let (mut at, mut frames) = (0, 0);
        while at < bytes.len() {
            match self.part {
                Part::Head(known) => {
                    frames += u32::from(self.pass_head(known, bytes[at]));
                    at += 1;
                }
                Part::Payload => at += self.pass_payload(&mut bytes[at..]),
            }
        }
        frames
    }

    /// Whether the first close frame had the code 1014.
    pub(crate) fn is_bad_gateway(&self) -> bool {
        self.close == CloseCode::BadGateway
    }

    /// Whether only whole messages have passed, so that the next byte begins another message.
    pub(crate) fn is_between_messages(&self) -> bool {
        self.part == Part::Head(0) && !self.goes_on
    }

    /// Takes `byte` as byte number `at` of a head, and gives whether it is the head's last byte.
    fn pass_head(&mut self, at: u8, byte: u8) -> bool {
        match at {
            0 => {
                (self.opcode, self.mask) = (byte & 0x0F, [0; 2]);
                // A control frame may stand between the frames of a message.
                if self.opcode < CLOSE {
                    self.goes_on = byte & FIN == 0;
                }
            }
            1 => {
                (self.second, self.left) =
                    (byte, if Self::length_bytes(byte) == 0 { u32::from(byte & 0x7F) } else { 0 })
            }
            at if at < self.mask_at() => self.left = self.left.saturating_mul(256).saturating_add(byte.into()),
            at => {
                let nth = usize::from(at - self.mask_at());
                if let Some(mask) = self.mask.get_mut(nth) {
                    *mask = byte;
                }
            }
        }
        let is_last = at >= 1 && at + 1 == self.mask_at() + if self.second & 0x80 == 0 { 0 } else { 4 };
        self.part = match (is_last, self.left) {
            (false, _) => Part::Head(at + 1),
            (true, 0) => Part::Head(0),
            (true, _) => Part::Payload,
        };
        is_last
    }

    /// How many bytes after the second byte of a head, `second`, hold the length.
    fn length_bytes(second: u8) -> u8 {
        match second & 0x7F {
            126 => 2,
            127 => 8,
            _ => 0,
        }
    }

    /// The number of the head's byte at which the mask begins, if there is one.
    fn mask_at(&self) -> u8 {
        2 + Self::length_bytes(self.second)
    }

    /// Follows the part of the payload that is in `bytes`, and gives how many bytes that is.
    fn pass_payload(&mut self, bytes: &mut [u8]) -> usize {
        let passed = bytes.len().min(self.left as usize);
        if self.opcode == CLOSE {
            bytes[..passed].iter_mut().take(2).for_each(|byte| self.pass_code(byte));
        }
        self.left -= passed as u32;
        if self.left == 0 {
            self.part = Part::Head(0);
        }
        passed
    }

    /// Takes the next byte of a close frame; only the two bytes of the code matter.
    fn pass_code(&mut self, byte: &mut u8) {
        self.close = match self.close {
            CloseCode::Unseen if *byte ^ self.mask[0] == CODE_HIGH => CloseCode::Half,
            CloseCode::Half if *byte ^ self.mask[1] == BAD_GATEWAY_LOW => {
                *byte ^= BAD_GATEWAY_LOW ^ TRY_AGAIN_LOW;
                CloseCode::BadGateway
            }
            CloseCode::Unseen | CloseCode::Half | CloseCode::Other => CloseCode::Other,
            CloseCode::BadGateway => CloseCode::BadGateway,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MASK: [u8; 4] = [0x12, 0x9A, 0x00, 0xFF];

    fn frame(opcode: u8, payload: &[u8], masked: bool) -> Vec<u8> {
        let bit = if masked { 0x80 } else { 0 };
        let mut frame = vec![0x80 | opcode];
        match payload.len() {
            len @ 0..=125 => frame.push(bit | len as u8),
            len @ 126..=0xFFFF => {
                frame.push(bit | 126);
                frame.extend((len as u16).to_be_bytes());
            }
            len => {
                frame.push(bit | 127);
                frame.extend((len as u64).to_be_bytes());
            }
        }
        if masked {
            frame.extend(MASK);
        }
        frame.extend(
            payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| if masked { byte ^ mask } else { *byte }),
        );
        frame
    }

    /// Passes `bytes` in reads of the sizes `reads`, which repeat.
    fn pass(bytes: &mut [u8], reads: &[usize]) -> (u32, FrameHeads) {
        let mut heads = FrameHeads::default();
        let (mut frames, mut at) = (0, 0);
        for size in reads.iter().cycle() {
            let end = bytes.len().min(at + size);
            frames += heads.pass(&mut bytes[at..end]);
            at = end;
            if at == bytes.len() {
                break;
            }
        }
        (frames, heads)
    }

    proptest! {
        #[test]
        fn every_frame_counts_once_and_none_but_a_close_with_1014_is_changed(
            frames in prop::collection::vec((0u8..16, prop_oneof![0usize..4, 120usize..130, 65_530usize..65_540], any::<bool>()), 0..6),
            fill in any::<u8>(),
            reads in prop::collection::vec(1usize..400, 1..5),
        ) {
            let bytes: Vec<u8> =
                frames.iter().flat_map(|&(opcode, len, masked)| frame(opcode, &vec![fill; len], masked)).collect();
            let mut passed = bytes.clone();
            let (counted, heads) = pass(&mut passed, &reads);
            prop_assert_eq!(counted as usize, frames.len());
            prop_assert_eq!(passed, bytes);
            prop_assert!(!heads.is_bad_gateway());
        }
    }

    #[test]
    fn the_parser_is_given_1013_for_1014_wherever_a_read_ends() {
        for (masked, read) in [(true, 1), (true, 2), (true, 7), (true, 99), (false, 1), (false, 3), (false, 99)] {
            let closing = |code: u16| [code.to_be_bytes().as_slice(), b"upstream"].concat();
            let mut bytes = [frame(1, b"{}", masked), frame(CLOSE, &closing(1014), masked)].concat();
            let (frames, heads) = pass(&mut bytes, &[read]);
            assert_eq!((frames, heads.is_bad_gateway()), (2, true), "{masked} {read}");
            assert_eq!(bytes, [frame(1, b"{}", masked), frame(CLOSE, &closing(1013), masked)].concat());
        }
    }

    #[test]
    fn other_close_codes_and_other_frames_stay_as_they_are() {
        for (opcode, payload) in [
            (CLOSE, 1013_u16.to_be_bytes().to_vec()),
            (CLOSE, 1270_u16.to_be_bytes().to_vec()),
            (CLOSE, vec![0x03]),
            (CLOSE, [1000_u16.to_be_bytes(), 1014_u16.to_be_bytes()].concat()),
            (1, 1014_u16.to_be_bytes().to_vec()),
        ] {
            let bytes = frame(opcode, &payload, true);
            let mut passed = bytes.clone();
            let (_, heads) = pass(&mut passed, &[1]);
            assert_eq!((passed, heads.is_bad_gateway()), (bytes, false), "{opcode} {payload:?}");
        }
    }
}
