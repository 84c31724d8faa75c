//! The numbers of the users whom requests name.

use std::slice::from_ref;

use feedgate_common::archive::Names;
use feedgate_common::{UserId, UserNo};

use super::problem::Problem;

/// The number of a user; `None` if the user was never named.
pub(super) async fn user_no(names: &dyn Names, user: &UserId) -> Result<Option<UserNo>, Problem> {
    Ok(names.user_nos(from_ref(user)).await?.into_iter().flatten().next())
}

/// The number of a user. A user who was never named gets a number now: a new user has an empty feed, and that feed has
/// a position.
pub(super) async fn intern(names: &dyn Names, user: &UserId) -> Result<UserNo, Problem> {
    Ok(names.intern(from_ref(user)).await?[0])
}
