//! The kinds of calls to Redis, by which calls are counted: each script by its name, all plain commands together.

use feedgate_common::labels;

/// A kind of call. The scripts of the inboxes come first, then those of the session pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Advance,
    Edges,
    Take,
    Begin,
    Finish,
    Present,
    /// The oldest entries of a log that is to be cut.
    Oldest,
    Trim,
    Discard,
    Read,
    Log,
    Stands,
    Touch,
    Progress,
    Renew,
    Claim,
    Confirm,
    Lease,
    Life,
    List,
    Release,
    Revoke,
    Save,
    Sweep,
    /// A plain command that reads or deletes.
    Command,
    /// Whether the server answers.
    Ping,
}

labels!(Verb, "call":
    Advance "advance", Edges "edges", Take "take", Begin "begin", Finish "finish", Present "present", Oldest "oldest",
    Trim "trim", Discard "discard", Read "read", Log "log", Stands "stands", Touch "touch", Progress "progress",
    Renew "renew", Claim "claim", Confirm "confirm", Lease "lease", Life "life", List "list", Release "release",
    Revoke "revoke", Save "save", Sweep "sweep", Command "command", Ping "ping");
