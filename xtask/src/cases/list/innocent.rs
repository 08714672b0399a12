//! Cases in which nothing may be found, or not what is usually advised.

use super::{Case, Expect, case, plain};

/// Nothing may be found.
const fn fine(name: &'static str, about: &'static str, command: &'static str) -> Case {
    Case { expect: Expect::Nothing, good: None, ..case(name, "", about, plain(command), plain("")) }
}

pub const CASES: &[Case] = &[
    Case {
        expect: Expect::Not("independent-strided"),
        ..case(
            "strided-cached",
            "",
            "strided pieces in the page cache: a collective call, which all tools advise, is slower",
            plain("{mpich} -np 4 {bin}/case_ranks_mpich strided {dir}/file 16384 4096"),
            plain("{mpich} -np 4 {bin}/case_ranks_mpich view-all {dir}/file 16384 4096"),
        )
    },
    fine("dd-1m", "blocks of 1 MiB", "dd if=/dev/zero of={dir}/file bs=1M count=512 status=none"),
    fine("one-sync", "one fsync, in the end", "dd if=/dev/zero of={dir}/file bs=1M count=128 conv=fsync status=none"),
    fine(
        "aligned-collective",
        "four ranks write large blocks collectively",
        "{openmpi} -np 4 {bin}/case_ranks block-all {dir}/file 32 1048576",
    ),
    fine(
        "aggregators",
        "four of eight ranks write what all have",
        "{mpich} -np 8 {bin}/case_ranks_mpich view-all {dir}/file 64 65536 cb_nodes 4",
    ),
    Case {
        prepare: "sh {cases}/prepare.sh tar {dir} {root}",
        ..fine("tar", "unpacks an archive", "tar xf {dir}/tree.tar -C {dir}")
    },
    fine("python", "starts Python", "{python3} -c pass"),
    fine("sqlite-one", "inserts in one transaction", "{python3} {cases}/inserts.py one {dir}/base 100000"),
    Case {
        prepare: "{bin}/case_reads make {dir}/file 256",
        cold: true,
        ..fine("map-forward", "reads a mapping from begin to end", "{bin}/case_reads mapped-forward {dir}/file 4096")
    },
    Case {
        prepare: "{bin}/case_reads make {dir}/file 256",
        cold: true,
        ..fine("read-forward", "reads a file from begin to end", "dd if={dir}/file of=/dev/null bs=1M status=none")
    },
    Case {
        prepare: "{bin}/case_reads make {dir}/file 256",
        cold: true,
        ..fine(
            "fio-deep",
            "32 direct reads at a time",
            "fio --name=deep --filename={dir}/file --rw=randread --bs=64k --direct=1 --ioengine=libaio --iodepth=32 \
             --size=256M",
        )
    },
    Case {
        prepare: "sh {cases}/prepare.sh make {dir}",
        ..fine("make", "compiles ten files", "make -s -C {dir}/project")
    },
    Case {
        prepare: "sh {cases}/prepare.sh cargo {dir}",
        ..fine(
            "cargo",
            "compiles hello world",
            "cargo build -q --manifest-path {dir}/hello/Cargo.toml --target-dir {dir}/target",
        )
    },
    Case {
        prepare: "sh {cases}/prepare.sh git {dir} {root}",
        ..fine("git-clone", "clones a repository that is here", "git clone -q {dir}/origin {dir}/clone")
    },
    fine("compute", "computes", "{bin}/case_busy 1"),
    Case { prepare: "ls -R /usr/share", ..fine("ls", "lists a tree", "ls -R /usr/share") },
    Case {
        prepare: "grep -rc fsync {root}/src {root}/tests",
        ..fine("grep", "reads a tree that is in the page cache", "grep -rc fsync {root}/src {root}/tests")
    },
];
