//! What the node is made of, for `meta`.

use std::fs::{self, File};
use std::io::Read as _;

use nix::unistd::{SysconfVar, sysconf};

/// CPUs that are online, their model, memory in bytes and NUMA nodes: what of that the kernel shows.
pub fn facts() -> Vec<(&'static str, String)> {
    let number = |what| sysconf(what).ok().flatten();
    let pages = number(SysconfVar::_PHYS_PAGES).zip(number(SysconfVar::PAGE_SIZE));
    let facts = [
        ("cpus", number(SysconfVar::_NPROCESSORS_ONLN).map(|n| n.to_string())),
        ("cpu_model", first_cpu().and_then(|text| model(&text))),
        ("memory_bytes", pages.map(|(n, size)| n.saturating_mul(size).to_string())),
        ("numa_nodes", fs::read_to_string("/sys/devices/system/node/online").ok().and_then(|text| listed(&text))),
    ];
    facts.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// The begin of /proc/cpuinfo: for each CPU that is read the kernel may ask that CPU how fast it runs.
fn first_cpu() -> Option<String> {
    let mut text = vec![0; 4096];
    let n = File::open("/proc/cpuinfo").ok()?.read(&mut text).ok()?;
    text.truncate(n);
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Of the first CPU in /proc/cpuinfo; some architectures have none.
fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// How many numbers are in a list of the kernel: `0-3,8`.
fn listed(text: &str) -> Option<String> {
    let one = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    let sum = text.trim().split(',').try_fold(0_u32, |sum, part| sum.checked_add(one(part)?))?;
    Some(sum.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_lists_are_read_where_they_are_there() {
        let text = "processor\t: 0\nmodel name\t: Big CPU @ 3: fast\n\nprocessor\t: 1\nmodel name\t: other\n";
        assert_eq!(model(text).as_deref(), Some("Big CPU @ 3: fast"));
        assert_eq!((model(""), model("model name")), (None, None));
        assert_eq!((listed("0-3,8\n").as_deref(), listed("0").as_deref()), (Some("5"), Some("1")));
        assert_eq!((listed(""), listed("3-1"), listed("0-4294967295")), (None, None, None));
    }
}
