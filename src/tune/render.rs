//! What came of it, as text and JSON.

use serde::Serialize;

use crate::base::text::{self, Set, percent, table, time};
use crate::compare::{Change, noise};
use crate::tune::measure::Measured;
use crate::tune::settings::Settings;

/// What is left where no setting helps.
const CHANGE: &str = "\
The program has to change: iotrace-bpf report DIR has the advice, and iotrace-bpf tune DIR tries it on a replay.
";

/// One variant, and its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    pub settings: Settings,
    /// A replay that is fixed for these findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<&'static str>,
    /// The findings that it may help against.
    pub rules: Vec<&'static str>,
    /// What fixing these saves, as the findings predict it, in seconds.
    pub predicted_s: Option<(f64, f64)>,
    pub times_s: Vec<f64>,
    pub median_s: Option<f64>,
    /// By which part of the first variant it is slower: -0.5 is half.
    pub change: Option<f64>,
    pub noise: Option<Change>,
    pub failed: Option<String>,
    /// It was much slower, and got no more runs.
    pub given_up: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    pub command: String,
    /// The first is the program as it is.
    pub variants: Vec<Tried>,
    /// The fastest that is faster in each of its runs, by number.
    pub best: Option<usize>,
    /// The same of those that change nothing in the program.
    pub settings: Option<usize>,
    /// Lines of a shell that set these.
    pub lines: Vec<String>,
    /// Findings that nothing was tried against.
    pub untried: Vec<&'static str>,
}

