//! The oracle, which says what every feed must hold, and all that is needed to compare this with what devices see.
//!
//! ```text
//!   history   what a backend asked for, in the order it was accepted
//!      ├────▶ feeds     the oracle: each feed of each reader, rankings and notifications too, from the history alone
//!      └────▶ a real server ─▶ device: reads by position, keeps its own view
//!                                  └── must equal the oracle's, and so must every walk over pages
//!   node      the real rules over real stores; child: the same in a process that may be killed
//!   shrink    the least part of a failing schedule that still fails
//! ```
//!
//! Users are small numbers here, and so are items: a [`World`] gives them names of their own, so that many schedules
//! may share one store.

mod child;
mod device;
mod feeds;
mod history;
mod node;
mod shrink;

pub use child::{Answer, Ask, Survivor};
pub use device::{Changes, Device, Line, Look, Page, Seen, Serves, Shown, walk};
pub use feeds::Oracle;
pub use history::{
    AUTHORS, BACKFILL, FEEDS, Imagined, Inbox, Item, NOTES, NOW, Op, PULL_ABOVE, RANKED, STEP_MAX, USERS, User, World,
    all_inboxes, some_feed, some_inbox, whole_world,
};
pub use node::{Node, listens, name_feeds, name_notes, name_rankings, rankings, renew_all, work_off, work_off_all};
pub use shrink::{given, hold, seeds};
