//! The tests that every implementation ("home") of [`Archive`] must pass.

#![allow(clippy::unwrap_used, reason = "a suite is a test: what fails says where")]

mod announcements;
mod audiences;
mod comments;
mod direct;
mod erasures;
mod events;
mod everyone;
mod feeds;
mod follows;
mod history;
mod items;
mod lines;
mod mentions;
mod news;
mod notifications;
pub mod oracle;
mod outbox;
mod own_posts;
mod people;
mod pins;
mod private;
mod profiles;
mod push;
mod rankings;
pub mod reactions;
mod reposts;
mod retries;
mod revocations;
pub mod search;
mod shields;
mod sights;
mod versions;
mod window;

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::archive::{Archive, Audience, Content, Edge, EdgeState, Publish, Refused, Write, Written};
use feedgate_common::change::{Class, DEFAULT_PULL_ABOVE};
use feedgate_common::error;
use feedgate_common::graph::Shield;
use feedgate_common::mentions::Remention;
use feedgate_common::{Body, Cut, InboxKey, ItemId, Millis, OutboxSeq, Progress, UserId, UserNo};
use futures_util::{StreamExt, stream};

/// The Unix time in ms at which the suite's clock starts; any other time of today would do.
const NOW: Millis = 1_800_000_000_000;

/// How many random histories run at once, each on a store of its own: while one waits for its home, another goes on.
const AT_ONCE: usize = 4;

/// Asks [`Content::edge_states`] about one edge in place of many. Both methods fail when that method fails.
#[async_trait]
pub trait OneEdge: Content {
    /// The edge between a reader and an author.
    async fn edge(&self, reader: UserNo, author: UserNo) -> error::Result<Edge> {
        Ok(self.edge_states(reader, &[(author, Progress::default())], &[], 0).await?.edges[0])
    }

    /// What a follow step brings of one edge to one inbox.
    async fn edge_state(&self, key: InboxKey, author: UserNo, cut: Cut, backfill: usize) -> error::Result<EdgeState> {
        let edges = [(author, cut.progress)];
        let mut answer = self.edge_states(key.reader, &edges, &[(key.feed, cut.pull)], backfill).await?;
        Ok(answer.states.remove(0).remove(0))
    }
}

impl<T: Content + ?Sized> OneEdge for T {}

/// Where a home keeps the stores of one group of tests. The groups of tests take it as `dyn`, so that they are compiled
/// once and not again for each home.
#[async_trait]
pub trait Stores: Send + Sync {
    /// Makes a place for stores, in which there is none yet.
    fn new() -> Self
    where
        Self: Sized;

    /// Opens the Archive of that name, which is empty at first, laid out for 16 buckets. Its authors of class `auto`
    /// with more than `pull_above` followers are pulled. To open it again after every handle was dropped is a restart.
    async fn open(&self, name: &str, pull_above: u64) -> Arc<dyn Archive>;

    /// Panics if the rows of a store that was opened disagree. A home without such a check keeps this default, which
    /// does nothing.
    async fn are_sound(self)
    where
        Self: Sized,
    {
    }
}

/// Makes public functions of the groups of tests, and a macro that makes a test of each in a home. The compiler warns
/// of a group that is not named here, since nothing calls it. `$d` is the dollar sign of the inner macro.
macro_rules! groups {
    ($d:tt $($group:ident)*) => {
        /// A function for each group of tests.
        pub mod groups {
            $(
                #[doc = concat!("The tests of `", stringify!($group), "`.")]
                pub async fn $group(stores: &dyn super::Stores) {
                    // The future is on the heap: in a debug build it needs more stack than a thread may have left.
                    Box::pin(super::$group(stores)).await;
                }
            )*
        }

        /// The tests that a home of the Archive must pass, one for each group. `archive_tests!(TYPE)`: the type is the
        /// home's [`Stores`](crate::archive::Stores).
        #[macro_export]
        macro_rules! archive_tests {
            ($d stores:ty) => {
                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $group() {
                        let stores = <$d stores as $d crate::archive::Stores>::new();
                        $d crate::archive::groups::$group(&stores).await;
                        $d crate::archive::Stores::are_sound(stores).await;
                    }
                )*
            };
        }
    };
}

groups! { $
    items retries outbox follows events revocations announcements sights people push reactions comments
    notifications lines mentions erasures reposts versions news direct own_posts rankings pins audiences private
    profiles shields everyone feeds history window search random_histories
}

