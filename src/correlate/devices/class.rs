//! What a request is for, by the kernel's flags and by what its bios carry.

use crate::event::Bio;
use crate::rows::DISCARD;

/// Linux `include/linux/blk_types.h`.
mod req {
    pub const OP: u32 = 0xff;
    pub const META: u32 = 1 << 12;
    pub const PREFLUSH: u32 = 1 << 18;
    pub const RAHEAD: u32 = 1 << 19;
    pub const BACKGROUND: u32 = 1 << 20;
    pub const SWAP: u32 = 1 << 24;
}

/// Numbers of operations.
const WRITE: u32 = 1;
const WRITE_ZEROES: u32 = 9;

pub fn is_write(flags: u32) -> bool {
    flags & req::OP == WRITE
}

/// The name of an operation. Devices without a queue get flushes as empty writes.
pub fn operation(flags: u32, bytes: u32) -> &'static str {
    match flags & req::OP {
        WRITE if bytes == 0 && flags & req::PREFLUSH != 0 => "flush",
        0 => "read",
        WRITE => "write",
        2 => "flush",
        3 | 5 => "discard",
        7 | 11 | 13 | 15 | 17 | 19 => "zone",
        _ => "other",
    }
}

/// How a bio is linked to the call that queued it.
pub fn submitted(flags: u32, bio: &Bio) -> &'static str {
    if flags & req::OP == WRITE_ZEROES || operation(flags, bio.bytes as u32) == "discard" {
        DISCARD
    } else if flags & req::RAHEAD != 0 {
        "readahead"
    } else if bio.file.is_none() && !bio.meta && bio.journal.is_none() && flags & req::META == 0 {
        "direct"
    } else {
        "sync"
    }
}

/// The class of a request with these bios: the first that fits.
pub fn of(flags: u32, bytes: u32, bios: &[&Bio]) -> &'static str {
    let has = |bit: u32| flags & bit != 0;
    let any = |is: fn(&Bio) -> bool| bios.iter().any(|bio| is(bio));
    let file = any(|b| b.file.is_some());
    match operation(flags, bytes) {
        "flush" => "flush",
        "discard" => "discard",
        _ if has(req::SWAP) => "swap",
        _ if has(req::RAHEAD) => "readahead",
        _ if any(|b| b.journal.is_some()) => "journal",
        _ if has(req::META) || any(|b| b.meta) => "meta",
        "write" if file && (has(req::BACKGROUND) || any(|b| b.kernel)) => "writeback",
        _ => "sync",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlate::testing::key;

    const BIO: Bio = Bio {
        req: 1,
        file: None,
        off: 0,
        bytes: 4096,
        queued: 1,
        submitter: None,
        of: None,
        journal: None,
        meta: false,
        kernel: false,
        cgroup: None,
    };

    #[test]
    fn a_class_is_the_first_that_fits() {
        let class = |flags: u32, bio: Bio| of(flags, 4096, &[&bio]);
        let file = Bio { file: Some(key(1)), ..BIO };
        let queued = Bio { kernel: true, ..file };
        assert_eq!(
            [class(0, file), class(1, file), class(1, queued), class(0, queued)],
            ["sync", "sync", "writeback", "sync"]
        );
        assert_eq!([class(1 | req::BACKGROUND, file), class(1 | req::META, queued)], ["writeback", "meta"]);
        let journal = Bio { journal: Some(1), meta: true, ..BIO };
        assert_eq!([class(1 | req::META, journal), class(1, Bio { meta: true, ..BIO })], ["journal", "meta"]);
        assert_eq!(
            [class(req::RAHEAD | req::META, BIO), class(1 | req::SWAP, BIO), class(3, BIO)],
            ["readahead", "swap", "discard"]
        );
        // A direct write that must be durable is no journal's.
        assert_eq!(class(1 | 1 << 17, BIO), "sync");
        assert_eq!(of(1 | req::PREFLUSH, 0, &[]), "flush");
        assert_eq!([submitted(1, &BIO), submitted(1, &journal)], ["direct", "sync"]);
        // Blocks that are given up, safely too, and those that the device is to fill with zeroes.
        assert_eq!([3, 5, 9].map(|op| submitted(op, &BIO)), [DISCARD; 3]);
    }
}
