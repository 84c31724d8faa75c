//! Visits every state and counts. It goes through the same states as the checker of [`stateright`] and asks the same of
//! each, in less time and memory, since it keeps no way to each state. If a state breaks a property, the checker finds
//! the way there.

use rustc_hash::FxHashSet;
use stateright::Model;

use crate::state::State;
use crate::{Fanout, properties};

/// What a visit of all states has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visited {
    /// How many states there are.
    pub states: usize,
    /// How many of them are on the longest of the shortest ways from the first state to any other.
    pub depth: usize,
}

impl Fanout {
    /// Visits the states that are nearest to the first one first, then those around them, and so on.
    ///
    /// # Errors
    /// The first state that breaks a property.
    pub fn visit_all(&self) -> Result<Visited, Box<State>> {
        let (mut seen, mut actions, mut depth) = (FxHashSet::default(), vec![], 0);
        let (mut nearest, mut next) = (self.init_states(), vec![]);
        seen.extend(nearest.iter().map(State::fingerprint));
        while !nearest.is_empty() {
            depth += 1;
            for state in nearest.drain(..) {
                if !properties::hold(self, &state) {
                    return Err(Box::new(state));
                }
                self.actions(&state, &mut actions);
                for action in actions.drain(..) {
                    let state = self.after(&state, action);
                    if seen.insert(state.fingerprint()) {
                        next.push(state);
                    }
                }
            }
            std::mem::swap(&mut nearest, &mut next);
        }
        Ok(Visited { states: seen.len(), depth })
    }
}
