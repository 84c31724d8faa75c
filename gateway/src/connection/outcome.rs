//! What carrying out a command comes to.

use std::borrow::Cow;
use std::sync::Arc;

use feedgate_common::{FeedId, Position, StoreError};

use crate::auth::TokenError;
use crate::limits::budget::Full;
use crate::node::identity::Identity;
use crate::protocol::{Close, ErrorCode, Refusal, Reply};
use crate::session::Start;

/// A command done, or not done.
pub(crate) type Outcome = Result<Then, Stop>;

/// What follows from a command that was done.
#[derive(Debug)]
pub(crate) enum Then {
    /// The answer, and nothing else.
    Reply(Reply),
    /// The device is known now; its token ends at this Unix second.
    Connected(Arc<Identity>, u64),
    /// The same device has a new token.
    Refreshed(u64),
    /// The device has everything of a feed up to here.
    Acked(FeedId, Position),
    /// The answer, and as much acknowledged.
    ReplyAndAcked(Reply, FeedId, Position),
    /// The subscription can start.
    Start(Start),
}

/// Why a command was not done.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Answer with this.
    Refused(Refusal),
    /// End the connection.
    Close(Close),
    /// End it because of its token; why, in words for whoever brought it.
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
            StoreError::Unavailable(_) | StoreError::Down(_) | StoreError::Corrupt(_) => {
                tracing::warn!(%error, "a command could not be carried out");
                ErrorCode::Internal.into()
            }
        }
    }
}

/// A refusal for a request that makes no sense.
pub(crate) fn bad(why: impl Into<Cow<'static, str>>) -> Stop {
    ErrorCode::BadRequest.because(why).into()
}