impl Tried {
    /// A variant before its first run; with a replay's findings, and what fixing saves by prediction.
    pub fn new(
        settings: Settings,
        (fixed, predicted_s): (Vec<&'static str>, Option<(f64, f64)>),
        rules: Vec<&'static str>,
    ) -> Self {
        let (times_s, median_s, change, noise) = (Vec::new(), None, None, None);
        Self { settings, fixed, rules, predicted_s, times_s, median_s, change, noise, failed: None, given_up: false }
    }

    pub fn add(&mut self, measured: &Measured, base: &Measured) {
        self.times_s.clone_from(&measured.times);
        self.failed.clone_from(&measured.failed);
        self.given_up = measured.hopeless;
        if measured.times.is_empty() {
            return;
        }
        let (own, base) = (measured.side(), base.side());
        self.median_s = Some(own.median);
        self.change = (base.median > 0.0).then(|| own.median / base.median - 1.0);
        self.noise = Some(noise(&base, &own));
    }

    pub fn description(&self) -> String {
        match self.fixed.as_slice() {
            [] => self.settings.description(),
            rules => format!("fixed: {}", rules.join(", ")),
        }
    }

    fn row(&self, first: bool) -> Vec<String> {
        let seconds = |s: f64| time((s * 1e9) as i64);
        let least = self.times_s.iter().copied().reduce(f64::min);
        let most = self.times_s.iter().copied().reduce(f64::max);
        let verdict = match (&self.failed, self.noise) {
            (Some(why), _) => why.lines().next().unwrap_or("failed").to_owned(),
            _ if first => String::new(),
            (None, Some(Change::BeyondNoise)) if self.change.is_some_and(|change| change < 0.0) => {
                "faster in every run".to_owned()
            }
            (None, Some(Change::BeyondNoise)) => "slower in every run".to_owned(),
            (None, Some(Change::WithinNoise)) => "within noise".to_owned(),
            (None, _) => "one run says nothing".to_owned(),
        };
        vec![
            text::escape(self.description()),
            self.median_s.map_or_else(|| "-".to_owned(), seconds),
            least
                .zip(most)
                .map_or_else(String::new, |(least, most)| format!("{} to {}", seconds(least), seconds(most))),
            self.change.filter(|_| !first).map_or_else(String::new, |change| format!("{:+.1}%", change * 100.0)),
            verdict,
            self.rules.join(", "),
        ]
    }
}

/// For people.
pub fn text(outcome: &Outcome, width: usize) -> String {
    let head: [text::Column; 6] = [
        ("variant", Set::Name, 0),
        ("median", Set::Right, 0),
        ("range", Set::Name, 3),
        ("change", Set::Right, 0),
        ("", Set::Name, 0),
        ("for", Set::Name, 4),
    ];
    let rows: Vec<Vec<String>> = outcome.variants.iter().enumerate().map(|(at, one)| one.row(at == 0)).collect();
    let untried = outcome.untried.join(", ");
    match (rows.len(), outcome.untried.is_empty()) {
        (1, true) => return "The report finds nothing wrong with this run: there is nothing to try.\n".to_owned(),
        (1, false) => return format!("No setting changes what was found: {untried}\n{CHANGE}"),
        _ => {}
    }
    let mut out = table(&head, &rows, width, 0);
    if !outcome.untried.is_empty() {
        out += &format!("\nNo setting changes: {untried}\n");
    }
    let Some(best) = outcome.best else {
        return out + "\nNothing made it faster by more than its runs differ.\n";
    };
    out += &format!("\n{}\n", outcome.saving(best));
    if let Some(settings) = outcome.settings {
        if settings != best {
            out += &format!("Without a change of the program: {}\n", outcome.saving(settings));
        }
        for line in &outcome.lines {
            out += &format!("  {}\n", text::escape(line));
        }
    }
    out
}

impl Outcome {
    /// What a variant saves, and should by prediction.
    fn saving(&self, at: usize) -> String {
        let (Some(one), Some(base)) = (self.variants.get(at), self.variants.first().and_then(|base| base.median_s))
        else {
            return String::new();
        };
        let seconds = |s: f64| time((s * 1e9) as i64);
        let median = one.median_s.unwrap_or(base);
        let saved = percent(1.0 - median / base.max(f64::MIN_POSITIVE));
        let description = text::escape(one.description());
        let line = format!("{description} saves {} of {} ({saved})", seconds(base - median), seconds(base));
        match one.predicted_s {
            Some((low, high)) => format!("{line}; the findings predict {} to {}", seconds(low), seconds(high)),
            None => line,
        }
    }
}

/// For machines.
///
/// # Errors
/// Never for what is measured.
pub fn json(outcome: &Outcome) -> serde_json::Result<String> {
    Ok(text::json(&serde_json::to_string_pretty(outcome)?) + "\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tried(settings: Settings, times: &[f64], base: &Measured) -> Tried {
        let mut one = Tried::new(settings, (Vec::new(), Some((0.4, 0.6))), vec!["data-sieving"]);
        let failed = times.is_empty().then(|| "exit status 1\n  MPI_ABORT".to_owned());
        one.add(&Measured { times: times.to_vec(), failed, hopeless: false }, base);
        one
    }

    fn outcome() -> Outcome {
        let base = Measured { times: vec![2.0, 2.1, 2.2], ..Measured::default() };
        let of = |key: &str, times: &[f64]| tried(Settings::hints(&[(key, "1")]), times, &base);
        let mut as_it_is = tried(Settings::default(), &base.times, &base);
        as_it_is.rules.clear();
        Outcome {
            command: "sim".to_owned(),
            variants: vec![as_it_is, of("a", &[1.5, 1.6, 1.4]), of("b", &[2.1, 1.9, 2.0]), of("c", &[])],
            best: Some(1),
            settings: Some(1),
            lines: vec!["export ROMIO_HINTS=x".to_owned()],
            untried: vec!["reread"],
        }
    }

    #[test]
    fn the_table_names_what_is_faster_and_how_to_set_it() {
        let expected = "\
variant   median  range             change                       for
as it is  2.10 s  2.00 s to 2.20 s
a=1       1.50 s  1.40 s to 1.60 s  -28.6%  faster in every run  data-sieving
b=1       2.00 s  1.90 s to 2.10 s   -4.8%  within noise         data-sieving
c=1            -                            exit status 1        data-sieving

No setting changes: reread

a=1 saves 600 ms of 2.10 s (28.6%); the findings predict 400 ms to 600 ms
  export ROMIO_HINTS=x
";
        assert_eq!(text(&outcome(), 200), expected);
        let mut fixed = outcome();
        fixed.variants[2].fixed = vec!["tiny-writes"];
        fixed.best = Some(2);
        let end = "\
fixed: tiny-writes saves 100 ms of 2.10 s (4.8%); the findings predict 400 ms to 600 ms
Without a change of the program: a=1 saves 600 ms of 2.10 s (28.6%); the findings predict 400 ms to 600 ms
  export ROMIO_HINTS=x
";
        assert!(text(&fixed, 200).ends_with(end), "{}", text(&fixed, 200));
        let nothing = Outcome { best: None, settings: None, untried: Vec::new(), ..outcome() };
        assert!(text(&nothing, 200).ends_with("\n\nNothing made it faster by more than its runs differ.\n"));
        let of = |untried: &[&'static str]| {
            let variants = outcome().variants.into_iter().take(1).collect();
            text(&Outcome { best: None, settings: None, variants, untried: untried.to_vec(), ..outcome() }, 200)
        };
        assert!(of(&["reread"]).starts_with("No setting changes what was found: reread\n"));
        assert_eq!(of(&[]).lines().count(), 1);
    }

    #[test]
    fn json_has_all_times() {
        let json: serde_json::Value = serde_json::from_str(&json(&outcome()).unwrap()).unwrap();
        assert_eq!(json["variants"][1]["times_s"], serde_json::json!([1.5, 1.6, 1.4]));
        assert_eq!(json["variants"][2]["noise"], "within-noise");
        assert_eq!(json["variants"][3]["failed"], "exit status 1\n  MPI_ABORT");
        assert_eq!((&json["best"], &json["lines"][0]), (&1.into(), &"export ROMIO_HINTS=x".into()));
    }
}
