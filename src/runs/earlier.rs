//! What runs take against earlier runs of the same command.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::base::text::{quoted, time};
use crate::runs::row::Run;

/// As many earlier runs count, the newest ones: what was usual before a program or a machine changed is forgotten.
const NEWEST: usize = 20;
/// Of fewer runs no median is taken.
const FEWEST: usize = 3;
/// By this factor a run differs that is worth a message, when it is also outside of what all earlier ones took.
const DIFFERS: f64 = 1.2;

/// Two runs with this in common are runs of the same: user, command and ranks.
type Same<'a> = (Option<&'a str>, &'a str, i64);

/// `None` for what is no run of a command (a service), and what has no usual duration (an end that was not recorded).
fn same(run: &Run) -> Option<Same<'_>> {
    (run.complete && !run.command.is_empty()).then_some((run.user.as_deref(), &run.command, run.ranks))
}

/// Fills `earlier_runs`, `usual_s`, `usual_calls_s` and `slowdown` of all.
pub fn fill(runs: &mut [Run]) {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| started(&runs[*a], &runs[*b]));
    let mut before: HashMap<Same<'_>, Vec<usize>> = HashMap::new();
    let mut usual = vec![(0, None); runs.len()];
    for at in order {
        let Some(same) = same(&runs[at]) else { continue };
        let earlier = before.entry(same).or_default();
        let newest = &earlier[earlier.len().saturating_sub(NEWEST)..];
        let median_of = |of: fn(&Run) -> f64| median(newest.iter().map(|at| of(&runs[*at])));
        let medians = (newest.len() >= FEWEST).then(|| (median_of(|run| run.duration_s), median_of(|run| run.calls_s)));
        usual[at] = (newest.len() as i64, medians);
        earlier.push(at);
    }
    for (run, (earlier, medians)) in runs.iter_mut().zip(usual) {
        run.earlier_runs = earlier;
        run.usual_s = medians.map(|(duration, _)| duration);
        run.usual_calls_s = medians.map(|(_, calls)| calls);
        run.slowdown = run.usual_s.filter(|usual| *usual > 0.0).map(|usual| run.duration_s / usual);
    }
}

fn started(a: &Run, b: &Run) -> Ordering {
    a.start_ns.cmp(&b.start_ns).then_with(|| a.path.cmp(&b.path))
}

/// The lower one of an even number.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

/// That a run took more or less than all earlier runs of the same command, and the command that shows what differs.
pub fn message(dir: &Path, runs: &[Run], path: &str) -> Option<String> {
    let run = runs.iter().find(|run| run.path == path)?;
    let (usual, slowdown, own) = (run.usual_s?, run.slowdown?, same(run)?);
    let mut earlier: Vec<&Run> =
        runs.iter().filter(|other| same(other) == Some(own) && started(other, run).is_lt()).collect();
    earlier.sort_by(|a, b| started(b, a));
    earlier.truncate(NEWEST);
    let slower = slowdown >= DIFFERS && earlier.iter().all(|other| other.duration_s < run.duration_s);
    let faster = slowdown <= 1.0 / DIFFERS && earlier.iter().all(|other| other.duration_s > run.duration_s);
    let typical = earlier.iter().min_by(|a, b| {
        let far = |run: &Run| (run.duration_s - usual).abs();
        far(a).total_cmp(&far(b))
    })?;
    let what = match (slower, faster) {
        (true, _) => "slower",
        (_, true) => "faster",
        _ => return None,
    };
    let seconds = |seconds: f64| time((seconds * 1e9) as i64);
    let path_of = |run: &Run| -> PathBuf { if run.path == "." { dir.to_owned() } else { dir.join(&run.path) } };
    Some(format!(
        "the run took {}, {what} than each of {} earlier runs of this command (median {}); what differs: iotrace-bpf \
         compare {} {}",
        seconds(run.duration_s),
        earlier.len(),
        seconds(usual),
        quoted(&path_of(typical)),
        quoted(&path_of(run))
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Runs of one command, one each minute, that took so many seconds.
    fn runs(seconds: &[f64]) -> Vec<Run> {
        let run = |(n, seconds): (usize, &f64)| Run {
            path: format!("run{n}"),
            start_ns: n as i64 * 60_000_000_000,
            duration_s: *seconds,
            calls_s: *seconds / 2.0,
            user: Some("anna".into()),
            command: "./sim".into(),
            complete: true,
            ..Run::default()
        };
        seconds.iter().enumerate().map(run).collect()
    }

    fn filled(seconds: &[f64]) -> Vec<Run> {
        let mut runs = runs(seconds);
        // The newest first, as in the index.
        runs.reverse();
        fill(&mut runs);
        runs.reverse();
        runs
    }

    #[test]
    fn the_usual_is_the_median_of_earlier_runs() {
        let runs = filled(&[4.0, 2.0, 3.0, 9.0, 3.0]);
        let usual: Vec<_> = runs.iter().map(|run| (run.earlier_runs, run.usual_s, run.usual_calls_s)).collect();
        let none = |earlier: i64| (earlier, None, None);
        assert_eq!(usual, [none(0), none(1), none(2), (3, Some(3.0), Some(1.5)), (4, Some(3.0), Some(1.5))]);
        assert_eq!(runs.iter().map(|run| run.slowdown).collect::<Vec<_>>(), [None, None, None, Some(3.0), Some(1.0)]);
    }

    #[test]
    fn old_runs_are_forgotten() {
        let seconds: Vec<f64> = [[1.0; NEWEST], [2.0; NEWEST]].concat().into_iter().chain([2.0]).collect();
        let last = filled(&seconds).pop().unwrap();
        assert_eq!((last.earlier_runs, last.usual_s), (NEWEST as i64, Some(2.0)));
    }

    #[test]
    fn others_are_not_earlier_runs() {
        type Change = fn(&mut Run);
        let changes: [(&str, Change); 4] = [
            ("another command", |run| run.command = "./other".into()),
            ("another user", |run| run.user = None),
            ("other ranks", |run| run.ranks = 64),
            ("no end", |run| run.complete = false),
        ];
        for (what, change) in changes {
            let mut runs = runs(&[1.0, 1.0, 1.0, 1.0]);
            change(&mut runs[1]);
            fill(&mut runs);
            assert_eq!((runs[3].earlier_runs, runs[3].usual_s), (2, None), "{what}");
        }
        let mut services = runs(&[1.0; 5]);
        for run in &mut services {
            run.command.clear();
        }
        fill(&mut services);
        assert!(services.iter().all(|run| run.earlier_runs == 0));
    }

    #[test]
    fn a_run_that_differs_from_all_has_a_message() {
        let of = |seconds: &[f64]| {
            let runs = filled(seconds);
            message(Path::new("/data"), &runs, &runs.last().unwrap().path)
        };
        assert_eq!(
            of(&[2.0, 1.0, 3.0, 9.0]).unwrap(),
            "the run took 9.00 s, slower than each of 3 earlier runs of this command (median 2.00 s); what differs: \
             iotrace-bpf compare /data/run0 /data/run3"
        );
        assert!(of(&[2.0, 1.5, 3.0, 1.0]).unwrap().contains("took 1.00 s, faster than each of 3"));
        assert_eq!(of(&[2.0, 1.0, 9.0, 8.0]), None, "one was as slow");
        assert_eq!(of(&[2.0, 2.0, 2.0, 2.3]), None, "by little");
        assert_eq!(of(&[2.0, 2.0, 9.0]), None, "too few");
    }
}
