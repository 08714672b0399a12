//! Calls on names and attributes.

use super::{Rule, at_least};
use crate::analysis::findings::case::{Case, Found};
use crate::analysis::findings::groups::group::{Group, WITH_LOOP};
use crate::base::text::time;
use crate::vocabulary::{Kind, Layer};

fn names(group: &Group) -> bool {
    group.key.layer == Layer::Syscall && matches!(group.key.kind, Kind::Open | Kind::Close | Kind::Meta)
}

/// Groups that were named by no path are about descriptors.
fn distinct(case: &Case, picked: &[usize]) -> u64 {
    let mut all = roaring::RoaringBitmap::new();
    for at in picked {
        all |= &case.group(*at).rare().paths;
    }
    all.len().max(1)
}

pub const FAILED_LOOKUPS: Rule = Rule {
    id: "failed-lookups",
    about: "names were looked up where they do not exist: a search path with many directories",
    advice: "shorten the search path (sys.path, PYTHONPATH, LD_LIBRARY_PATH, -I), put the directory that has the files first, or pack them (zip, container image)",
    source: "analysis rule A06",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least("calls", 1000.0, "failed calls"), at_least("share", 0.1, "part of the run")],
    sql: "SELECT regexp_replace(path, '/[^/]*$', '') AS directory, count(*) AS calls FROM spans JOIN paths USING (host, path_id) WHERE errno = 2 GROUP BY ALL ORDER BY calls DESC",
    find: failed_lookups,
};

fn failed_lookups(case: &mut Case) -> Vec<Found> {
    let missing = [2, 20];
    let failed = case.pick(|group| names(group) && missing.contains(&group.key.errno));
    let calls = case.calls(&failed);
    let took = case.seconds(&failed, &WITH_LOOP);
    if (calls as f64) < case.threshold("calls") || took < case.threshold("share") * case.run.wall {
        return Vec::new();
    }
    let each = time((took * 1e9 / calls.max(1) as f64) as i64);
    let what = format!("{calls} lookups of names that do not exist, {each} each");
    case.found(what, failed, &WITH_LOOP, (took * 0.6, took))
}

pub const METADATA_STORM: Rule = Rule {
    id: "metadata-storm",
    about: "the same names are opened, closed or asked for again and again",
    advice: "open once and keep the file open; ask for attributes once (scandir gives them with the names) and keep them",
    source: "Drishti P17; analysis rule A06",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[
        at_least("calls", 1000.0, "calls"),
        at_least("times", 5.0, "calls for each name"),
        at_least("share", 0.1, "part of the run"),
    ],
    sql: "SELECT host, op, count(*) AS calls, count(DISTINCT path_id) AS paths, sum(dur_ns) / 1e9 AS s FROM spans WHERE kind IN ('open', 'close', 'meta') AND layer = 'syscall' GROUP BY ALL ORDER BY s DESC",
    find: metadata_storm,
};

fn metadata_storm(case: &mut Case) -> Vec<Found> {
    let calls_of = case.pick(|group| names(group) && group.key.errno == 0);
    let calls = case.calls(&calls_of);
    let took = case.seconds(&calls_of, &WITH_LOOP);
    let by_name = case.sum(&calls_of, |group| if group.rare().paths.is_empty() { 0 } else { group.calls });
    let times = by_name as f64 / distinct(case, &calls_of) as f64;
    if (calls as f64) < case.threshold("calls")
        || times < case.threshold("times")
        || took < case.threshold("share") * case.run.wall
    {
        return Vec::new();
    }
    let each = time((took * 1e9 / calls.max(1) as f64) as i64);
    let what = format!("{calls} opens, closes and queries of attributes, {each} each, {times:.0} for each name");
    case.found(what, calls_of, &WITH_LOOP, (took * 0.6, took))
}
