//! Operations of FUSE, by their numbers in `include/uapi/linux/fuse.h`.

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    pub number: u32,
    pub name: &'static str,
    pub moves: Moves,
    /// The server replies to it.
    pub replied: bool,
}

/// Data that goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moves {
    Nothing,
    /// With the reply.
    Read,
    /// With the request; the reply has how much was taken.
    Write,
}

const fn operation(number: u32, name: &'static str) -> Operation {
    Operation { number, name, moves: Moves::Nothing, replied: true }
}

const fn silent(number: u32, name: &'static str) -> Operation {
    Operation { replied: false, ..operation(number, name) }
}

const OPERATIONS: &[Operation] = &[
    operation(1, "lookup"),
    silent(2, "forget"),
    operation(3, "getattr"),
    operation(4, "setattr"),
    operation(5, "readlink"),
    operation(6, "symlink"),
    operation(8, "mknod"),
    operation(9, "mkdir"),
    operation(10, "unlink"),
    operation(11, "rmdir"),
    operation(12, "rename"),
    operation(13, "link"),
    operation(14, "open"),
    Operation { moves: Moves::Read, ..operation(15, "read") },
    Operation { moves: Moves::Write, ..operation(16, "write") },
    operation(17, "statfs"),
    operation(18, "release"),
    operation(20, "fsync"),
    operation(21, "setxattr"),
    operation(22, "getxattr"),
    operation(23, "listxattr"),
    operation(24, "removexattr"),
    operation(25, "flush"),
    operation(26, "init"),
    operation(27, "opendir"),
    operation(28, "readdir"),
    operation(29, "releasedir"),
    operation(30, "fsyncdir"),
    operation(31, "getlk"),
    operation(32, "setlk"),
    operation(33, "setlkw"),
    operation(34, "access"),
    operation(35, "create"),
    silent(36, "interrupt"),
    operation(37, "bmap"),
    operation(38, "destroy"),
    operation(39, "ioctl"),
    operation(40, "poll"),
    silent(41, "notify_reply"),
    silent(42, "batch_forget"),
    operation(43, "fallocate"),
    operation(44, "readdirplus"),
    operation(45, "rename2"),
    operation(46, "lseek"),
    operation(47, "copy_file_range"),
    operation(48, "setupmapping"),
    operation(49, "removemapping"),
    operation(50, "syncfs"),
    operation(51, "tmpfile"),
    operation(52, "statx"),
];

/// The operation with this number; one that is called `other` where it has no name here.
pub fn of(number: u32) -> Operation {
    let found = OPERATIONS.binary_search_by_key(&number, |o| o.number);
    found.ok().and_then(|at| OPERATIONS.get(at)).copied().unwrap_or(operation(number, "other"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_by_their_numbers() {
        assert!(OPERATIONS.is_sorted_by_key(|o| o.number));
        assert!(OPERATIONS.iter().all(|o| of(o.number) == *o));
        assert_eq!((of(16).name, of(16).moves), ("write", Moves::Write));
        assert_eq!((of(7).name, of(999).name), ("other", "other"));
    }
}
