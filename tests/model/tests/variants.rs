//! Each broken rule is found: a configuration that passes with the rule breaks a property without it.
//!
//! `cargo test -p feedgate-model --test variants -- --nocapture` prints how.

#![expect(clippy::print_stdout, reason = "the traces are what the tests show")]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use feedgate_model::variants::Variant::{self, *};
use feedgate_model::variants::refute;

fn refuted(variant: Variant, configuration: &str, property: &'static str) {
    match refute(variant, configuration, property) {
        Ok(trace) => println!("{variant:?} in {configuration} breaks {property}:\n  {trace:?}"),
        Err(states) => panic!("{variant:?} does not break {property} in {configuration}: {states} states"),
    }
}

macro_rules! variants {
    ($($name:ident: $variant:ident in $configuration:ident breaks $property:ident;)*) => {
        $(#[test]
        fn $name() {
            refuted($variant, stringify!($configuration), stringify!($property));
        })*
    };
}

variants! {
    pull_by_author_absent_from_the_inbox: PullIfAbsent in pull breaks i4_at_rest_a_device_shows_what_is_wanted;
    the_current_class_instead_of_the_route: CurrentClass in cross_classes breaks i10_no_mark_passes_what_was_not_appended;
    no_mark_check: NoMarkCheck in push breaks i5_nothing_of_an_author_that_was_left;
    backfill_before_the_edge: BackfillBeforeTheEdge in follow breaks i10_no_mark_passes_what_was_not_appended;
    fan_out_before_the_outbox: FanOutBeforeOutbox in follow breaks i6_only_what_was_accepted_is_shown;
    a_sequence_id_before_the_commit: SequenceBeforeCommit in cross_classes breaks i9_nothing_is_missing_up_to_the_position;
    catch_up_by_time: CatchUpByTime in trim breaks i9_nothing_is_missing_up_to_the_position;
    no_progress_compare: NoProgressCompare in push breaks i3_an_add_stands_once;
    a_stale_snapshot_of_activity: StaleActivity in push breaks i10_no_mark_passes_what_was_not_appended;
    serving_before_the_swap: ServeBeforeSwap in push breaks i10_no_mark_passes_what_was_not_appended;
    a_swap_without_its_placeholder: SwapWithoutPlaceholder in rebuild_overflows breaks i10_no_mark_passes_what_was_not_appended;
    notes_that_are_not_taken_in: NotesIgnored in push breaks i10_no_mark_passes_what_was_not_appended;
    notes_that_forget_what_the_rebuild_brought: NotesForgetAhead in push breaks i3_an_add_stands_once;
    a_note_that_knows_less_of_the_edges: StaleNotesAppended in push breaks i5_nothing_of_an_author_that_was_left;
    a_note_under_an_edge_of_later: SkippedNotesAppended in follow_two breaks i3_an_add_stands_once;
    a_joined_rebuild_that_takes_all_notes: JoinerTakesAllNotes in rebuild breaks i3_an_add_stands_once;
    a_rebuild_of_before_a_loss_that_joins_one_of_after_it: JoinsAfterALoss in roll_back_two_rebuilds breaks i3_an_add_stands_once;
    a_follow_that_passes_a_build_by: StepsPassBuildsBy in rebuild breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_direct_item_that_passes_a_build_by: StepsPassBuildsBy in direct_asleep breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_follow_that_looks_for_builds_first: BuildsLookedForFirst in follow_two breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_rebuild_that_takes_the_placeholder_of_another: PlaceholderTaken in cross_classes_asleep breaks comes_to_rest;
    a_cut_that_ignores_the_last_reader: CutIgnoresLastReader in follow_inside_a_record breaks i10_no_mark_passes_what_was_not_appended;
    a_rebuild_that_skips_an_edge_whose_follow_is_pending: RebuildSkipsPendingFollow in pull_asleep breaks i10_no_mark_passes_what_was_not_appended;
    a_rebuild_that_is_cut_at_the_progress: RebuildCutAtTheProgress in roll_back breaks i8_a_page_shows_all_that_was_accepted_and_finished;
    an_inbox_that_forgets_that_it_is_ahead_of_push: AheadOfPushAndForgotten in push breaks i3_an_add_stands_once;
    finished_work_not_reopened_after_a_rollback: NothingReopened in roll_back breaks at_rest_no_inbox_is_ahead_of_push;
    reopened_work_finished_by_the_one_that_is_told: FinishedAsItIsTold in roll_back_and_crash breaks at_rest_no_inbox_is_ahead_of_push;
    reopened_work_begun_where_it_is_finished: UnaskedThoughReopened in roll_back_unasked breaks at_rest_no_inbox_is_ahead_of_push;
    reopened_work_finished_by_one_that_looked_before: ToldWithoutNumber in roll_back_and_crash breaks at_rest_no_inbox_is_ahead_of_push;
    followers_kept_though_an_edge_has_changed: KeptThoughChanged in keep_followers_and_refollow breaks i4_at_rest_a_device_shows_what_is_wanted;
    followers_kept_and_a_note_left: KeptLeaveNotes in keep_followers breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_take_without_compare: TakeWithoutCompare in pull breaks i3_an_add_stands_once;
    a_stale_forget: StaleForget in follow breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_delete_by_another_door: DeleteByClass in cross_classes breaks i11_a_delete_follows_its_add;
    no_floor: NoFloor in trim breaks i7_at_rest_a_page_is_what_is_wanted;
    outstanding_only_until_relayed: OutstandingUntilRelayed in roll_back breaks i4_at_rest_a_device_shows_what_is_wanted;
    no_counter_compare: NoCounterCompare in cross_classes_asleep breaks i5_nothing_of_an_author_that_was_left;
    the_greatest_generation_applied: AppliedInsteadOfMarks in follow_two breaks i4_at_rest_a_device_shows_what_is_wanted;
    an_unfollow_without_a_number: UnfollowWithoutNumber in follow breaks i5_nothing_of_an_author_that_was_left;
    an_unfollow_that_removes_its_entry: UnfollowRemovesItsEntry in follow breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_follow_step_by_the_push_predicate: FollowStepByPushVerdict in follow_two breaks i3_an_add_stands_once;
    an_executor_that_reads_the_counter_after_the_edges: CounterAfterEdges in cross_classes_asleep breaks i5_nothing_of_an_author_that_was_left;
    a_rebuild_counter_from_before_the_snapshot: RebuildCounterBefore in pull_asleep breaks i3_an_add_stands_once;
    a_rebuild_counter_from_after_the_snapshot: RebuildCounterAfter in cross_classes_asleep breaks i5_nothing_of_an_author_that_was_left;
    a_follow_finished_after_the_main_feed: FinishedAfterTheMainFeed in feeds breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_follow_finished_though_overtaken: FinishedThoughOvertaken in follow breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_direct_item_finished_after_the_main_feed: FinishedAfterTheMainFeed in feeds_direct breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_follow_that_asks_for_the_feeds_first: FeedsReadFirst in feeds_named_meanwhile breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_push_step_that_mixes_feeds: StepMixesFeeds in feeds breaks i6_only_what_was_accepted_is_shown;
    a_push_step_that_leaves_other_feeds_out: StepLeavesFeedsOut in feeds breaks i10_no_mark_passes_what_was_not_appended;
    a_push_step_that_takes_narrowed_items_along: NarrowedGoAlong in narrow breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_follow_step_that_ignores_audiences: FollowIgnoresAudiences in narrow_and_follow breaks i4_at_rest_a_device_shows_what_is_wanted;
    an_author_left_out_of_what_the_author_has_narrowed: OwnIsLeftOut in own breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_move_by_an_edit: MoveIsAnEdit in move_and_follow breaks i7_at_rest_a_page_is_what_is_wanted;
    a_move_by_the_class_of_now: MoveByClass in move_across_classes breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_move_of_what_is_older_than_the_follow_of_everyone: OlderThanEveryoneMoves in move_for_everyone breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_follow_for_which_any_delete_ends_an_add: AnyDeleteEndsAnAdd in move_and_follow breaks i10_no_mark_passes_what_was_not_appended;
    a_rebuild_for_which_any_delete_ends_an_add: AnyDeleteEndsAnAdd in move_direct breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_change_that_tells_the_rank_of_now: ChangesTellTheRankOfNow in move_and_follow breaks s11_each_item_stands_where_the_log_puts_it;
    a_page_that_tells_the_rank_of_now: PagesTellTheRankOfNow in move_and_trim breaks s11_each_item_stands_where_the_log_puts_it;
    a_page_that_shows_both_places_of_an_item: PageShowsBothPlaces in move_and_trim breaks i7_no_page_shows_an_item_twice;
    what_gives_way_after_another_item_has_come: ReplacementFirst in replaced breaks s6_what_gave_way_is_gone;
    a_lost_progress_that_starts_at_the_head: StartsAtTheHead in roll_back breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_follow_step_that_ignores_the_pull_watermark: FollowIgnoresWatermark in pull breaks i10_no_mark_passes_what_was_not_appended;
    a_take_that_reads_records_after_edges: RecordsAfterEdges in pull breaks i10_no_mark_passes_what_was_not_appended;
    a_watermark_past_what_the_follow_step_does_not_bring: FollowBringsNothingPulled in pull breaks i10_no_mark_passes_what_was_not_appended;
    a_forget_that_takes_direct_items: ForgetTakesDirect in direct breaks i4_at_rest_a_device_shows_what_is_wanted;
    an_unmute_with_the_old_from: UnmuteKeepsFrom in shields breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_from_behind_the_head_while_push_runs: FromBehindTheHead in follow_the_past breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_from_behind_the_head_while_pull_runs: FromBehindTheHead in pull_the_past breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_missing_inbox_that_finishes_all: MissingFinishesAll in direct_asleep breaks i4_at_rest_a_device_shows_what_is_wanted;
    a_cut_off_position_that_is_not_gone: CutOffIsNotGone in trim breaks i9_nothing_is_missing_up_to_the_position;
    a_rollback_that_steps_do_not_notice: RollbackNoticedLate in roll_back breaks i16_no_sequence_id_is_used_twice;
    a_follow_of_the_whole_past_leaves_the_floor: FloorNotRaised in follow_the_past breaks i7_at_rest_a_page_is_what_is_wanted;
    a_floor_of_a_follow_is_not_told: FloorNotTold in past_of_two breaks i4_at_rest_a_device_shows_what_is_wanted;
}