/// Opens stores whose authors are pulled above the usual number of followers.
fn usual(stores: &dyn Stores) -> impl AsyncFn(&str) -> Arc<dyn Archive> {
    async |name: &str| stores.open(name, DEFAULT_PULL_ABOVE).await
}

async fn items(stores: &dyn Stores) {
    let open = usual(stores);
    items::an_accepted_item_reads_back_as_it_was_published(open("accept").await).await;
    items::items_answer_in_the_order_asked(open("asked").await).await;
    items::an_edit_gives_the_next_version(open("edit").await).await;
    items::a_deleted_item_is_gone_and_stays_gone(open("delete").await).await;
    items::a_version_that_has_passed_is_refused(open("version").await).await;
    items::a_refused_operation_changes_nothing_and_stops_no_other(open("refused").await).await;
    items::no_reader_gets_an_old_item_once_its_change_is_answered(open("hot").await).await;
    items::given_ids_are_ordered_by_time_and_never_taken_ones(open("ids").await).await;
    items::a_profile_shows_living_items_in_display_order(open("profile").await).await;
    items::i6_what_was_accepted_survives_a_restart(&open).await;
}

async fn retries(stores: &dyn Stores) {
    let open = usual(stores);
    retries::i6_the_same_key_gives_the_first_answer_again(open("retry").await).await;
    retries::i6_a_retry_after_edit_and_delete_gives_the_first_answer(open("retry-late").await).await;
    retries::a_key_used_for_another_payload_is_refused(open("reuse").await).await;
    retries::an_idempotency_key_is_free_again_after_a_day(open("expiry").await).await;
    retries::a_foreign_id_is_free_again_once_its_item_is_deleted(open("freed").await).await;
    retries::a_delete_frees_neither_an_idempotency_key_nor_an_id(open("not-freed").await).await;
    retries::a_foreign_id_that_many_take_at_once_goes_to_one(open("taken").await).await;
    retries::i6_retries_at_the_same_time_become_one_item(open("race").await).await;
}

async fn outbox(stores: &dyn Stores) {
    let open = usual(stores);
    outbox::an_outbox_is_dense_and_in_commit_order(open("outbox").await).await;
    outbox::i11_updates_and_deletes_take_the_door_of_their_add_behind_it(open("doors").await).await;
    outbox::s11_a_new_rank_is_a_delete_and_an_add_by_the_items_own_route(open("moved").await).await;
    outbox::s11_one_call_moves_an_item_that_it_made(open("moved-at-once").await).await;
    outbox::s11_who_followed_before_a_move_is_shown_the_item_once(open("moved-late").await).await;
    outbox::one_call_is_one_order_and_sees_its_own_effects(open("batch").await).await;
    outbox::writers_at_the_same_time_leave_dense_outboxes(open("writers").await).await;
}

async fn follows(stores: &dyn Stores) {
    let open = usual(stores);
    follows::users_keep_their_numbers(open("users").await).await;
    follows::an_edge_changes_only_when_asked_for_something_else(open("edges").await).await;
    follows::i10_generations_only_grow_and_the_counter_covers_them(open("generations").await).await;
    follows::lists_show_the_newest_edge_first_and_go_on_at_the_cursor(open("lists").await).await;
    follows::follows_of_one_call_are_listed_in_its_order(open("call").await).await;
    follows::recipients_come_by_number_within_their_bucket(open("recipients").await).await;
}

async fn events(stores: &dyn Stores) {
    let open = usual(stores);
    events::an_event_is_outstanding_until_it_is_finished(open("events").await).await;
    events::finishing_short_of_the_head_leaves_the_rest_outstanding(open("short").await).await;
    events::an_edge_that_changed_again_stays_outstanding(open("edge-events").await).await;
    events::outstanding_edges_are_told_by_their_reader(open("due-edges").await).await;
    events::reopened_work_is_due_at_once(open("reopen").await).await;
    events::reopened_work_is_finished_by_whoever_has_gone_through_it_since(open("redo").await).await;
    events::epochs_only_grow(&open).await;
    events::counts_follow_what_happens(open("counts").await).await;
}

async fn revocations(stores: &dyn Stores) {
    let open = usual(stores);
    revocations::a_revocation_only_moves_forward_and_outlives_a_restart(&open).await;
    revocations::who_follows_the_list_misses_no_revocation(open("revocations").await).await;
}

