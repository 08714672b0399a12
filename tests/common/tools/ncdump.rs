//! The variables of a `NetCDF` file, by `ncdump`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The variables of a file by their paths, with the lengths of their dimensions.
pub fn variables(file: &Path) -> BTreeMap<String, Vec<i64>> {
    let out = Command::new("ncdump").arg("-h").arg(file).output().unwrap_or_else(|e| panic!("ncdump: {e}"));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let (mut groups, mut section) = (Vec::new(), "");
    let mut dimensions: BTreeMap<&str, i64> = BTreeMap::new();
    let mut variables = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("group: ") {
            groups.push(name.trim_end_matches(" {"));
        } else if line.starts_with("} // group") {
            groups.pop();
        } else if line.ends_with(':') {
            section = line;
        } else if let ("dimensions:", Some((name, len))) = (section, line.split_once(" = ")) {
            // "time = UNLIMITED ; // (3 currently)"
            let len = len.split_once('(').map_or(len, |(_, now)| now);
            dimensions.insert(name, len.split(' ').next().unwrap().parse().unwrap());
        } else if section == "variables:" && !line.contains(':') && line.ends_with(" ;") {
            // "double name(time, x) ;"
            let (_, variable) = line.trim_end_matches(" ;").split_once(' ').unwrap();
            let (name, dims) = variable.trim_end_matches(')').split_once('(').unwrap_or((variable, ""));
            let lengths = dims.split(", ").filter(|d| !d.is_empty()).map(|d| dimensions[d]).collect();
            variables.insert(format!("/{}", [&groups[..], &[name]].concat().join("/")), lengths);
        }
    }
    variables
}
