//! Mean and deviation of a sample. Pure.

/// Mean and squared differences from it, one value after the other (Welford, "Note on a method for calculating corrected
/// sums of squares and products", Technometrics 4, 1962).
#[derive(Debug, Clone, Copy, Default)]
pub struct Moments {
    pub count: i64,
    pub mean: f64,
    squares: f64,
}

impl Moments {
    pub fn add(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Those of other values, too (Chan, Golub and `LeVeque`, 1979).
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let (own, others) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.mean += apart * others / (own + others);
        self.squares += other.squares + apart * apart * own * others / (own + others);
        self.count = self.count.saturating_add(other.count);
    }

    /// The standard deviation of the sample; none of a single value.
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / self.count.saturating_sub(1) as f64).sqrt())
    }
}