async fn announcements(stores: &dyn Stores) {
    let open = usual(stores);
    announcements::an_accepted_write_is_announced_with_what_it_did(open("announced").await).await;
    announcements::what_is_refused_or_repeated_or_changes_nothing_is_not_announced(open("unannounced").await).await;
    announcements::i6_announcements_outlive_a_restart_until_they_are_forgotten(&open).await;
    announcements::what_one_user_does_is_announced_in_its_order(open("announced-order").await).await;
}

async fn sights(stores: &dyn Stores) {
    let open = usual(stores);
    sights::what_is_seen_only_moves_forward_and_outlives_a_restart(&open).await;
    sights::of_devices_that_race_the_furthest_wins(open("sights").await).await;
    sights::when_an_item_was_published_is_known_even_after_it_was_deleted(open("published").await).await;
}

async fn people(stores: &dyn Stores) {
    let open = usual(stores);
    people::s7_a_person_is_replaced_as_a_whole_and_outlives_a_restart(&open).await;
    people::s7_cards_come_in_the_order_asked(open("cards").await).await;
    people::s7_of_a_user_named_twice_one_counts_and_what_is_known_may_be_kept(open("kept-people").await).await;
    people::s7_people_are_walked_by_number(open("walked").await).await;
    people::s7_what_is_said_of_a_user_enters_no_log(open("no-log").await).await;
    people::s7_calls_that_name_the_same_users_at_once_do_not_stop_each_other(open("same-users").await).await;
}

async fn push(stores: &dyn Stores) {
    let open = usual(stores);
    push::a_registered_device_is_listed_until_it_is_taken_away(&open).await;
    push::a_user_has_so_many_devices_and_no_more(open("so-many").await).await;
    push::a_push_step_is_told_who_listens(&open).await;
    push::notes_of_one_reader_and_feed_are_one_notice(open("notes").await).await;
    push::a_notice_that_was_sent_rests_and_a_newer_note_makes_it_due_again(open("rests").await).await;
    push::a_notice_is_tried_again_until_it_is_dead(&open).await;
    push::a_newer_note_outlives_the_end_of_the_one_before(open("outlives").await).await;
    push::notes_that_come_at_the_same_time_are_all_counted(open("at-once").await).await;
    push::due_notices_are_taken_by_one_each(open("takers").await).await;
    push::a_notice_that_is_due_is_taken_however_many_were_sent_before_it(open("many-sent").await).await;
    push::what_is_addressed_is_noted_from_the_first_device_on(open("noted").await).await;
}

async fn reactions(stores: &dyn Stores) {
    let open = usual(stores);
    reactions::s1_a_reaction_is_in_the_set_once_or_not_at_all(open("reaction-set").await).await;
    reactions::s1_one_call_answers_each_reaction_in_its_place(open("reaction-call").await).await;
    reactions::s1_an_item_takes_so_many_kinds(open("reaction-kinds").await).await;
    reactions::s1_a_count_is_the_size_of_its_set_after_any_race(open("reaction-race").await).await;
    reactions::s1_the_list_of_who_reacted_pages_without_gap_or_repeat_while_others_react(open("reactors").await).await;
    reactions::s1_with_its_item_all_of_it_is_gone_from_sight_at_once(open("reaction-ends").await).await;
    reactions::s3_of_some_alone_a_viewer_counts_and_lists_what_it_sees(open("reaction-friends").await).await;
    reactions::s1_reactions_outlive_a_restart(&open).await;
}

async fn comments(stores: &dyn Stores) {
    let open = usual(stores);
    comments::s3_comments_page_in_both_directions_without_gap_or_repeat_while_others_write(open("comments").await)
        .await;
    comments::s3_a_comment_says_what_was_written_and_what_it_was_edited_to(open("comment-says").await).await;
    comments::s1_one_call_answers_each_comment_in_its_place(open("comment-call").await).await;
    comments::s3_a_deleted_comment_leaves_a_placeholder_only_before_replies(open("placeholders").await).await;
    comments::s3_a_viewer_sees_no_comment_of_a_user_behind_a_block(open("comment-blocks").await).await;
    comments::s3_a_page_that_meets_too_many_unseen_comments_goes_on(open("comment-flood").await).await;
    comments::s3_of_mutual_friends_alone_a_viewer_sees_theirs_and_the_authors(open("mutual-comments").await).await;
    comments::s3_who_is_mutual_with_whom_is_read_for_many(open("mutual-with").await).await;
    comments::s3_with_its_item_every_comment_is_gone_from_sight_at_once(open("comment-ends").await).await;
    comments::s1_the_count_of_comments_is_exact_after_any_race(open("comment-race").await).await;
    comments::s3_an_imported_comment_takes_its_own_place(open("comment-import").await).await;
    comments::s3_an_imported_placeholder_is_an_answer_to_the_comment_above_it(open("placeholder-import").await).await;
    comments::s1_comments_outlive_a_restart(&open).await;
}

