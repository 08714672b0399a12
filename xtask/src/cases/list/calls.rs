//! Cases whose cause is in how a program calls the kernel or the C library.

use super::{Case, Setting, at, case, plain};

pub const CASES: &[Case] = &[
    case(
        "log-fsync",
        "sync-per-record",
        "fsync after each of 2000 records; one in the end",
        plain("{bin}/case_records sync {dir}/log 2000 128"),
        plain("{bin}/case_records once {dir}/log 2000 128"),
    ),
    case(
        "log-fdatasync",
        "sync-per-record",
        "fdatasync after each of 1000 records; one fsync in the end",
        plain("{bin}/case_records datasync {dir}/log 1000 4096"),
        plain("{bin}/case_records once {dir}/log 1000 4096"),
    ),
    case(
        "map-msync",
        "sync-per-record",
        "msync after each of 1500 records in a mapping; one in the end",
        plain("{bin}/case_records mapped {dir}/map 1500 4096"),
        plain("{bin}/case_records mapped-once {dir}/map 1500 4096"),
    ),
    case(
        "sqlite-inserts",
        "sync-per-record",
        "each insert is a transaction; one transaction",
        plain("{python3} {cases}/inserts.py each {dir}/base 300"),
        plain("{python3} {cases}/inserts.py one {dir}/base 300"),
    ),
    case(
        "o-sync",
        "sync-writes",
        "1500 writes with O_SYNC; without, and one fsync",
        plain("{bin}/case_records o-sync {dir}/log 1500 4096"),
        plain("{bin}/case_records once {dir}/log 1500 4096"),
    ),
    case(
        "o-dsync",
        "sync-writes",
        "1500 writes with O_DSYNC; without, and one fsync",
        plain("{bin}/case_records o-dsync {dir}/log 1500 4096"),
        plain("{bin}/case_records once {dir}/log 1500 4096"),
    ),
    case(
        "direct-write",
        "direct-depth-one",
        "direct writes of 4 KiB, one at a time; of 1 MiB",
        plain("{bin}/case_writes direct {dir}/file 4096 8192"),
        plain("{bin}/case_writes direct {dir}/file 1048576 32"),
    ),
    Case {
        prepare: "{bin}/case_reads make {dir}/file 32",
        cold: true,
        ..case(
            "direct-read",
            "direct-depth-one",
            "direct reads of 4 KiB, one at a time; of 1 MiB",
            plain("{bin}/case_reads direct {dir}/file 4096"),
            plain("{bin}/case_reads direct {dir}/file 1048576"),
        )
    },
    case(
        "small-writes",
        "small-transfers",
        "a million writes of 64 bytes; in blocks of 1 MiB",
        plain("{bin}/case_records plain {dir}/log 1000000 64"),
        plain("{bin}/case_records buffered {dir}/log 1000000 64"),
    ),
    Case {
        prepare: "{bin}/case_reads make {dir}/file 32",
        ..case(
            "small-reads",
            "small-transfers",
            "reads of 16 bytes from the page cache; of 64 KiB",
            plain("{bin}/case_reads forward {dir}/file 16"),
            plain("{bin}/case_reads forward {dir}/file 65536"),
        )
    },
    case(
        "stdio-unbuffered",
        "small-transfers",
        "fwrite on a stream without a buffer; with one",
        plain("{bin}/case_records unbuffered {dir}/log 500000 64"),
        plain("{bin}/case_records stdio {dir}/log 500000 64"),
    ),
    case(
        "stdio-flushed",
        "stdio-flush",
        "fflush after each record; none",
        plain("{bin}/case_records flushed {dir}/log 500000 64"),
        plain("{bin}/case_records stdio {dir}/log 500000 64"),
    ),
    Case {
        prepare: "{bin}/case_reads make {dir}/file 256",
        cold: true,
        ..case(
            "partial-pages",
            "partial-page-overwrite",
            "overwrites 4000 bytes in each 64 KiB of a file that is not in the page cache; whole pages",
            plain("{bin}/case_writes over {dir}/file 4000 4096"),
            plain("{bin}/case_writes over {dir}/file 4096 4096"),
        )
    },
    Case {
        prepare: "{bin}/case_reads make {dir}/file 64",
        cold: true,
        ..case(
            "random-reads",
            "random-reads",
            "reads each 4 KiB of a file once, in no order; from begin to end",
            plain("{bin}/case_reads shuffled {dir}/file 4096"),
            plain("{bin}/case_reads forward {dir}/file 4096"),
        )
    },
    Case {
        prepare: "{bin}/case_reads make {dir}/file 256",
        cold: true,
        // Without the limit what is read around costs next to nothing here.
        also: &["random-reads", "device-limit"],
        ..case(
            "map-random",
            "readahead-waste",
            "touches a page of each 64 KiB of a mapping in no order, the kernel reads around it; with MADV_RANDOM",
            at(Setting::Throttled(200 << 20), "{bin}/case_reads mapped {dir}/file 4096"),
            at(Setting::Throttled(200 << 20), "{bin}/case_reads advised {dir}/file 4096"),
        )
    },
    Case {
        prepare: "{bin}/case_reads make {dir}/file 32",
        cold: true,
        ..case(
            "wrong-advice",
            "readahead-small",
            "reads a file in turn after the advice that access is random; without the advice",
            plain("{bin}/case_reads no-ahead {dir}/file 4096"),
            plain("{bin}/case_reads forward {dir}/file 4096"),
        )
    },
    Case {
        prepare: "{bin}/case_names make {dir}/files 20000",
        ..case(
            "stat-storm",
            "metadata-storm",
            "asks for the sizes of 20000 files ten times; remembers them",
            plain("{bin}/case_names stat {dir}/files 20000"),
            plain("{bin}/case_names once {dir}/files 20000"),
        )
    },
    case(
        "open-close",
        "metadata-storm",
        "opens and closes the file for each of 200000 records; once",
        plain("{bin}/case_records reopened {dir}/log 200000 64"),
        plain("{bin}/case_records buffered {dir}/log 200000 64"),
    ),
    Case {
        prepare: "{python3} {cases}/modules.py make {dir} 300 400",
        ..case(
            "python-path",
            "metadata-storm",
            "Python imports 300 modules from the last of 400 directories; from that alone",
            plain("{python3} {cases}/modules.py long {dir} 300 400"),
            plain("{python3} {cases}/modules.py short {dir} 300 400"),
        )
    },
    Case {
        prepare: "sh {cases}/prepare.sh headers {dir}",
        ..case(
            "include-path",
            "failed-lookups",
            "a compiler looks for 200 headers in 1000 directories; in that which has them",
            plain("cc -E -o /dev/null @{dir}/options {dir}/all.c"),
            plain("cc -E -o /dev/null -I{dir}/include/999 {dir}/all.c"),
        )
    },
    Case {
        prepare: "sh {cases}/prepare.sh libraries {dir}",
        ..case(
            "library-path",
            "failed-lookups",
            "20 programs look for their libraries in 500 directories (LD_LIBRARY_PATH); without it",
            plain("sh {dir}/long"),
            plain("sh {dir}/short"),
        )
    },
    case(
        "direct-crooked",
        "direct-misaligned",
        "direct writes from memory that is not aligned fail, and go through the page cache; from memory that is",
        plain("{bin}/case_writes crooked {dir}/file 1048576 64"),
        plain("{bin}/case_writes direct {dir}/file 1048576 64"),
    ),
    Case {
        prepare: "{bin}/case_reads make {dir}/file 1024",
        ..case(
            "spread-changes",
            "write-amplification",
            "changes 8 bytes in each page of a file, all of which is written to disk; in one piece",
            plain("{bin}/case_writes spread {dir}/file 8 262144"),
            plain("{bin}/case_writes packed {dir}/file 8 262144"),
        )
    },
    Case {
        prepare: "{bin}/case_reads make {dir}/file 16",
        ..case(
            "stdio-update",
            "stdio-turns",
            "reads and writes each of 40000 records of a stream by turns; all of them, then writes all",
            plain("{bin}/case_update turns {dir}/file 40000 128"),
            plain("{bin}/case_update whole {dir}/file 40000 128"),
        )
    },
    case(
        "stdio-records",
        "stdio-bulk",
        "eight million records of 16 bytes through stdio; in blocks of 1 MiB",
        plain("{bin}/case_records stdio {dir}/log 8000000 16"),
        plain("{bin}/case_records buffered {dir}/log 8000000 16"),
    ),
    case(
        "file-lock",
        "lock-wait",
        "four processes lock the whole file for a change; the range that they change",
        plain("{bin}/case_locks whole {dir}/file"),
        plain("{bin}/case_locks ranges {dir}/file"),
    ),
];
