//! The numbers that a client acts on: error codes of replies, close codes of connections.
//!
//! ```text
//!   unsubscribe < 2500            the SDK does not subscribe again by itself
//!   close < 3000 (but not 1009)   the SDK reconnects
//!   3000-3499, 4000-4499          the SDK reconnects
//!   3500-3999, 4500-4999          the SDK stops for good
//! ```
//!
//! A close reason never parses as JSON, since an SDK would act on that, and stays far below the 123 bytes that a close
//! frame has room for.

use std::borrow::Cow;

macro_rules! codes {
    ($(#[$doc:meta])* $vis:vis $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        $vis enum $name {
            $($(#[$variant_doc])* $variant = $code,)*
        }

        impl $name {
            /// All variants, by ascending number.
            #[allow(dead_code, reason = "only tests use that of some")]
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),*];

            /// The number that is sent.
            $vis fn code(self) -> u16 {
                self as u16
            }

            /// The text that is sent with the number.
            $vis fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

codes! {
    /// Why the server ends a connection.
    pub Close {
        /// A frame breaks RFC 6455.
        Protocol = 1002, "protocol error";
        /// A binary frame came on a JSON connection, or a text frame on one of Protobuf.
        Unsupported = 1003, "json comes in text frames, protobuf in binary ones";
        /// A text frame is not UTF-8.
        NotUtf8 = 1007, "text must be utf-8";
        /// A message or a frame is larger than the limit.
        TooBig = 1009, "message too big";
        /// This node shuts down; the client is to connect again, to another node.
        Shutdown = 3001, "shutdown";
        /// Something failed on the server.
        ServerError = 3004, "server error";
        /// The token has expired and was not refreshed, or it was revoked.
        Expired = 3005, "expired";
        /// The peer asks for more than it reads.
        Slow = 3008, "slow";
        /// The position is gone: subscribe again to learn where the feed stands.
        InsufficientState = 3010, "insufficient state";
        /// An older connection of the device has taken its place by mistake: the device is to connect again.
        Displaced = 3011, "force reconnect";
        /// The peer did not answer a ping in time.
        NoPong = 3012, "no pong";
        /// The peer sends more commands per second than allowed.
        TooManyRequests = 3013, "too many requests";
        /// The token was not issued for this server, or is not valid.
        InvalidToken = 3500, "invalid token";
        /// The peer does not follow the protocol.
        BadRequest = 3501, "bad request";
        /// The peer did not send `connect` in time.
        Stale = 3502, "stale";
        /// An operator or a backend has ended this session.
        ForceDisconnect = 3503, "force disconnect";
        /// The user holds as many connections as allowed.
        ConnectionLimit = 3504, "connection limit";
        /// A newer connection of the same device has replaced this one.
        Replaced = 4500, "replaced by a newer connection of this device";
    }
}

codes! {
    /// Why the server ends a subscription. Below 2500 the SDK does not subscribe again by itself.
    pub(crate) Unsubscribed {
        /// The item is deleted, or the user may not see it any more; the code does not say which of the two.
        Unseen = 2001, "there is no such item for this user any more";
    }
}

impl Close {
    /// The text that the client gets: the text of this code, and then `why` if that is not empty.
    pub(crate) fn reason(self, why: &'static str) -> Cow<'static, str> {
        if why.is_empty() { self.text().into() } else { format!("{}: {why}", self.text()).into() }
    }

    /// The close with this number, if another part of the gateway may ask a connection to close with it.
    pub(crate) fn from_code(code: u16) -> Option<Self> {
        [Self::Shutdown, Self::Expired, Self::Displaced, Self::ForceDisconnect, Self::Replaced]
            .into_iter()
            .find(|close| close.code() == code)
    }
}

codes! {
    /// Why a command was refused.
    pub(crate) ErrorCode {
        /// Something failed on the server; try again.
        Internal = 100, "internal server error";
        /// The command came without a token.
        Unauthorized = 101, "unauthorized";
        /// No feed has this name.
        UnknownChannel = 102, "unknown channel";
        /// This user may not do it, or nobody may over a WebSocket.
        PermissionDenied = 103, "permission denied";
        /// The server knows no such command or rpc.
        MethodNotFound = 104, "method not found";
        /// A connection may subscribe to a channel only once.
        AlreadySubscribed = 105, "already subscribed";
        /// The connection has as many subscriptions of this kind as allowed.
        LimitExceeded = 106, "limit exceeded";
        /// The arguments are wrong; the message says why.
        BadRequest = 107, "bad request";
        /// The protocol has this command, but this server does not.
        NotAvailable = 108, "not available";
        /// The token was valid, and has expired.
        TokenExpired = 109, "token expired";
        /// The server is overloaded; try again later.
        TooManyRequests = 111, "too many requests";
        /// The position is gone: load the first page again.
        UnrecoverablePosition = 112, "unrecoverable position";
    }
}

impl ErrorCode {
    /// Whether the reply tells the SDK to try again by itself. After an expired token, an SDK does so on `connect` in
    /// any case, but on `refresh` only if told; otherwise it ends for good instead of asking the app for a token.
    pub(crate) fn temporary(self) -> bool {
        matches!(self, Self::Internal | Self::TokenExpired | Self::TooManyRequests)
    }

    /// A refusal with this code and with `why`, which says what was wrong and what would be right.
    pub(crate) fn because(self, why: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal { code: self, message: why.into() }
    }
}

/// A command that was refused. It has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The code that the SDK acts on.
    pub(crate) code: ErrorCode,
    /// The text that a person reads; never empty.
    pub(crate) message: Cow<'static, str>,
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        code.because(code.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_reason_never_parses_as_json_and_fits_its_frame() {
        for close in Close::ALL {
            assert!(serde_json::from_str::<serde_json::Value>(close.text()).is_err(), "{close:?}");
            assert!((1..=120).contains(&close.text().len()), "{close:?}");
        }
    }

    #[test]
    fn codes_are_ascending_and_an_error_says_something() {
        assert!(Close::ALL.is_sorted_by_key(|c| c.code()));
        assert!(ErrorCode::ALL.is_sorted_by_key(|c| c.code()));
        assert!(ErrorCode::ALL.iter().all(|c| !Refusal::from(*c).message.is_empty()));
    }

    #[test]
    fn the_protocols_document_lists_every_code_with_its_words() {
        let document = include_str!("../../../docs/asyncapi.yaml");
        let row = |line: &&str| line.trim().starts_with(['|', '-']);
        let rows: Vec<&str> = document.lines().filter(row).map(str::trim).collect();
        for close in Close::ALL {
            let start = format!("| {} | {} | ", close.code(), close.text());
            assert_eq!(rows.iter().filter(|row| row.starts_with(&start)).count(), 1, "{start}");
        }
        let closes =
            rows.iter().filter(|row| row.starts_with("| 1") || row.starts_with("| 3") || row.starts_with("| 4"));
        assert_eq!(closes.count(), Close::ALL.len(), "and no other");
        for error in ErrorCode::ALL {
            let start = format!("- {} ", error.code());
            let row = rows.iter().find(|row| row.starts_with(&start)).unwrap_or_else(|| panic!("{start}"));
            assert_eq!(row.ends_with("(temporary)"), error.temporary(), "{row}");
        }
        for unsubscribed in Unsubscribed::ALL {
            let start = format!("| {} | {} | ", unsubscribed.code(), unsubscribed.text());
            assert!((2000..2500).contains(&unsubscribed.code()), "the SDK would subscribe again");
            assert_eq!(document.lines().filter(|line| line.trim().starts_with(&start)).count(), 1, "{start}");
        }
        let codes: Vec<u16> = ErrorCode::ALL.iter().map(|error| error.code()).collect();
        assert!(document.contains(&format!("enum: {codes:?}")), "{codes:?}, and no other");
    }
}
