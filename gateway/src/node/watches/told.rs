//! What the watchers of one item are told: the newest counts, and the last changes of its comments. Each push is
//! encoded once for each format, however many watchers get it.
//!
//! ```text
//!   counts, the newest alone ─┐  by their numbers   ┌─▶ a connection up to 7: takes 8 and 9
//!   comments, the last few   ─┴─▶ 5 6 7 8 9 ────────┴─▶ a connection up to 2: has missed 3 and 4, takes 5 to 9
//! ```
//!
//! Invariants:
//! - Counts are state: older counts are forgotten, whether they were told or not.
//! - At most [`KEPT_MAX`] changes of comments are kept, and [`KEPT_BYTES`] of them. A connection that is further behind
//!   is told that it has missed something.
//! - No comment is given to a user who does not see it.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use feedgate_common::UserNo;

use crate::protocol::Format;

/// The most changes of comments that are kept of one item.
pub(super) const KEPT_MAX: usize = 64;

/// The most bytes of these changes, as JSON, beside the last change.
const KEPT_BYTES: usize = 128 * 1024;

/// The data of the push that says that changes of comments were left out.
const MISSED: &[u8] = br#"{"op":"missed"}"#;

/// The users who get a push. They are ascending by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Readers {
    /// The push is for all but these users.
    AllBut(Vec<UserNo>),
    /// The push is for these users alone.
    Only(Vec<UserNo>),
}

impl Readers {
    /// The readers of a push that everybody gets.
    pub(super) const ALL: Self = Self::AllBut(Vec::new());

    /// All readers except `users`.
    pub(super) fn all_but(mut users: Vec<UserNo>) -> Self {
        users.sort_unstable();
        Self::AllBut(users)
    }

    /// The readers in `users` alone.
    pub(super) fn only(mut users: Vec<UserNo>) -> Self {
        users.sort_unstable();
        Self::Only(users)
    }

    fn have(&self, user: UserNo) -> bool {
        match self {
            Self::AllBut(users) => users.binary_search(&user).is_err(),
            Self::Only(users) => users.binary_search(&user).is_ok(),
        }
    }
}

/// A push of one item, and the users who get it.
#[derive(Debug)]
pub(crate) struct News {
    /// The data, as JSON.
    data: Box<[u8]>,
    readers: Readers,
    /// The push as it is sent, by format.
    pushes: [OnceLock<Box<[u8]>>; 3],
}

impl News {
    /// News for these readers.
    pub(super) fn new(data: Vec<u8>, readers: Readers) -> Self {
        Self { data: data.into(), readers, pushes: Default::default() }
    }

    /// The push in this format. It is made when a watcher asks for it for the first time.
    fn push(&self, channel: &str, format: Format) -> &[u8] {
        let made = &self.pushes[match format {
            Format::Json => 0,
            Format::Protobuf => 1,
            Format::OneWay => 2,
        }];
        made.get_or_init(|| {
            let mut out = Vec::new();
            format.news(&mut out, channel, &self.data);
            out.into()
        })
    }
}

/// What is kept of one item to tell its watchers.
#[derive(Debug, Default)]
pub(super) struct Told {
    counts: Option<(u64, Arc<News>)>,
    comments: VecDeque<(u64, Arc<News>)>,
    bytes: usize,
    /// The number of the last news, whatever it is of.
    last: u64,
    /// The number of the last news that was left out.
    missed: u64,
}

impl Told {
    /// The number of the last news.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Keeps counts as the newest ones, in place of earlier counts.
    pub(super) fn counts(&mut self, news: News) {
        self.last += 1;
        self.counts = Some((self.last, Arc::new(news)));
    }

    /// Adds a change of a comment.
    pub(super) fn comment(&mut self, news: News) {
        self.last += 1;
        self.bytes += news.data.len();
        self.comments.push_back((self.last, Arc::new(news)));
        while self.comments.len() > KEPT_MAX || (self.bytes > KEPT_BYTES && self.comments.len() > 1) {
            let Some((number, oldest)) = self.comments.pop_front() else { break };
            self.bytes -= oldest.data.len();
            self.missed = number;
        }
    }

    /// Notes that changes of comments were left out.
    pub(super) fn miss(&mut self) {
        self.last += 1;
        self.missed = self.last;
    }

