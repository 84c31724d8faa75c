//! The outcomes of a command.

use std::borrow::Cow;
use std::sync::Arc;

use feedgate_common::{FeedId, Position, StoreError};

use crate::auth::TokenError;
use crate::limits::budget::Full;
use crate::node::identity::Identity;
use crate::node::watches::Watch;
use crate::protocol::{Close, ErrorCode, Refusal, Reply};
use crate::subscription::Start;

/// What follows from a command, done or not done.
pub(crate) type Outcome = Result<Then, Stop>;

/// What follows from a command that was done.
#[derive(Debug)]
pub(crate) enum Then {
    /// Send this reply; nothing else follows.
    Reply(Reply),
    /// The device is authenticated; its token expires at this Unix time, in seconds.
    Connected(Arc<Identity>, u64),
    /// The device has a new token, which expires at this Unix time, in seconds.
    Refreshed(u64),
    /// The device has all changes of the feed up to this position.
    Acked(FeedId, Position),
    /// Send this reply; the device has all changes of the feed up to this position.
    ReplyAndAcked(Reply, FeedId, Position),
    /// The device watches an item, and gets this reply first.
    Watching(Watch, Reply),
    /// The subscription in the making starts here.
    Start(Start),
}

/// Why a command was not done.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Answer with this refusal.
    Refused(Refusal),
    /// Answer that a store has failed, in this way.
    Failed(StoreError),
    /// Close the connection with this code.
    Close(Close),
    /// Close the connection because of its token; the text says why.
    BadToken(&'static str),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ErrorCode> for Stop {
    fn from(code: ErrorCode) -> Self {
        Self::Refused(code.into())
    }
}

impl From<TokenError> for Stop {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Expired => ErrorCode::TokenExpired.into(),
            // At this error the SDK asks the app for a token and connects again, after longer and longer pauses.
            TokenError::Revoked | TokenError::Undated | TokenError::UnknownKey => {
                ErrorCode::TokenExpired.because(error.why()).into()
            }
            TokenError::Invalid(why) => Self::BadToken(why),
        }
    }
}

impl From<Full> for Stop {
    fn from(_: Full) -> Self {
        ErrorCode::TooManyRequests.into()
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Overloaded { .. } => ErrorCode::TooManyRequests.into(),
            failed => Self::Failed(failed),
        }
    }
}

/// A refusal of a command whose arguments are wrong.
pub(crate) fn bad(why: impl Into<Cow<'static, str>>) -> Stop {
    ErrorCode::BadRequest.because(why).into()
}
