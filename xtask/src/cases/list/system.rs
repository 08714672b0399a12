//! Cases whose cause is not in the program but in what it runs on, and with.

use super::{Case, Run, Setting, at, case, plain};

const MIB: u64 = 1 << 20;

pub const CASES: &[Case] = &[
    case(
        "few-dirty",
        "dirty-throttling",
        "a writer waits for pages to become clean, of which 4 MiB may be dirty; without that limit",
        at(Setting::FewDirty(4 * MIB), "dd if=/dev/zero of={dir}/file bs=1M count=512 status=none"),
        at(Setting::Image(1024), "dd if=/dev/zero of={dir}/file bs=1M count=512 status=none"),
    ),
    case(
        "group-limit",
        "device-limit",
        "the control group has 32 MiB/s of the device; without a limit",
        at(Setting::Throttled(32 * MIB), "{bin}/case_writes direct {dir}/file 1048576 64"),
        at(Setting::Image(1024), "{bin}/case_writes direct {dir}/file 1048576 64"),
    ),
    Case {
        prepare: "{bin}/case_reads make {dir}/file 48",
        cold: true,
        ..case(
            "group-limit-read",
            "device-limit",
            "the control group has 32 MiB/s of the device; without a limit",
            at(Setting::Throttled(32 * MIB), "dd if={dir}/file of=/dev/null bs=1M status=none"),
            at(Setting::Image(1024), "dd if={dir}/file of=/dev/null bs=1M status=none"),
        )
    },
    Case {
        prepare: "{bin}/case_reads make {dir}/file 256",
        cold: true,
        ..case(
            "second-reader",
            "interference",
            "three processes read from a device of 200 MiB/s at the same time; alone",
            Run {
                beside: &["fio --name=other --filename={device} --rw=randread --bs=1M --direct=1 --runtime=60 \
                           --time_based --output=/dev/null"; 2],
                ..at(Setting::SlowDisk(200 * MIB), "dd if={dir}/file of=/dev/null bs=1M status=none")
            },
            at(Setting::SlowDisk(200 * MIB), "dd if={dir}/file of=/dev/null bs=1M status=none"),
        )
    },
    case(
        "busy-cores",
        "cpu-wait",
        "computing processes have the cores, and writes wait for one; nobody computes",
        Run {
            beside: &["{bin}/case_busy 60"; 6],
            ..plain("dd if=/dev/zero of={dir}/file bs=1M count=512 status=none")
        },
        plain("dd if=/dev/zero of={dir}/file bs=1M count=512 status=none"),
    ),
    Case {
        prepare: "{bin}/case_reads make {dir}/file 192",
        cold: true,
        ..case(
            "reread",
            "reread",
            "reads a file four times that does not fit the memory of the control group; once",
            at(Setting::Memory(48), "{bin}/case_reads passes {dir}/file 1048576"),
            at(Setting::Memory(48), "{bin}/case_reads forward {dir}/file 1048576"),
        )
    },
    Case {
        prepare: "{bin}/case_reads make {dir}/file 64",
        cold: true,
        ..case(
            "small-readahead",
            "readahead-small",
            "the device has 4 KiB of read-ahead; 128 KiB",
            at(Setting::ReadAhead(4), "{bin}/case_reads forward {dir}/file 4096"),
            at(Setting::ReadAhead(128), "{bin}/case_reads forward {dir}/file 4096"),
        )
    },
    case(
        "swapping",
        "swap",
        "160 MiB of memory in a control group that has 96 MiB; without a limit",
        at(Setting::Memory(96), "{bin}/case_paged 160 2"),
        plain("{bin}/case_paged 160 2"),
    ),
    Case {
        prepare: "{bin}/case_reads make {dir}/file 512",
        ..case(
            "copy-up",
            "copy-up",
            "a few bytes are appended to a large file of a lower layer, which is copied first; to a file of their own",
            at(Setting::Overlay, "{bin}/case_writes appended {dir}/file 64 1"),
            at(Setting::Overlay, "{bin}/case_writes appended {dir}/new 64 1"),
        )
    },
    case(
        "no-space",
        "errors",
        "writes again and again to a file system that is full (ENOSPC); there is space",
        at(Setting::Image(32), "{bin}/case_again {dir}/file 64"),
        at(Setting::Image(1024), "{bin}/case_again {dir}/file 64"),
    ),
];
