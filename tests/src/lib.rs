//! What the end-to-end tests share. The tests themselves are in `tests/tests`.

pub mod arrivals;
pub mod gate;
pub mod load;
pub mod oracle;
pub mod park;
pub mod process;
pub mod rules;
pub mod town;
