//! What weighs most of more things than there is room for. Pure.

use std::collections::HashMap;

/// Values of things by id, of which those stay that weigh most: when there is no room left, the middle one of all weights is
/// taken off each of them, and those that have nothing left are let go (Misra and Gries, "Finding repeated elements", Science
/// of Computer Programming 2, 1982; by the middle: Anderson and others, "A high-performance algorithm for identifying frequent
/// items in data streams", IMC 2017). A thing with more than two `room`ths of the weight of all stays.
pub struct Heavy<T> {
    room: usize,
    kept: HashMap<i32, (i64, T)>,
    /// Some were let go, and may have come again.
    partial: bool,
    /// Only what is kept is counted from now on.
    closed: bool,
}

impl<T: Default> Heavy<T> {
    pub fn new(room: usize) -> Self {
        Self { room, kept: HashMap::new(), partial: false, closed: false }
    }

    /// The value of a thing that is so much heavier now; what is let go for it is told. None, when it is not one of those counted.
    pub fn of(&mut self, id: i32, weight: i64, mut gone: impl FnMut(i32, &T)) -> Option<&mut T> {
        if self.closed {
            return self.kept.get_mut(&id).map(|(_, value)| value);
        }
        if self.kept.len() >= self.room && !self.kept.contains_key(&id) {
            self.let_go(&mut gone);
        }
        let (weighs, value) = self.kept.entry(id).or_default();
        // Even one that weighs nothing does something.
        *weighs = weighs.saturating_add(weight.max(1));
        Some(value)
    }

    fn let_go(&mut self, gone: &mut impl FnMut(i32, &T)) {
        let mut weights: Vec<i64> = self.kept.values().map(|(weight, _)| *weight).collect();
        let at = weights.len() / 2;
        let (_, middle, _) = weights.select_nth_unstable(at);
        let middle = *middle;
        self.partial = true;
        self.kept.retain(|id, (weight, value)| {
            *weight -= middle;
            if *weight <= 0 {
                gone(*id, value);
            }
            *weight > 0
        });
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
            things in proptest::collection::vec((0..60, 0..1000_i64), 1..2000), room in 2..20_usize,
        ) {
            let mut exact = HashMap::<i32, i64>::new();
            let (mut heavy, mut gone) = (Heavy::<i64>::new(room), HashMap::<i32, i64>::new());
            let count = |heavy: &mut Heavy<i64>, gone: &mut HashMap<i32, i64>| {
                for (id, weight) in &things {
                    let value = heavy.of(*id, *weight, |id, value| *gone.entry(id).or_default() += value);
                    if let Some(value) = value {
                        *value += weight;
                    }
                    assert!(heavy.kept.len() <= room);
                }
            };
            count(&mut heavy, &mut gone);
            // Nothing is lost: what was let go was told.
            for (id, weight) in &things {
                *exact.entry(*id).or_default() += weight;
            }
            let mut sums = gone.clone();
            heavy.iter().for_each(|(id, value)| *sums.entry(id).or_default() += value);
            prop_assert_eq!(&sums, &exact);
            let all: i64 = things.iter().map(|(_, weight)| weight.max(&1)).sum();
            let much = |weight: i64| weight * room as i64 > 2 * all;
            prop_assert!(exact.iter().all(|(id, weight)| !much(*weight) || heavy.kept.contains_key(id)));
            let distinct = exact.len();
            prop_assert_eq!(heavy.recount(), distinct > room);
            if distinct > room {
                count(&mut heavy, &mut gone);
            }
            prop_assert!(heavy.iter().all(|(id, value)| exact[&id] == *value));
        }
    }
}