async fn notifications(stores: &dyn Stores) {
    let open = usual(stores);
    notifications::s5_each_sort_of_deed_tells_whom_it_concerns_once(open("notified").await).await;
    notifications::s5_without_a_kind_nobody_is_told(open("untold").await).await;
    notifications::s5_nobody_is_told_of_a_deed_of_ones_own(open("own-deeds").await).await;
    notifications::s3_of_mutual_friends_alone_an_answer_is_told_to_who_sees_it(open("mutual-deeds").await).await;
    notifications::s3_of_mutual_friends_alone_a_line_grows_by_what_is_seen(open("mutual-lines").await).await;
    notifications::s5_nothing_passes_a_shield(open("shielded-deeds").await).await;
    notifications::s5_what_is_taken_back_is_told_no_more_unless_it_was_seen(open("withdrawn").await).await;
    notifications::s5_an_answer_is_told_once_to_each_whom_it_concerns(open("answers").await).await;
    notifications::s5_history_tells_nobody(open("untold-history").await).await;
    notifications::s5_one_call_tells_of_all_that_it_changes(open("notified-call").await).await;
    notifications::i3_of_deeds_that_race_each_is_told_once(open("notified-race").await).await;
    notifications::i6_what_was_told_outlives_a_restart(&open).await;
    notifications::what_was_told_to_and_of_an_erased_user_is_gone(open("notified-erased").await).await;
}

async fn lines(stores: &dyn Stores) {
    let open = usual(stores);
    lines::s6_what_was_not_seen_of_one_kind_and_item_is_one_line(open("lines").await).await;
    lines::s6_a_line_that_was_seen_is_closed(open("lines-seen").await).await;
    lines::s6_who_takes_a_deed_back_leaves_the_line(open("lines-left").await).await;
    lines::s6_nothing_joins_a_line_through_a_shield_or_twice(open("lines-shielded").await).await;
    lines::s6_a_line_that_changes_names_nobody_who_is_behind_a_shield_by_now(open("lines-behind").await).await;
    lines::s6_one_call_changes_a_line_once(open("lines-call").await).await;
    lines::s6_a_line_that_was_deleted_is_begun_anew(open("lines-deleted").await).await;
    lines::s6_other_sorts_of_deeds_are_grouped_too(open("lines-sorts").await).await;
    lines::s1_of_deeds_that_race_a_line_counts_each_once(open("lines-race").await).await;
    lines::s6_an_erased_user_is_in_no_line_and_has_none(open("lines-erased").await).await;
    lines::s6_members_are_taken_over_from_another_store(open("lines-from").await, open("lines-to").await).await;
    lines::i6_lines_outlive_a_restart(&open).await;
}

async fn mentions(stores: &dyn Stores) {
    let open = usual(stores);
    mentions::s5_whom_an_item_mentions_is_told_once_until_it_is_deleted(open("mentions").await).await;
    mentions::s5_without_a_kind_a_mention_is_shown_and_told_to_nobody(open("mentions-untold").await).await;
    mentions::s5_of_a_mention_nobody_is_told_who_may_not_see_it(open("mentions-unseen").await).await;
    mentions::s5_an_edit_tells_whom_it_adds_and_takes_back_from_whom_it_removes(open("mentions-edit").await).await;
    mentions::s5_whom_a_comment_mentions_is_told_once_until_it_is_deleted(open("mentions-said").await).await;
    mentions::s3_of_mutual_friends_alone_a_mention_is_told_to_who_sees_the_comment(open("mentions-mutual").await).await;
    mentions::s6_mentions_in_comments_on_one_item_are_one_line(open("mentions-lines").await).await;
    mentions::s5_one_call_tells_of_its_mentions_as_they_are_at_its_end(open("mentions-call").await).await;
    mentions::i3_of_edits_that_race_those_are_told_whom_the_item_mentions(open("mentions-race").await).await;
    mentions::i6_mentions_outlive_a_restart_and_history_tells_nobody(&open).await;
    mentions::an_erasure_takes_what_a_mention_told_and_leaves_the_lists_of_others(open("mentions-erased").await).await;
}

