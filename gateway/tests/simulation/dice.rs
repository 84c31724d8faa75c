//! Chance from a seed (splitmix64), the same on every machine.

pub(crate) struct Dice(u64);

/// How far the state moves with each roll.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

impl Dice {
    /// The seed is mixed first: states a stride apart would roll the same numbers, one later each, and
    /// hundreds of seeds would play one and the same game.
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed.wrapping_add(1).wrapping_mul(STRIDE)))
    }

    /// 0 to `sides` - 1.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(STRIDE);
        (mix(self.0) % sides as u64) as usize
    }

    /// True in `percent` of a hundred.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
