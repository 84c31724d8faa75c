//! What other programs are told of a write: one announcement if it was accepted and has changed something, else none.
//! Of a line of notifications, other programs are told what becomes of each item of the line.
//!
//! Invariant: a write that is refused, repeated or imported, or that asks for a state that holds already, is not
//! announced. A notification is announced as any other item.

use compact_str::CompactString;

use super::plan::{Ask, Change, Plan};
use crate::announce::{Act, Announcement};
use crate::archive::{Write, Written};
use crate::change::Class;
use crate::graph::Shield;
use crate::{Millis, Op, UserNo};

/// The announcements to store in the same transaction as the changes of `plan`, which was made of `ask`.
pub fn announcements(ask: &Ask, plan: &Plan<'_>) -> Vec<Announcement> {
    if plan.history || plan.changes.is_empty() {
        return vec![];
    }
    match ask.write() {
        Write::Line(_) => plan.changes.iter().filter_map(|change| of_item(change, plan)).collect(),
        _ => announcement(ask, plan).into_iter().collect(),
    }
}

/// The announcement of a change of an item of a line; `None` if other programs are not told of such a change.
fn of_item(change: &Change<'_>, plan: &Plan<'_>) -> Option<Announcement> {
    match change {
        Change::Make { id, item, publish } => Some(Announcement {
            item: Some(*id),
            version: Some(1),
            detail: publish.foreign_id.clone(),
            ..of(Act::Publish, item.author, plan.at)
        }),
        Change::Address { op: Op::Delete, author, key, .. } => {
            Some(Announcement { item: Some(key.item), ..of(Act::Delete, *author, plan.at) })
        }
        Change::Address { op: Op::Update, author, key, .. } => {
            let version = plan.changes.iter().find_map(|change| match change {
                Change::Edit { id, version, .. } if *id == key.item => Some(*version),
                _ => None,
            });
            Some(Announcement { item: Some(key.item), version, ..of(Act::Edit, *author, plan.at) })
        }
        _ => None,
    }
}

fn announcement(ask: &Ask, plan: &Plan<'_>) -> Option<Announcement> {
    match (ask.write(), &plan.answer) {
        (Write::Publish(publish), &Written::Published { id, author, .. }) => Some(Announcement {
            item: Some(id),
            version: Some(1),
            detail: publish.foreign_id.clone(),
            ..of(Act::Publish, author, plan.at)
        }),
        (Write::Notify(wanted), &Written::Published { id, author, .. }) => Some(Announcement {
            item: Some(id),
            version: Some(1),
            detail: wanted.publish.foreign_id.clone(),
            ..of(Act::Publish, author, plan.at)
        }),
        (Write::Withdraw { .. }, &Written::Deleted { author, .. }) => {
            Some(Announcement { item: plan.ended().next(), ..of(Act::Delete, author, plan.at) })
        }
        (Write::Edit { item, .. }, &Written::Edited { author, version, .. }) => {
            Some(Announcement { item: Some(*item), version: Some(version), ..of(Act::Edit, author, plan.at) })
        }
        (Write::Delete { item, .. }, &Written::Deleted { author, .. }) => {
            Some(Announcement { item: Some(*item), ..of(Act::Delete, author, plan.at) })
        }
        (Write::Follow { .. } | Write::Answer { .. }, &Written::Edge { reader, author, .. }) if begins(plan) => {
            Some(Announcement { other: Some(author), ..of(Act::Follow, reader, plan.at) })
        }
        (Write::Unfollow { .. }, &Written::Edge { reader, author, .. }) if !takes_back(plan) => {
            Some(Announcement { other: Some(author), ..of(Act::Unfollow, reader, plan.at) })
        }
        (Write::Shield { shield, up, .. }, _) => {
            let (user, other) = plan.changes.iter().find_map(sides)?;
            Some(Announcement { other: Some(other), ..of(act(*shield, *up), user, plan.at) })
        }
        (Write::Classify { class, .. }, &Written::Classified { author, .. }) => {
            Some(Announcement { detail: Some(name(*class)), ..of(Act::Classify, author, plan.at) })
        }
        _ => None,
    }
}

/// Whether the plan begins a follow. Other programs are not told of a request to follow.
fn begins(plan: &Plan<'_>) -> bool {
    plan.changes.iter().any(|change| matches!(change, Change::Edge { now, .. } if now.follows))
}

/// Whether the plan takes back a request to follow.
fn takes_back(plan: &Plan<'_>) -> bool {
    plan.changes.iter().any(|change| matches!(change, Change::Edge { before: Some(row), .. } if row.asked))
}

fn of(act: Act, user: UserNo, at: Millis) -> Announcement {
    Announcement { act, user, other: None, item: None, version: None, at, detail: None }
}

/// The user who has put the shield up or taken it down, and the user on the other side.
fn sides(change: &Change<'_>) -> Option<(UserNo, UserNo)> {
    match change {
        Change::Shield { user, other, .. } => Some((*user, *other)),
        _ => None,
    }
}

fn act(shield: Shield, up: bool) -> Act {
    match (shield, up) {
        (Shield::Mute, true) => Act::Mute,
        (Shield::Mute, false) => Act::Unmute,
        (Shield::Hide, true) => Act::Hide,
        (Shield::Hide, false) => Act::Unhide,
        (Shield::Block, true) => Act::Block,
        (Shield::Block, false) => Act::Unblock,
    }
}

fn name(class: Class) -> CompactString {
    match class {
        Class::Auto => "auto".into(),
        Class::Push => "push".into(),
        Class::Pull => "pull".into(),
        Class::Everyone => "everyone".into(),
    }
}
