//! Which generation of each edge an inbox has taken in, without a cost per followee.
//!
//! Every change of an edge, follow *and* unfollow, takes the next number of a counter as the edge's
//! generation. An inbox keeps `built_at`, the counter as its rebuild read it, and an *entry* only
//! for authors whose follow step has run since. So an inbox that was built and never touched by a
//! follow stores one number, however many authors its reader follows.
//!
//! An executor reads the counter with the edges or before them, never after.

use crate::Generation;

/// What a push step does for one recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The inbox has taken in exactly this edge.
    Append,
    /// It has not yet, or no longer: a follow step will bring or has taken what it needs.
    Skip,
    /// The inbox knows of later edges than the executor does. Skipping would lose a record,
    /// appending could make a ghost: the whole step reads edges and counter again.
    Stale,
}

/// Decides for one recipient of a push step.
///
/// `entry` is the inbox's entry for the author, `built_at` its own; `generation` and `counter` are
/// what the executor read of the edge.
pub fn push_verdict(
    entry: Option<Generation>,
    built_at: Generation,
    generation: Generation,
    counter: Generation,
) -> Verdict {
    match entry {
        Some(taken) if taken == generation => Verdict::Append,
        Some(_) => Verdict::Skip,
        None if generation > built_at => Verdict::Skip,
        None if built_at <= counter => Verdict::Append,
        None => Verdict::Stale,
    }
}

/// Whether a follow or unfollow step of `generation` has anything to do: only if it is newer than
/// what the inbox has taken in.
pub fn edge_step_acts(entry: Option<Generation>, built_at: Generation, generation: Generation) -> bool {
    generation > entry.unwrap_or(built_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_step_appends_exactly_when_the_inbox_has_taken_in_this_edge() {
        let cases = [
            (Some(5), 3, 5, 9, Verdict::Append),
            (Some(6), 3, 5, 9, Verdict::Skip),
            (Some(4), 3, 5, 9, Verdict::Skip),
            (None, 3, 5, 9, Verdict::Skip),
            (None, 7, 5, 9, Verdict::Append),
            (None, 9, 5, 9, Verdict::Append),
            (None, 10, 5, 9, Verdict::Stale),
        ];
        for (entry, built_at, generation, counter, wants) in cases {
            assert_eq!(
                push_verdict(entry, built_at, generation, counter),
                wants,
                "{entry:?} {built_at} {generation} {counter}"
            );
        }
    }

    #[test]
    fn an_edge_step_acts_only_on_news() {
        assert!(edge_step_acts(None, 3, 4));
        assert!(!edge_step_acts(None, 4, 4));
        assert!(edge_step_acts(Some(4), 9, 5));
        assert!(!edge_step_acts(Some(5), 1, 5));
    }
}