    /// Appends to `out` the news behind number `upto` for `user`, in order, until `out` holds `bytes_max` bytes. Gives
    /// the number up to which the user is told.
    pub(super) fn after(
        &self,
        mut upto: u64,
        user: UserNo,
        (channel, format): (&str, Format),
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> u64 {
        let mut append = |push: &[u8]| {
            if !out.is_empty() {
                out.extend_from_slice(format.between_pushes());
            }
            out.extend_from_slice(push);
            out.len() >= bytes_max
        };
        if upto < self.missed {
            append(News::new(MISSED.to_vec(), Readers::ALL).push(channel, format));
        }
        let counts = || self.counts.iter().filter(|(number, _)| *number > upto);
        let mut due: Vec<_> = counts().chain(self.comments.iter().filter(|(number, _)| *number > upto)).collect();
        // A device that is told of missed comments loads all comments up to there, but not the counts: so the counts
        // come first.
        due.sort_by_key(|(number, _)| self.missed.max(*number));
        for (number, news) in due {
            // What was missed is told by now, and is not told again.
            upto = self.missed.max(*number);
            if news.readers.have(user) && append(news.push(channel, format)) {
                return upto;
            }
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: UserNo = UserNo(1);
    const BOB: UserNo = UserNo(2);

    fn news(text: &str) -> News {
        News::new(format!("\"{text}\"").into_bytes(), Readers::ALL)
    }

    /// What a user is told after `upto`, and up to where.
    fn after(told: &Told, upto: u64, user: UserNo, bytes_max: usize) -> (Vec<String>, u64) {
        let mut out = vec![];
        let upto = told.after(upto, user, ("item:5", Format::Json), &mut out, bytes_max);
        let frame = String::from_utf8(out).unwrap();
        let data = |line: &str| {
            let push: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(push["push"]["channel"], "item:5");
            let data = &push["push"]["pub"]["data"];
            data.as_str().map_or_else(|| data["op"].to_string(), str::to_owned)
        };
        (frame.lines().map(data).collect(), upto)
    }

    #[test]
    fn s4_only_the_newest_counts_are_told_and_comments_keep_their_order_around_them() {
        let mut told = Told::default();
        for step in ["one", "two"] {
            told.counts(news(step));
            told.comment(news(&format!("comment {step}")));
        }
        assert_eq!(
            after(&told, 0, ANN, usize::MAX),
            (["comment one", "two", "comment two"].map(str::to_owned).to_vec(), 4)
        );
        assert_eq!(after(&told, 3, ANN, usize::MAX), (vec!["comment two".to_owned()], 4));
        assert_eq!(after(&told, 4, ANN, usize::MAX), (vec![], 4), "nothing is told twice");
    }

    #[test]
    fn s3_a_comment_is_not_told_to_whom_its_author_is_in_a_block_with() {
        let mut told = Told::default();
        told.comment(News::new(b"\"of bob\"".to_vec(), Readers::all_but(vec![UserNo(9), ANN, UserNo(0)])));
        told.comment(news("of all"));
        assert_eq!(after(&told, 0, ANN, usize::MAX), (vec!["of all".to_owned()], 2));
        assert_eq!(after(&told, 0, BOB, usize::MAX).0, ["of bob", "of all"]);
        told.comment(News::new(b"\"of friends\"".to_vec(), Readers::only(vec![UserNo(9), BOB, UserNo(0)])));
        assert_eq!(after(&told, 2, ANN, usize::MAX), (vec![], 3));
        assert_eq!(after(&told, 2, BOB, usize::MAX).0, ["of friends"]);
    }

    #[test]
    fn i18_a_frame_ends_once_it_is_full_and_the_next_goes_on_behind_it() {
        let mut told = Told::default();
        told.comment(news("first"));
        told.counts(news("counts"));
        told.comment(news("second"));
        let (mut upto, mut frames) = (0, vec![]);
        while upto < told.last() {
            let (frame, next) = after(&told, upto, ANN, 1);
            assert!(next > upto);
            (upto, _) = (next, frames.push(frame));
        }
        assert_eq!(frames, [["first"], ["counts"], ["second"]]);
    }

    #[test]
    fn s4_counts_are_told_although_later_comments_were_missed() {
        let mut told = Told::default();
        told.comment(news("first"));
        told.counts(news("counts"));
        told.miss();
        let (heard, upto) = after(&told, 0, ANN, 1);
        assert_eq!((heard, upto), (["\"missed\"", "counts"].map(str::to_owned).to_vec(), told.last()));
    }

    #[test]
    fn i18_few_comments_are_kept_and_who_is_further_behind_is_told_that_once() {
        let mut told = Told::default();
        (0..KEPT_MAX + 2).for_each(|nth| told.comment(news(&nth.to_string())));
        let (heard, upto) = after(&told, 0, ANN, usize::MAX);
        assert_eq!((heard.len(), &*heard[0], &*heard[1]), (KEPT_MAX + 1, "\"missed\"", "2"));
        assert_eq!(after(&told, upto, ANN, usize::MAX).0, Vec::<String>::new());
        let (heard, upto) = after(&told, 0, ANN, 1);
        assert_eq!(heard, ["\"missed\"", "2"]);
        assert_eq!(after(&told, upto, ANN, 1).0, ["3"], "it is not told again");
        assert_eq!(after(&told, 2, ANN, usize::MAX).0.len(), KEPT_MAX, "who has the first two has missed none");
        told.comment(news(&"x".repeat(2 * KEPT_BYTES)));
        assert_eq!(after(&told, upto, ANN, usize::MAX).0.len(), 2, "large ones take the room of the others");
        told.miss();
        assert_eq!(after(&told, told.last() - 1, ANN, usize::MAX).0, ["\"missed\""]);
    }
}