async fn erasures(stores: &dyn Stores) {
    let open = usual(stores);
    erasures::an_erasure_is_under_way_once_and_outlives_a_restart(&open).await;
    erasures::all_of_a_user_is_removed_and_nothing_of_others_whatever_dies(open("erased").await).await;
    erasures::s11_what_was_addressed_to_a_user_and_moved_leaves_with_the_user(open("erased-moved").await).await;
    erasures::s11_what_was_moved_is_counted_once_and_what_a_ranking_holds_is_not(open("erased-counts").await).await;
    erasures::s9_own_audiences_stay_until_no_follow_leads_to_the_user(open("erased-audiences").await).await;
    erasures::who_was_erased_may_begin_anew_under_the_same_number(open("erased-anew").await).await;
    erasures::an_erasure_goes_through_pages_of_any_length(open("erased-pages").await).await;
    erasures::what_lives_or_is_of_others_is_not_scrubbed(open("scrubbed").await).await;
}

async fn reposts(stores: &dyn Stores) {
    let open = usual(stores);
    reposts::s8_a_repost_keeps_what_it_names_through_edits_and_a_restart(&open).await;
    reposts::s8_what_does_not_live_is_not_reposted(open("not-reposted").await).await;
    reposts::s8_one_call_may_publish_an_item_and_repost_it(open("repost-call").await).await;
    reposts::s8_history_may_bring_a_repost_before_its_original(open("repost-history").await).await;
    reposts::s8_an_original_is_shown_as_it_is_now_to_who_may_see_it(open("originals").await).await;
    reposts::s8_an_original_for_named_readers_stays_theirs(open("originals-direct").await).await;
    reposts::s8_originals_answer_in_the_order_asked(open("originals-asked").await).await;
    reposts::s1_the_number_of_reposts_is_that_of_those_that_live(&open).await;
    reposts::s1_whatever_is_asked_twice_a_repost_counts_once(open("reposts-once").await).await;
    reposts::s1_an_imported_repost_counts_with_or_without_its_original(open("reposts-imported").await).await;
    reposts::s1_the_number_of_reposts_is_exact_after_any_race(open("reposts-race").await).await;
    reposts::s8_reposts_are_listed_newest_first_and_without_a_gap(open("reposts-listed").await).await;
    reposts::an_erasure_takes_reposts_out_of_the_number(open("reposts-erased").await).await;
}

async fn versions(stores: &dyn Stores) {
    let open = usual(stores);
    versions::s13_the_bodies_that_an_item_had_are_kept_until_it_is_deleted(&open).await;
    versions::s13_one_call_keeps_each_body_that_it_replaces(open("versions-call").await).await;
    versions::s13_of_many_bodies_the_newest_are_kept(open("versions-many").await).await;
    versions::s13_of_edits_that_race_each_leaves_a_version(open("versions-race").await).await;
    versions::s13_an_erasure_takes_versions_along(open("versions-erased").await).await;
}

async fn news(stores: &dyn Stores) {
    let open = usual(stores);
    news::an_author_with_too_many_followers_is_pulled(stores.open("above", 2).await).await;
    news::i11_a_class_counts_from_the_next_item_and_what_follows_an_add_takes_its_route(open("class").await).await;
    news::i10_pull_numbers_are_dense_and_none_appears_below_one_that_was_seen(open("numbers").await).await;
    news::a_limit_cuts_news_where_it_says(open("limit").await).await;
    news::who_follows_again_pulls_only_what_comes_then(open("again").await).await;
    news::pull_numbers_go_on_after_a_restart(&open).await;
}

async fn direct(stores: &dyn Stores) {
    let open = usual(stores);
    direct::what_is_addressed_to_a_reader_in_a_block_is_not_delivered(open("blocked").await).await;
    direct::an_item_addressed_twice_to_one_reader_counts_once(open("twice").await).await;
    direct::an_item_that_reached_nobody_is_told_of_as_one_until_its_end(open("nobody").await).await;
    direct::a_new_version_and_the_end_reach_whom_the_item_reached(open("reached").await).await;
    direct::s11_a_move_reaches_whom_the_item_reached(open("direct-moved").await).await;
    direct::a_profile_shows_nothing_that_is_addressed(open("unlisted").await).await;
    direct::i6_a_retry_names_the_same_readers_and_another_audience_is_another_payload(open("audience").await).await;
    direct::what_is_addressed_is_outstanding_until_it_is_brought(open("direct-events").await).await;
    direct::an_item_may_be_addressed_to_many(open("many").await).await;
}

