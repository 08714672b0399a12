//! The heaviest of more values than there is room for. Pure.

use crate::HashMap;
use roaring::RoaringBitmap;

/// Values by id, of which those stay that weigh most: when there is no room left, the middle one of all weights is
/// taken off each of them, and those that have nothing left are let go (Misra and Gries, "Finding repeated elements", Science
/// of Computer Programming 2, 1982; by the middle: Anderson and others, "A high-performance algorithm for identifying frequent
/// items in data streams", IMC 2017).
pub struct Heavy<T> {
    room: usize,
    kept: HashMap<i32, (i64, T)>,
    gone: RoaringBitmap,
    /// What was taken off.
    off: i64,
    /// One that is kept was let go before: its value is only a part.
    partial: bool,
    /// Only what is kept is counted from now on.
    closed: bool,
}

impl<T: Default> Heavy<T> {
    pub fn new(room: usize) -> Self {
        Self { room, kept: HashMap::default(), gone: RoaringBitmap::new(), off: 0, partial: false, closed: false }
    }

    /// The value of an id that is so much heavier now. None, when it is not one of those counted.
    pub fn of(&mut self, id: i32, weight: i64) -> Option<&mut T> {
        if self.closed {
            return self.kept.get_mut(&id).map(|(_, value)| value);
        }
        if !self.kept.contains_key(&id) {
            if self.kept.len() >= self.room {
                self.let_go();
            }
            self.partial |= self.gone.contains(id as u32);
        }
        let (weighs, value) = self.kept.entry(id).or_default();
        // Even one that weighs nothing does something.
        *weighs = weighs.saturating_add(weight.max(1));
        Some(value)
    }

    fn let_go(&mut self) {
        let mut weights: Vec<i64> = self.kept.values().map(|(weight, _)| *weight).collect();
        let at = weights.len() / 2;
        let (_, middle, _) = weights.select_nth_unstable(at);
        let middle = *middle;
        self.off = self.off.saturating_add(middle);
        let gone = &mut self.gone;
        self.kept.retain(|id, (weight, _)| {
            *weight -= middle;
            if *weight <= 0 {
                gone.insert(*id as u32);
            }
            *weight > 0
        });
    }

    /// No value weighs more that was let go and did not come back: at most two `room`ths of the weight of all.
    pub const fn let_go_at_most(&self) -> i64 {
        self.off
    }

    pub fn iter(&self) -> impl Iterator<Item = (i32, &T)> {
        self.kept.iter().map(|(id, (_, value))| (*id, value))
    }

    /// Whether values lack something: then they are empty now, and to be counted once more.
    pub fn recount(&mut self) -> bool {
        if self.partial {
            self.closed = true;
            self.kept.values_mut().for_each(|(_, value)| *value = T::default());
        }
        self.partial
    }

    pub fn take(&mut self, id: i32) -> Option<T> {
        self.kept.remove(&id).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_weighs_much_stays_and_is_counted(
            weights in proptest::collection::vec((0..60, 0..1000_i64), 1..2000), room in 2..20_usize,
        ) {
            let mut exact = HashMap::<i32, i64>::default();
            let mut heavy = Heavy::<i64>::new(room);
            let count = |heavy: &mut Heavy<i64>| {
                for (id, weight) in &weights {
                    if let Some(value) = heavy.of(*id, *weight) {
                        *value += weight;
                    }
                    assert!(heavy.kept.len() <= room);
                }
            };
            count(&mut heavy);
            for (id, weight) in &weights {
                let sum = exact.entry(*id).or_default();
                *sum += weight.max(&1);
            }
            let all: i64 = exact.values().sum();
            prop_assert!(heavy.let_go_at_most() * room as i64 <= 2 * all);
            let light = |id: &i32, weight: i64| weight <= heavy.let_go_at_most() || heavy.kept.contains_key(id);
            prop_assert!(exact.iter().all(|(id, weight)| light(id, *weight)));
            let came_back = heavy.kept.keys().any(|id| heavy.gone.contains(*id as u32));
            prop_assert!(exact.len() > room || !came_back);
            let partial = heavy.recount();
            prop_assert!(partial || !came_back);
            if partial {
                count(&mut heavy);
            }
            let mut sums = HashMap::<i32, i64>::default();
            for (id, weight) in &weights {
                *sums.entry(*id).or_default() += weight;
            }
            prop_assert!(heavy.iter().all(|(id, value)| sums[&id] == *value));
        }
    }
}
