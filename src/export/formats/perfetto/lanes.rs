//! Where slices are drawn. Slices of one track must lie inside each other or apart, and its events come in the order of
//! time: what fits on no track of a group gets another one.

use anyhow::Result;

/// Slices that lie inside each other on one track: Perfetto itself shows 512.
const DEPTH_MAX: usize = 128;

/// A slice to be placed.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    pub id: i64,
    pub parent: Option<i64>,
    pub start: i64,
    pub end: i64,
}

/// Where tracks and the ends of slices go.
pub trait Sink {
    fn track(&mut self) -> Result<u64>;
    fn end(&mut self, track: u64, at: i64) -> Result<()>;
}

/// A track, and what is open on it.
#[derive(Debug)]
struct Lane {
    track: u64,
    /// Ids and ends of open slices, the innermost last.
    open: Vec<(i64, i64)>,
    /// The time of the last event.
    last: i64,
}

impl Lane {
    /// How many of the open slices go on, if the slice fits.
    fn keeps(&self, slice: &Slice, nested: bool) -> Option<usize> {
        if slice.start < self.last {
            return None;
        }
        let goes_on = |(id, end): &(i64, i64)| {
            *end > slice.start || (*end == slice.start && slice.end == *end && Some(*id) == slice.parent)
        };
        let keeps = self.open.iter().rposition(goes_on).map_or(0, |at| at + 1);
        let inside = match self.open[..keeps].last() {
            Some((_, end)) => nested && slice.end <= *end && keeps < DEPTH_MAX,
            None => true,
        };
        inside.then_some(keeps)
    }
}

/// The tracks of one kind of a thread or device.
#[derive(Debug, Default)]
pub struct Lanes {
    lanes: Vec<Lane>,
}

impl Lanes {
    /// Whose first track there is already.
    pub fn on(track: u64) -> Self {
        Self { lanes: vec![Lane { track, open: Vec::new(), last: i64::MIN }] }
    }

    /// The track on which a slice begins, after the ends of those that end before it on that track; none where it fits
    /// on no track and there may be no more than `most`. `nested`: slices may lie inside others.
    pub fn place(&mut self, slice: &Slice, (nested, most): (bool, usize), sink: &mut impl Sink) -> Result<Option<u64>> {
        let fits = |(at, lane): (usize, &Lane)| Some((at, lane.keeps(slice, nested)?));
        let (at, keeps) = match self.lanes.iter().enumerate().find_map(fits) {
            Some(found) => found,
            None if self.lanes.len() >= most => return Ok(None),
            None => {
                self.lanes.push(Lane { track: sink.track()?, open: Vec::new(), last: i64::MIN });
                (self.lanes.len() - 1, 0)
            }
        };
        let Some(lane) = self.lanes.get_mut(at) else { return Ok(None) };
        while lane.open.len() > keeps {
            if let Some((_, end)) = lane.open.pop() {
                sink.end(lane.track, end)?;
            }
        }
        lane.open.push((slice.id, slice.end));
        lane.last = slice.start;
        Ok(Some(lane.track))
    }

    /// Ends all that is open.
    pub fn close(self, sink: &mut impl Sink) -> Result<()> {
        for lane in self.lanes {
            lane.open.iter().rev().try_for_each(|(_, end)| sink.end(lane.track, *end))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Events: track, begins, time.
    #[derive(Default)]
    struct Events {
        tracks: u64,
        all: Vec<(u64, bool, i64)>,
    }

    impl Sink for Events {
        fn track(&mut self) -> Result<u64> {
            self.tracks += 1;
            Ok(self.tracks)
        }

        fn end(&mut self, track: u64, at: i64) -> Result<()> {
            self.all.push((track, false, at));
            Ok(())
        }
    }

    /// The events of slices, and how many slices found no room.
    fn events(slices: &[Slice], nested: bool, most: usize) -> (Vec<(u64, bool, i64)>, usize) {
        let (mut lanes, mut events, mut none) = (Lanes::default(), Events::default(), 0);
        for slice in slices {
            match lanes.place(slice, (nested, most), &mut events).unwrap() {
                Some(track) => events.all.push((track, true, slice.start)),
                None => none += 1,
            }
        }
        lanes.close(&mut events).unwrap();
        (events.all, none)
    }

    fn slice(id: i64, parent: Option<i64>, start: i64, end: i64) -> Slice {
        Slice { id, parent, start, end }
    }

    #[test]
    fn calls_inside_calls_share_a_track_and_what_overlaps_gets_another() {
        let calls = [slice(1, None, 0, 10), slice(2, Some(1), 2, 4), slice(3, Some(1), 4, 10), slice(4, None, 10, 12)];
        let expected = [(0, true), (2, true), (4, false), (4, true), (10, false), (10, false), (10, true), (12, false)];
        let (of_one, none) = events(&calls, true, 9);
        assert_eq!((of_one.iter().map(|(_, b, at)| (*at, *b)).collect::<Vec<_>>(), none), (expected.to_vec(), 0));
        assert!(of_one.iter().all(|(track, ..)| *track == 1));
        let overlap = [slice(1, None, 0, 10), slice(2, None, 5, 15), slice(3, None, 6, 7)];
        assert_eq!(events(&overlap, true, 1).1, 1);
        assert_eq!(events(&overlap, false, 2).1, 1);
        assert_eq!(events(&overlap, false, 3).1, 0);
        // A call without a duration has one without inside it, and not its neighbour.
        let nothing = [slice(1, None, 5, 5), slice(2, Some(1), 5, 5), slice(3, None, 5, 5)];
        let begins: Vec<_> = events(&nothing, true, 1).0.iter().map(|(_, begins, _)| *begins).collect();
        assert_eq!(begins, [true, true, false, false, true, false]);
    }

    proptest! {
        #[test]
        fn whatever_the_times_tracks_are_in_order_and_whole(
            times in proptest::collection::vec((0_i64..50, 0_i64..20, proptest::option::of(0_i64..60)), 0..60),
            nested: bool,
        ) {
            let slices: Vec<_> = times.iter().zip(0..).map(|((s, d, p), id)| slice(id, *p, *s, s + d)).collect();
            let (events, none) = events(&slices, nested, 7);
            prop_assert_eq!(events.iter().filter(|(_, begins, _)| *begins).count() + none, slices.len());
            let mut open = std::collections::HashMap::<u64, (usize, i64)>::new();
            for (track, begins, at) in events {
                let (depth, last) = open.entry(track).or_insert((0, i64::MIN));
                prop_assert!(at >= *last);
                *last = at;
                prop_assert!(begins || *depth > 0);
                *depth = if begins { *depth + 1 } else { *depth - 1 };
                prop_assert!(nested || *depth < 2);
            }
            prop_assert!(open.values().all(|(depth, _)| *depth == 0));
        }
    }
}
