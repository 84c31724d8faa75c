//! Many changes of who follows, mutes, hides from and blocks whom, and answers to requests, in one commit.

use axum::extract::State;
use axum::response::Response;
use feedgate_common::UserId;
use feedgate_common::archive::{Answer, Refused, Write, Written};
use feedgate_common::graph::Shield;
use serde::Serialize;
use serde_json::value::RawValue;

use super::access::PublishKey;
use super::batch::{self, Operation};
use super::fields::{Field, Fields};
use super::payload::Payload;
use super::problem::{Problem, short};
use super::query::NoQuery;
use super::shields;
use super::writer::Writer;

/// The result of one operation that was done.
#[derive(Serialize)]
pub(super) struct Outcome {
    status: u16,
    user: UserId,
    #[serde(flatten)]
    now: Now,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Now {
    Follow {
        author: UserId,
        following: bool,
        /// Whether the author is private, so that the follow is only a request so far.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pending: bool,
    },
    Request {
        reader: UserId,
        accepted: bool,
    },
    Mute {
        other: UserId,
        muted: bool,
    },
    Hide {
        other: UserId,
        hidden: bool,
    },
    Block {
        other: UserId,
        blocked: bool,
    },
}

/// The fields that name the other user of an operation; each takes one of them.
const WHOM: [&str; 3] = ["author", "reader", "other"];

/// An operation by its name.
#[derive(Clone, Copy)]
enum Verb {
    /// Set the edge (true), or remove it.
    Follow(bool),
    /// Accept a request, or refuse it.
    Answer(Answer),
    /// Put the shield up (true), or take it down.
    Shield(Shield, bool),
}

/// Answers `POST /v1/follows/batch` with one result for each operation.
pub(super) async fn many(
    _: PublishKey,
    State(writer): State<Writer>,
    _: NoQuery,
    payload: Payload<{ batch::BYTES_MAX }>,
) -> Result<Response, Problem> {
    batch::carry_out(&writer, payload, operation, outcome).await
}

/// The result of an operation that was carried out. The refusal of a request that does not exist succeeds, as it does
/// on the route for one request.
fn outcome(wanted: Outcome, written: Result<Written, Refused>) -> Result<Outcome, Refused> {
    match (wanted, written) {
        (Outcome { user, now: Now::Follow { author, .. }, .. }, Ok(Written::Edge { pending: true, .. })) => {
            Ok(Outcome { status: 202, user, now: Now::Follow { author, following: false, pending: true } })
        }
        (wanted @ Outcome { now: Now::Request { accepted: false, .. }, .. }, Err(Refused::NoSuchRequest { .. })) => {
            Ok(wanted)
        }
        (wanted, written) => written.map(|_| wanted),
    }
}

/// Reads one operation: `{"op":"follow"|"unfollow","user","author"}`, `{"op":"accept"|"refuse","user","reader"}` or
/// `{"op":"mute"|…,"user","other"}`.
pub(super) fn operation(op: &RawValue, at: String) -> Operation<Outcome> {
    let fields = Fields::of(op, at, &[&["op", "user"], &WHOM[..]].concat())?;
    let verb = verb(&fields.required("op")?)?;
    let whom = match verb {
        Verb::Follow(_) => "author",
        Verb::Answer(_) => "reader",
        Verb::Shield(..) => "other",
    };
    if let Some(field) = WHOM.iter().filter(|name| **name != whom).find_map(|name| fields.get(name)) {
        return Err(field.refuse(format_args!("this operation takes {whom:?} instead")));
    }
    let user: UserId = fields.required("user")?.name()?;
    let whom = fields.required(whom)?;
    let other: UserId = whom.name()?;
    let (write, now) = match verb {
        Verb::Follow(following) => {
            let (reader, author) = (user.clone(), other.clone());
            let write = if following { Write::Follow { reader, author } } else { Write::Unfollow { reader, author } };
            (write, Now::Follow { author: other, following, pending: false })
        }
        Verb::Answer(answer) => {
            let write = Write::Answer { reader: other.clone(), author: user.clone(), answer };
            (write, Now::Request { reader: other, accepted: answer == Answer::Accept })
        }
        Verb::Shield(shield, up) => {
            let write = shields::write(user.clone(), other.clone(), shield, up).map_err(|why| whom.refuse(why))?;
            let now = match shield {
                Shield::Mute => Now::Mute { other, muted: up },
                Shield::Hide => Now::Hide { other, hidden: up },
                Shield::Block => Now::Block { other, blocked: up },
            };
            (write, now)
        }
    };
    Ok((Outcome { status: 200, user, now }, write))
}

fn verb(op: &Field<'_>) -> Result<Verb, Problem> {
    Ok(match &*op.string()? {
        "follow" => Verb::Follow(true),
        "unfollow" => Verb::Follow(false),
        "accept" => Verb::Answer(Answer::Accept),
        "refuse" => Verb::Answer(Answer::Refuse),
        "mute" => Verb::Shield(Shield::Mute, true),
        "unmute" => Verb::Shield(Shield::Mute, false),
        "hide" => Verb::Shield(Shield::Hide, true),
        "unhide" => Verb::Shield(Shield::Hide, false),
        "block" => Verb::Shield(Shield::Block, true),
        "unblock" => Verb::Shield(Shield::Block, false),
        other => {
            return Err(op.refuse(format_args!(
                "must be \"follow\", \"mute\", \"hide\" or \"block\", or one of these with \"un\" before it, or \"accept\" or \
                 \"refuse\", not {:?}",
                short(other)
            )));
        }
    })
}