async fn own_posts(stores: &dyn Stores) {
    let open = usual(stores);
    own_posts::s10_an_authors_own_items_stand_in_its_feed_by_every_door(open("own-doors").await).await;
    own_posts::s10_whoever_only_sends_is_given_no_edge(open("own-sends").await).await;
    own_posts::s10_no_list_count_or_mutual_shows_the_edge(open("own-unlisted").await).await;
    own_posts::s10_an_author_is_no_follower_of_its_own(stores.open("own-route", 1).await).await;
    own_posts::s10_who_has_published_before_is_given_the_edge_by_a_walk(&open).await;
    own_posts::s10_of_first_items_that_race_with_the_setting_each_gives_an_edge(open("own-race").await).await;
    own_posts::s10_the_edge_is_turned_off_and_on_with_all_that_was_published(open("own-turned").await).await;
    own_posts::s10_a_user_neither_follows_nor_unfollows_itself(open("own-follow").await).await;
    own_posts::s10_an_imported_item_gives_the_edge_and_wakes_nobody(open("own-import").await).await;
    own_posts::s10_what_a_user_has_sent_is_listed_until_it_is_deleted(open("sent").await).await;
    own_posts::s10_what_an_erased_user_had_of_its_own_is_gone(open("own-erased").await).await;
}

async fn rankings(stores: &dyn Stores) {
    let open = usual(stores);
    rankings::s11_a_ranking_is_replaced_and_the_reader_is_told_the_difference(open("ranked").await).await;
    rankings::s11_an_item_stands_in_a_feed_as_long_as_it_is_ranked_or_addressed(open("ranked-letter").await).await;
    rankings::s11_a_ranking_changes_nothing_of_its_items(open("ranked-items").await).await;
    rankings::s11_a_ranking_opens_its_items_to_its_reader(open("ranked-open").await).await;
    rankings::s11_an_item_that_does_not_live_refuses_the_whole_ranking(open("ranked-dead").await).await;
    rankings::s11_edits_and_deletes_reach_every_ranking_that_holds_the_item(open("ranked-edits").await).await;
    rankings::i18_records_of_rankings_that_were_brought_are_not_kept(open("ranked-long").await).await;
    rankings::i6_rankings_outlive_a_restart(&open).await;
    rankings::s11_an_erasure_takes_rankings_and_their_items_along(open("ranked-erased").await).await;
    rankings::i3_of_rankings_and_deletes_that_race_none_keeps_a_dead_item(open("ranked-race").await).await;
}

async fn pins(stores: &dyn Stores) {
    let open = usual(stores);
    pins::s13_what_is_pinned_last_stands_first(open("pinned").await).await;
    pins::s13_a_user_pins_a_few_items_of_the_own_outbox_that_live(open("pinned-few").await).await;
    pins::s13_a_pin_is_of_the_feed_of_its_item_and_outlives_a_restart(&open).await;
    pins::s13_of_pins_that_race_no_more_than_a_few_stand(open("pinned-race").await).await;
    pins::s13_an_erasure_takes_pins_along(open("pinned-erased").await).await;
}

async fn audiences(stores: &dyn Stores) {
    let open = usual(stores);
    audiences::s9_a_list_is_its_members(open("lists-of").await).await;
    audiences::s9_lists_outlive_a_restart(&open).await;
    audiences::s9_lists_are_bounded(open("lists-bounded").await).await;
    audiences::s9_an_audience_is_some_of_the_followers(open("resolved").await).await;
    audiences::s9_an_audience_is_bounded(open("audience-bounded").await).await;
    audiences::s9_a_narrowed_item_is_in_the_feeds_of_followers_in_its_audience_alone(open("narrowed").await).await;
    audiences::s9_a_change_of_a_list_changes_no_audience(open("list-changed").await).await;
    audiences::s9_who_is_followed_by_everyone_narrows_nothing(open("everyones-audience").await).await;
    audiences::s9_a_narrowed_item_of_a_big_account_goes_to_its_audience(open("narrowed-big").await).await;
    audiences::s9_an_original_is_shown_to_followers_in_its_audience(open("originals-narrowed").await).await;
    let archive = open("originals-everyones").await;
    audiences::s9_an_original_is_shown_in_its_audience_to_who_follows_because_everyone_does(archive).await;
}

