//! Windows that the next page of the same reader may go on in.
//!
//! Invariants: a page is the same with or without the windows that are kept here. They are bounded by [`BYTES_MAX`] in
//! all; each is kept [as long as it is worth](Window::worth) after it was last used.

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::window::Window;
use crate::{InboxKey, Millis};

/// The most memory that windows take: enough for some 1300 readers, with a thousand adds below their floor each.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

#[derive(Debug, Clone)]
struct Kept {
    until: Millis,
    window: Window,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<InboxKey, Kept> for ByBytes {
    fn weight(&self, _: &InboxKey, kept: &Kept) -> u64 {
        (kept.window.bytes() + 96) as u64
    }
}

/// The windows that are kept, by inbox.
pub(super) struct Windows(Cache<InboxKey, Kept, ByBytes>);

impl Default for Windows {
    fn default() -> Self {
        Self(Cache::with_weighter((BYTES_MAX / (24 * 1024)) as usize, BYTES_MAX, ByBytes))
    }
}

impl Windows {
    /// The window of the reader's inbox, if it may still be used at `now`, in Unix ms.
    pub(super) fn get(&self, key: InboxKey, now: Millis) -> Option<Window> {
        let kept = self.0.get(&key)?;
        (now < kept.until).then_some(kept.window)
    }

    /// Keeps a window of the reader's inbox, in place of the window kept before.
    pub(super) fn keep(&self, key: InboxKey, window: Window, now: Millis) {
        self.0.insert(key, Kept { until: now.saturating_add(window.worth()), window });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::FeedAdd;
    use crate::{DisplayKey, Epoch, ItemId, Position, UserNo};

    fn window(adds: u64) -> Window {
        let key = |item| DisplayKey { rank: 0, item: ItemId(item) };
        let add = |item| FeedAdd { author: UserNo(1), outbox_seq: 1, generation: 1, key: key(item) };
        let mut window = Window::begin(Position { epoch: Epoch(1), offset: 0 }, key(adds), adds as usize);
        window.grow(&(0..adds).rev().map(add).collect::<Vec<_>>());
        window
    }

    fn key(reader: u32) -> InboxKey {
        InboxKey::main(UserNo(reader))
    }

    #[test]
    fn a_window_is_kept_for_its_time_after_the_last_use() {
        let windows = Windows::default();
        let worth = window(3).worth();
        windows.keep(key(1), window(3), 1000);
        assert!(windows.get(key(1), 1000 + worth - 1).is_some());
        assert!(windows.get(key(1), 1000 + worth).is_none());
        assert!(windows.get(key(2), 1000).is_none());
        windows.keep(key(1), window(3), 2000);
        assert!(windows.get(key(1), 1000 + worth).is_some());
    }

    #[test]
    fn i18_however_many_readers_go_deep_the_windows_are_bounded() {
        let windows = Windows::default();
        (0..5000).for_each(|reader| windows.keep(key(reader), window(1000), 0));
        let weight = windows.0.weight();
        assert!((BYTES_MAX / 2..=BYTES_MAX).contains(&weight), "{weight} bytes");
    }
}
