//! Warnings of things that fail over and over: a warning once in a while, with the number of failures since the last
//! one.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A warning of one kind at most this often.
const EVERY: Duration = Duration::from_secs(10);

/// One kind of warning.
#[derive(Debug, Default)]
pub struct Said(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    at: Option<Instant>,
    unsaid: u64,
}

impl Said {
    /// Notes one more failure. If it is time for a warning, gives how many failures there were since the last warning,
    /// this one included.
    pub fn due(&self) -> Option<u64> {
        let mut state = self.0.lock();
        state.unsaid += 1;
        if state.at.is_some_and(|at| at.elapsed() < EVERY) {
            return None;
        }
        state.at = Some(Instant::now());
        Some(std::mem::take(&mut state.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_fails_all_the_time_is_said_once_in_a_while_with_its_number() {
        let said = Said::default();
        assert_eq!(said.due(), Some(1));
        for _ in 0..500 {
            assert_eq!(said.due(), None);
        }
        tokio::time::advance(EVERY).await;
        assert_eq!((said.due(), said.due()), (Some(501), None));
    }
}