async fn private(stores: &dyn Stores) {
    let open = usual(stores);
    private::s9_a_follow_of_a_private_author_is_a_request(open("private").await).await;
    private::s9_a_request_is_listed_until_it_is_answered_or_taken_back(&open).await;
    private::s9_whoever_is_let_in_follows_once_the_author_is_not_private(open("let-in").await).await;
    private::s9_a_block_ends_a_request_and_lets_none_begin(open("asked-blocked").await).await;
    private::s9_a_private_author_is_shown_to_followers_alone(open("private-seen").await).await;
    private::s9_who_is_private_is_not_followed_by_everyone(open("private-everyones").await).await;
    private::s9_history_tells_who_is_private_and_who_has_asked(open("private-history").await).await;
    private::s9_a_request_that_has_ended_is_not_imported_again(open("private-again").await).await;
    private::s9_an_erasure_takes_requests_and_counts_them(open("private-erased").await).await;
    private::s9_requests_and_their_acceptance_are_told_and_taken_back(open("private-told").await).await;
}

async fn profiles(stores: &dyn Stores) {
    let open = usual(stores);
    profiles::s13_a_profile_shows_a_viewer_what_is_for_that_viewer(open("profiles").await).await;
}

async fn shields(stores: &dyn Stores) {
    let open = usual(stores);
    shields::a_mute_is_an_unfollow_and_its_end_a_follow_from_now(open("mute").await).await;
    shields::a_follow_under_a_shield_is_listed_and_stays_off(open("under").await).await;
    shields::each_shield_stands_on_its_own_edges(open("block").await).await;
    shields::shields_are_listed_newest_first_by_who_put_them_up(open("shields").await).await;
}

async fn everyone(stores: &dyn Stores) {
    let open = usual(stores);
    everyone::everyone_follows_from_then_on(open("everyone").await).await;
    everyone::who_is_followed_by_everyone_stays_so(open("stays").await).await;
    everyone::a_reader_may_leave_whom_everyone_follows_and_come_back(open("leave").await).await;
    everyone::a_follow_beside_everyones_is_listed_and_changes_no_feed(open("beside").await).await;
    everyone::who_had_an_edge_before_keeps_it(open("kept").await).await;
}

async fn feeds(stores: &dyn Stores) {
    let open = usual(stores);
    feeds::names_of_feeds_have_dense_numbers_that_outlive_a_restart(&open).await;
    feeds::a_name_interned_by_many_at_once_has_one_number(open("interned").await).await;
    feeds::i11_an_edit_and_a_delete_go_where_the_add_went(open("feed-doors").await).await;
    feeds::a_follow_brings_the_newest_of_each_feed_by_itself(open("feed-backfill").await).await;
    feeds::what_is_addressed_reaches_one_feed_and_its_number_counts_in_all(open("feed-direct").await).await;
    feeds::a_limit_of_news_counts_the_feeds_own(open("feed-news").await).await;
    feeds::i6_a_retry_that_would_go_to_another_feed_gives_the_first_answer(open("feed-retry").await).await;
    feeds::history_goes_to_its_feed(open("feed-history").await).await;
}

async fn history(stores: &dyn Stores) {
    let open = usual(stores);
    history::history_takes_its_own_place_wakes_nobody_and_comes_once(open("history").await).await;
    history::a_foreign_id_goes_with_the_item_that_took_it_last(open("like").await).await;
    history::what_was_accepted_before_history_is_told_of_behind_it(open("behind").await).await;
    history::history_that_says_otherwise_than_what_is_there_is_refused_or_passed_by(open("otherwise").await).await;
    history::an_imported_unfollow_leaves_a_reader_out_of_what_everyone_follows(open("left_out").await).await;
    history::i3_an_imported_follow_is_past_the_head_for_every_door_but_its_own(open("past").await).await;
    history::a_class_that_was_given_is_not_changed(open("given").await).await;
    history::who_is_named_by_a_refused_line_alone_gets_no_number(open("nameless").await).await;
    history::what_was_addressed_and_had_its_end_is_in_no_feed(open("ended").await).await;
}

