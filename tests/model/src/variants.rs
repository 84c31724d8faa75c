//! Variants of the model: in each a rule is left out, or replaced by one that seems to do as well. For each of them the
//! model finds a run in which a property breaks.

use crate::configurations::named;
use crate::{Action, Fanout};
use stateright::{Checker, Model};

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// A read pulls an author of whom the inbox holds nothing, instead of by a watermark.
    PullIfAbsent,
    /// A record goes by its author's class now, instead of by the route its add was given.
    CurrentClass,
    /// A push step appends whatever the inbox has taken in of the edge.
    NoMarkCheck,
    /// A follow worker reads the outbox before the edge.
    BackfillBeforeTheEdge,
    /// A record is fanned out that is not committed yet, and then never is.
    FanOutBeforeOutbox,
    /// A sequence id is given before what stands there is written.
    SequenceBeforeCommit,
    /// What is to be done for every feed is finished when it is done for the main one.
    FinishedAfterTheMainFeed,
    /// Edges that are brought together are finished together, also one that was overtaken.
    FinishedThoughOvertaken,
    /// Which feeds there are is asked before the edge is read.
    FeedsReadFirst,
    /// A push step takes what comes next along, of whatever feed, to the feed of the first.
    StepMixesFeeds,
    /// A push step takes what is of its feed from what comes next, and moves the progress past the rest.
    StepLeavesFeedsOut,
    /// A push step takes narrowed records along with others.
    NarrowedGoAlong,
    /// A push step brings a narrowed record to its audience alone, and leaves its author out.
    OwnIsLeftOut,
    /// An item gets another rank by an update.
    MoveIsAnEdit,
    /// The add of a move takes the route of its author's class now.
    MoveByClass,
    /// An item that is older than the follow of everyone moves.
    OlderThanEveryoneMoves,
    /// Any delete of an item ends its adds, also one that came before them.
    AnyDeleteEndsAnAdd,
    /// A change shows the rank that its item has now.
    ChangesTellTheRankOfNow,
    /// A page shows what comes from the log at the rank that it has now.
    PagesTellTheRankOfNow,
    /// A page that shows an item by the log shows it below the floor too.
    PageShowsBothPlaces,
    /// What gives way to another item is deleted after that has come.
    ReplacementFirst,
    /// A follow step brings what is narrowed to others.
    FollowIgnoresAudiences,
    /// A bucket that has lost the progress of an author goes on at the outbox head.
    StartsAtTheHead,
    /// A device asks for what is newer than the newest that it has.
    CatchUpByTime,
    /// A push step does not compare the progress.
    NoProgressCompare,
    /// An executor reads which inboxes are there with the recipients, not in the step.
    StaleActivity,
    /// An inbox is served while it is being rebuilt.
    ServeBeforeSwap,
    /// A rebuild takes the placeholder of another one in its place.
    PlaceholderTaken,
    /// A rebuild swaps in wherever no inbox is.
    SwapWithoutPlaceholder,
    /// What a push step has noted beside a placeholder is not taken in at the swap.
    NotesIgnored,
    /// A note is taken in whatever the rebuild has brought of the author.
    NotesForgetAhead,
    /// A note of an executor that knows less of the edges than the rebuild is taken in.
    StaleNotesAppended,
    /// A note under an edge that the rebuild has not seen yet is taken in.
    SkippedNotesAppended,
    /// A rebuild that joins the placeholder of another takes in what was noted before it did.
    JoinerTakesAllNotes,
    /// A rebuild that read the progress before a loss joins a placeholder of after it.
    JoinsAfterALoss,
    /// A step that finds no inbox is done, though one is being built.
    StepsPassBuildsBy,
    /// A follow step that finds no inbox is done if none was being built before it read the edge.
    BuildsLookedForFirst,
    /// A cut is `done`, also for readers that the next record has reached.
    CutIgnoresLastReader,
    /// A rebuild leaves an edge to the follow step that is outstanding.
    RebuildSkipsPendingFollow,
    /// A rebuild brings what push has brought to the bucket, and leaves the rest to push.
    RebuildCutAtTheProgress,
    /// An inbox does not remember that it was built ahead of push.
    AheadOfPushAndForgotten,
    /// A rebuild that finds push behind the outbox takes it for running.
    NothingReopened,
    /// A worker that is told of a reopening finishes the work at once, and goes through it again only afterwards.
    FinishedAsItIsTold,
    /// Once any worker was told of a reopening, the next finish counts, even of a worker that began before it.
    ToldWithoutNumber,
    /// A worker begins where events are finished, also where they were reopened.
    UnaskedThoughReopened,
    /// A worker takes the followers that were read before, though an edge has changed since.
    KeptThoughChanged,
    /// A step of followers that were read before leaves notes beside a placeholder.
    KeptLeaveNotes,
    /// A take does not compare the watermarks.
    TakeWithoutCompare,
    /// A step that turns an edge off acts also if the inbox knows a later generation.
    StaleForget,
    /// An update or delete takes the route of its author's class now.
    DeleteByClass,
    /// A page comes from the log alone.
    NoFloor,
    /// An event is outstanding until somebody was told of it.
    OutstandingUntilRelayed,
    /// Where the inbox knows of later edges, a push step appends.
    NoCounterCompare,
    /// An inbox keeps the greatest generation it has taken in of any edge, and no entry for each.
    AppliedInsteadOfMarks,
    /// Turning an edge off takes no generation.
    UnfollowWithoutNumber,
    /// A step that turns an edge off removes the inbox's entry.
    UnfollowRemovesItsEntry,
    /// A follow step acts where a push step would not append.
    FollowStepByPushVerdict,
    /// An executor reads the counter after the edges.
    CounterAfterEdges,
    /// A rebuild reads the counter before the edges.
    RebuildCounterBefore,
    /// A rebuild reads the counter after the edges.
    RebuildCounterAfter,
    /// A follow step does not compare the pull watermark.
    FollowIgnoresWatermark,
    /// A take reads the edges first and then the records.
    RecordsAfterEdges,
    /// A follow step leaves what is pulled to pull, which may have passed it by.
    FollowBringsNothingPulled,
    /// `Forget` takes what was addressed to the reader too.
    ForgetTakesDirect,
    /// When a shield goes down, the edge has the `from` it had before.
    UnmuteKeepsFrom,
    /// A follow has its whole past by a `from` below the outbox head, not by a number of its own.
    FromBehindTheHead,
    /// A follow step that leaves a part of the past to pages does not raise the floor.
    FloorNotRaised,
    /// A follow step raises the floor, and devices are not told.
    FloorNotTold,
    /// A worker that finds no inbox finishes all there is to bring, not what it had read of.
    MissingFinishesAll,
    /// A position that was cut off is read from where the log begins.
    CutOffIsNotGone,
    /// A step does not notice that the store has been rolled back.
    RollbackNoticedLate,
}

/// The run in which `property` breaks if `variant` is in force, in a configuration that passes without it.
///
/// # Errors
/// If there is none: the number of states looked at.
pub fn refute(variant: Variant, configuration: &str, property: &'static str) -> Result<Vec<Action>, usize> {
    let Some(bounds) = named(configuration) else { return Err(0) };
    let model = Fanout { bounds, variant: Some(variant), asked: Some(property) };
    let checker = model.checker().threads(1).spawn_bfs().join();
    let found = checker.discoveries().into_values().next();
    found.map(|path| path.into_actions()).ok_or(checker.unique_state_count())
}
