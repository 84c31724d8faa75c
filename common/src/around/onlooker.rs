//! Whose comments and reactions a viewer sees around an item (S3).
//!
//! ```text
//!   All      comments of all who are in no block with the viewer; reactions of everybody
//!   Mutual   comments and reactions of mutual friends, one's own, and those of the author of the item, who sees all;
//!            none of a user who is in a block with the viewer
//! ```
//!
//! What is counted for a viewer is what the viewer is shown, or it is not counted.

use serde::{Deserialize, Serialize};

use super::original::Viewer;
use crate::UserNo;
use crate::graph::Shields;

/// Whose comments and reactions users see on the items that they see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visible {
    /// A user sees the comments and reactions of everybody.
    #[default]
    All,
    /// A user sees those of users whom it follows and who follow it, and whatever the author of the item says or is
    /// told.
    Mutual,
}

/// The viewer for whom comments and reactions are read, and the setting that says whose of them users see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Onlooker {
    /// The viewer for whom comments and reactions are read. A backend that names no user sees all.
    pub viewer: Viewer,
    /// Whose comments and reactions users see.
    pub visible: Visible,
}

impl Onlooker {
    /// A backend that names no user.
    pub const BACKEND: Self = Self { viewer: Viewer::Backend, visible: Visible::All };

    /// A viewer who is this user, with the setting that users see the comments and reactions of everybody.
    pub fn user(user: UserNo) -> Self {
        Self { viewer: Viewer::User(Some(user)), visible: Visible::All }
    }

    /// Whether the viewer sees the comments and reactions of some users only. Then the viewer is not told the number of
    /// all comments or reactions either.
    pub fn sees_some(self) -> bool {
        self.visible == Visible::Mutual && self.viewer != Viewer::Backend
    }
}

/// How a viewer and the author of a comment, or of a reaction, stand to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tie {
    /// The viewer is the author of the comment or reaction.
    pub own: bool,
    /// The shields on the edge from the viewer to the author of the comment or reaction.
    pub shields: Shields,
    /// The viewer and that author follow each other, whatever shields are up.
    pub mutual: bool,
    /// The viewer, or the author of the comment or reaction, is the author of the item.
    pub of_item: bool,
}

/// Whether a viewer sees a comment that stands in the list. A placeholder says nothing of its author, so everybody sees
/// it. No mute and no hide matters: these are about items.
pub fn shows_comment(lives: bool, tie: Tie, visible: Visible) -> bool {
    let near = visible == Visible::All || tie.mutual || tie.of_item;
    !lives || tie.own || (near && !tie.shields.blocks())
}

/// Whether a viewer sees a reaction. Where reactions of everybody are seen, no block hides one: the count is the same
/// for all. Where those of friends are seen, the rule is that of comments.
pub fn shows_reaction(tie: Tie, visible: Visible) -> bool {
    visible == Visible::All || shows_comment(true, tie, visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_a_viewer_sees_no_comment_of_a_user_behind_a_block() {
        let shows = |lives, own, shields| shows_comment(lives, Tie { own, shields, ..Tie::default() }, Visible::All);
        for block in [Shields::BLOCKED_BY_READER, Shields::BLOCKED_BY_AUTHOR] {
            assert!(!shows(true, false, block), "{block:?}");
            assert!(shows(false, false, block), "a placeholder names nobody");
        }
        for other in [Shields(0), Shields::MUTED, Shields::HIDDEN] {
            assert!(shows(true, false, other), "{other:?}");
        }
        assert!(shows(true, true, Shields::BLOCKED_BY_READER));
    }

    #[test]
    fn s3_of_mutual_friends_alone_a_viewer_sees_these_and_the_author_of_the_item() {
        let shows = |tie| shows_comment(true, tie, Visible::Mutual);
        let stranger = Tie::default();
        assert!(!shows(stranger) && shows_comment(true, stranger, Visible::All));
        for near in [Tie { own: true, ..stranger }, Tie { mutual: true, ..stranger }, Tie { of_item: true, ..stranger }]
        {
            assert!(shows(near), "{near:?}");
            assert!(shows(Tie { shields: Shields::MUTED, ..near }), "a mute is about items: {near:?}");
            assert_eq!(shows(Tie { shields: Shields::BLOCKED_BY_AUTHOR, ..near }), near.own, "{near:?}");
        }
        assert!(shows_comment(false, stranger, Visible::Mutual), "a placeholder names nobody");
        for (viewer, some) in
            [(Viewer::Backend, false), (Viewer::User(None), true), (Viewer::User(Some(UserNo(2))), true)]
        {
            assert_eq!(Onlooker { viewer, visible: Visible::Mutual }.sees_some(), some);
            assert!(!Onlooker { viewer, visible: Visible::All }.sees_some());
        }
    }

    #[test]
    fn s3_a_viewer_sees_the_reactions_of_everybody_or_those_of_whom_it_sees_comments() {
        let ties =
            [false, true].map(|near| [Tie { mutual: near, ..Tie::default() }, Tie { of_item: near, ..Tie::default() }]);
        for tie in ties.into_iter().flatten() {
            for shields in [Shields(0), Shields::MUTED, Shields::BLOCKED_BY_AUTHOR] {
                let tie = Tie { shields, ..tie };
                assert!(shows_reaction(tie, Visible::All), "{tie:?}");
                let of_comments = shows_comment(true, tie, Visible::Mutual);
                assert_eq!(shows_reaction(tie, Visible::Mutual), of_comments, "{tie:?}");
            }
        }
    }
}