async fn window(stores: &dyn Stores) {
    let open = usual(stores);
    window::a_follow_late_reads_only_its_own_window(open("late").await).await;
    window::i18_a_follow_step_is_told_no_more_than_that_it_is_too_much(open("too-much").await).await;
    window::i18_a_follow_step_is_told_of_the_first_edges_that_fit(open("fit").await).await;
    window::a_rebuild_brings_what_push_has_not_and_says_of_whom(open("cuts").await).await;
}

async fn search(stores: &dyn Stores) {
    let open = async |name: &str| stores.open(name, 10).await;
    search::search(open).await;
}

async fn random_histories(stores: &dyn Stores) {
    let histories = (1..=8).map(|seed| async move {
        let history = oracle::History::of_seed(seed, 120);
        let archive = stores.open(&format!("oracle-{seed}"), history.pull_above).await;
        oracle::i4_feeds_agree_with_the_naive_rule(archive, &history).await;
    });
    stream::iter(histories).buffer_unordered(AT_ONCE).collect().await
}

type Answer = Result<Written, Refused>;

fn user(name: &str) -> UserId {
    name.parse().expect("a valid name")
}

fn body(text: &str) -> Body {
    Body::parse(format!("{{\"text\":\"{text}\"}}")).expect("valid JSON")
}

/// An item with nothing but an author and a text.
fn post(author: &str, text: &str) -> Publish {
    Publish::new(user(author), body(text))
}

/// An item with an author and a text for these readers and nobody else.
fn to_users(author: &str, text: &str, readers: &[&str]) -> Publish {
    Publish { audience: Audience::Users(readers.iter().map(|name| user(name)).collect()), ..post(author, text) }
}

fn shield(name: &str, shield: Shield, other: &str, up: bool) -> Write {
    Write::Shield { user: user(name), other: user(other), shield, up }
}

fn classify(author: &str, class: Class) -> Write {
    Write::Classify { author: user(author), class }
}

fn follow(reader: &str, author: &str) -> Write {
    Write::Follow { reader: user(reader), author: user(author) }
}

fn unfollow(reader: &str, author: &str) -> Write {
    Write::Unfollow { reader: user(reader), author: user(author) }
}

fn delete(item: ItemId) -> Write {
    Write::Delete { item, if_version: None }
}

fn edit(item: ItemId, text: &str) -> Write {
    Write::Edit { item, body: Some(body(text)), rank: None, mentions: None, if_version: None }
}

/// The answer to an edit that leaves the mentions as they are: the author of the item, its version, and its readers.
fn edited(author: UserNo, version: u32, readers: &[UserNo]) -> Result<Written, Refused> {
    Ok(Written::Edited { author, version, readers: readers.to_vec(), mentions: Remention::default(), told: vec![] })
}

fn move_to(item: ItemId, rank: i64) -> Write {
    Write::Edit { item, body: None, rank: Some(rank), mentions: None, if_version: None }
}

async fn write(archive: &dyn Archive, write: Write) -> Answer {
    write_at(archive, write, NOW).await
}

async fn write_at(archive: &dyn Archive, write: Write, now: Millis) -> Answer {
    let mut answers = archive.write(vec![write], now).await.expect("the archive works");
    assert_eq!(answers.len(), 1, "one answer per operation");
    answers.remove(0)
}

/// Publishes an item, which must be new. Answers its id and its sequence number.
async fn accept(archive: &dyn Archive, publish: Publish, now: Millis) -> (ItemId, OutboxSeq) {
    match write_at(archive, Write::Publish(publish), now).await {
        Ok(Written::Published { id, outbox_seq, fresh: true, .. }) => (id, outbox_seq),
        other => panic!("a new item is accepted, not {other:?}"),
    }
}

/// Changes an edge. Answers the numbers of reader and author, the edge, and whether it has changed.
async fn change(archive: &dyn Archive, write: Write) -> (UserNo, UserNo, Edge, bool) {
    match self::write(archive, write).await {
        Ok(Written::Edge { reader, author, edge, fresh, .. }) => (reader, author, edge, fresh),
        other => panic!("an edge answers an edge, not {other:?}"),
    }
}

async fn number(archive: &dyn Archive, name: &str) -> UserNo {
    archive.intern(&[user(name)]).await.expect("the archive works")[0]
}
