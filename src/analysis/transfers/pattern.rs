//! How a process goes through a file, or through a handle of a library: read by read and write by write.
//!
//! The meaning is that of Darshan's POSIX module (`darshan-posix.c`), which the kernel side counts by with `--aggregate`
//! (`bpf/sums/sum.h`), as `file_sums` and `v_sequential` do in `views.sql`: reads and writes are followed apart, and
//! the last byte of what was never touched is its first one.

/// Jumps up to so many bytes are short: as far as the kernel reads ahead unless a device is configured otherwise
/// (`VM_READAHEAD_PAGES` in `include/linux/pagemap.h`), so that the page may be in memory already.
/// `v_sequential` and `v_handle_pattern` in `views.sql` have the same bound.
pub const SHORT_JUMP: i64 = 128 << 10;

/// Where the last read and the last write ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    last: [Option<i64>; 2],
}

/// How a read or write lies to the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// It begins behind the last byte of the one before.
    pub sequential: bool,
    /// It begins right behind it.
    pub consecutive: bool,
    /// The bytes that it leaves out, where it leaves out any and there was one before.
    pub stride: Option<i64>,
    /// From the end of the one before to its begin, forwards or backwards; `None` for the first one.
    pub jump: Option<i64>,
}

impl Step {
    /// It begins near the end of the one before, and not there.
    pub fn is_short_jump(&self) -> bool {
        self.jump.is_some_and(|jump| jump != 0 && jump.saturating_abs() <= SHORT_JUMP)
    }

    /// It begins far from there.
    pub fn is_long_jump(&self) -> bool {
        self.jump.is_some_and(|jump| jump.saturating_abs() > SHORT_JUMP)
    }
}

impl Position {
    /// A read or write of `bytes`, which are more than 0, at `offset`.
    pub fn step(&mut self, write: bool, offset: i64, bytes: i64) -> Step {
        let before = self.last[usize::from(write)].replace(offset.saturating_add(bytes - 1));
        let last = before.unwrap_or(0);
        let (sequential, consecutive) = (offset > last, offset == last.saturating_add(1));
        let stride = (sequential && !consecutive && last > 0).then(|| offset - last - 1);
        let jump = before.map(|last| offset.saturating_sub(last).saturating_sub(1));
        Step { sequential, consecutive, stride, jump }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_are_followed_apart_as_darshan_does() {
        let mut position = Position::default();
        let step = |sequential, consecutive, stride| (sequential, consecutive, stride);
        let mut of = |write, offset, bytes| {
            let step = position.step(write, offset, bytes);
            (step.sequential, step.consecutive, step.stride)
        };
        assert_eq!(of(false, 0, 10), step(false, false, None), "the first byte counts as touched");
        assert_eq!(of(false, 10, 10), step(true, true, None));
        assert_eq!(of(true, 100, 5), step(true, false, None), "there was no write before");
        assert_eq!(of(false, 30, 5), step(true, false, Some(10)));
        assert_eq!(of(false, 30, 5), step(false, false, None));
        assert_eq!(of(true, 110, 5), step(true, false, Some(5)));
    }
    #[test]
    fn jumps_are_short_as_far_as_the_kernel_reads_ahead() {
        let mut position = Position::default();
        let mut of = |offset| {
            let step = position.step(false, offset, 10);
            (step.jump, step.is_short_jump(), step.is_long_jump())
        };
        assert_eq!(of(500), (None, false, false), "there is none before");
        assert_eq!(of(510), (Some(0), false, false));
        assert_eq!(of(520 + SHORT_JUMP), (Some(SHORT_JUMP), true, false));
        assert_eq!(of(530 + 2 * SHORT_JUMP + 1), (Some(SHORT_JUMP + 1), false, true));
        assert_eq!(of(541 + SHORT_JUMP), (Some(1 - SHORT_JUMP - 1), true, false));
        assert_eq!(of(540), (Some(-SHORT_JUMP - 11), false, true));
        assert_eq!(of(549), (Some(-1), true, false));
    }
}
