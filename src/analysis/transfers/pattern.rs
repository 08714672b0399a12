//! How a process goes through a file, or through a handle of a library: read by read and write by write.
//!
//! The meaning is that of Darshan's POSIX module (`darshan-posix.c`), which the kernel side counts by with `--aggregate`
//! (`bpf/sums/sum.h`), as `file_sums` and `v_sequential` do in `views.sql`: reads and writes are followed apart, and
//! the last byte of what was never touched is its first one.

/// Where the last read and the last write ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    last: [i64; 2],
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
}

impl Position {
    /// A read or write of `bytes`, which are more than 0, at `offset`.
    pub fn step(&mut self, write: bool, offset: i64, bytes: i64) -> Step {
        let last = &mut self.last[usize::from(write)];
        let (sequential, consecutive) = (offset > *last, offset == last.saturating_add(1));
        let stride = (sequential && !consecutive && *last > 0).then(|| offset - *last - 1);
        *last = offset.saturating_add(bytes - 1);
        Step { sequential, consecutive, stride }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_are_followed_apart_as_darshan_does() {
        let mut position = Position::default();
        let step = |sequential, consecutive, stride| Step { sequential, consecutive, stride };
        assert_eq!(position.step(false, 0, 10), step(false, false, None), "the first byte counts as touched");
        assert_eq!(position.step(false, 10, 10), step(true, true, None));
        assert_eq!(position.step(true, 100, 5), step(true, false, None), "there was no write before");
        assert_eq!(position.step(false, 30, 5), step(true, false, Some(10)));
        assert_eq!(position.step(false, 30, 5), step(false, false, None));
        assert_eq!(position.step(true, 110, 5), step(true, false, Some(5)));
    }
}
