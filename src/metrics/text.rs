//! The text that is served: `OpenMetrics` 1.0, or what Prometheus read before that.

use std::fmt::{self, Display};

use crate::metrics::counts::{BUCKETS, Durations};
use crate::metrics::family::{Family, Type};

/// The two text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    OpenMetrics,
    /// Version 0.0.4 of the Prometheus text format: no units, no end, and families of totals have the names of their samples.
    Prometheus,
}

impl Format {
    /// What a client wants that sends this `Accept`: `OpenMetrics`, unless it asks for text and does not know of that.
    pub fn accepted(accept: &str) -> Self {
        let accept = accept.to_ascii_lowercase();
        let asks = |what: &str| accept.contains(what);
        if !asks("application/openmetrics-text") && (asks("text/plain") || asks("text/html")) {
            Self::Prometheus
        } else {
            Self::OpenMetrics
        }
    }

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Upper bounds of the buckets in seconds, as `OpenMetrics` wants such numbers written: 1 us times powers of two.
const LE: [&str; BUCKETS] = [
    "1e-06",
    "2e-06",
    "4e-06",
    "8e-06",
    "1.6e-05",
    "3.2e-05",
    "6.4e-05",
    "0.000128",
    "0.000256",
    "0.000512",
    "0.001024",
    "0.002048",
    "0.004096",
    "0.008192",
    "0.016384",
    "0.032768",
    "0.065536",
    "0.131072",
    "0.262144",
    "0.524288",
    "1.048576",
    "2.097152",
    "4.194304",
    "8.388608",
    "16.777216",
    "33.554432",
    "67.108864",
    "134.217728",
];

/// Nanoseconds, shown as seconds with all their digits.
#[derive(Debug, Clone, Copy)]
pub struct Seconds(pub u128);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// Names and values.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// The text in the making.
pub struct Text {
    format: Format,
    out: String,
    family: Option<&'static Family>,
}

impl Text {
    pub const fn new(format: Format) -> Self {
        Self { format, out: String::new(), family: None }
    }

    /// What comes next is of this family. All of a family stands together.
    pub fn family(&mut self, family: &'static Family) {
        let Family { name, help, unit, .. } = family;
        let open = self.format == Format::OpenMetrics;
        let (kind, suffix) = match (family.kind, open) {
            (Type::Counter, true) => ("counter", ""),
            (Type::Counter, false) => ("counter", "_total"),
            (Type::Gauge, _) => ("gauge", ""),
            (Type::Histogram, _) => ("histogram", ""),
            (Type::Info, true) => ("info", ""),
            (Type::Info, false) => ("gauge", "_info"),
        };
        self.out += &format!("# TYPE {name}{suffix} {kind}\n");
        if open && !unit.is_empty() {
            self.out += &format!("# UNIT {name}{suffix} {unit}\n");
        }
        self.out += &format!("# HELP {name}{suffix} {}\n", escape(help));
        self.family = Some(family);
    }

    /// One sample. Labels without a value are left out: to have none and to be empty is the same.
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        let suffix = match self.family.map(|f| f.kind) {
            Some(Type::Counter) => "_total",
            Some(Type::Info) => "_info",
            _ => "",
        };
        self.line(suffix, labels, None, value);
    }

    /// The buckets, the sum and the number of a histogram.
    pub fn histogram(&mut self, labels: Labels<'_>, durations: &Durations) {
        let mut below = 0;
        for (le, n) in LE.iter().zip(durations.buckets) {
            below += n;
            self.line("_bucket", labels, Some(le), below);
        }
        self.line("_bucket", labels, Some("+Inf"), durations.count);
        self.line("_count", labels, None, durations.count);
        self.line("_sum", labels, None, Seconds(durations.sum_ns));
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, le: Option<&str>, value: impl Display) {
        self.out += self.family.map_or("", |f| f.name);
        self.out += suffix;
        let mut before = '{';
        for (name, value) in labels.iter().copied().chain(le.map(|le| ("le", le))).filter(|(_, v)| !v.is_empty()) {
            self.out.push(before);
            self.out += &format!("{name}=\"{}\"", escape(value));
            before = ',';
        }
        if before == ',' {
            self.out.push('}');
        }
        self.out += &format!(" {value}\n");
    }

    /// All of it.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.out += "# EOF\n";
        }
        self.out
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped += "\\\\",
            '"' => escaped += "\\\"",
            '\n' => escaped += "\\n",
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::family::family;

    const BUILD: Family = family("iotrace_build", Type::Info, "", "version", "The tracer");
    const BYTES: Family = family("iotrace_bytes", Type::Counter, "bytes", "layer, fs", "Bytes moved");
    const PROBES: Family = family("iotrace_probes", Type::Gauge, "", "layer", "Verdicts on probes");
    const OP_DURATION: Family =
        family("iotrace_op_duration_seconds", Type::Histogram, "seconds", "op", "Calls by duration");

    fn text(format: Format) -> String {
        let mut text = Text::new(format);
        text.family(&BUILD);
        text.sample(&[("version", "1")], 1);
        text.family(&BYTES);
        text.sample(&[("layer", "a\"b\\c\nd"), ("fs", "")], 12);
        text.sample(&[], 3);
        text.family(&PROBES);
        text.sample(&[("layer", "vfs")], 1.5);
        text.finish()
    }

    fn samples(text: &str) -> Vec<&str> {
        text.lines().filter(|l| !l.starts_with('#')).collect()
    }

    #[test]
    fn samples_are_the_same_in_both_formats_and_their_comments_differ() {
        let (open, old) = (text(Format::OpenMetrics), text(Format::Prometheus));
        let expected = [
            "iotrace_build_info{version=\"1\"} 1",
            "iotrace_bytes_total{layer=\"a\\\"b\\\\c\\nd\"} 12",
            "iotrace_bytes_total 3",
            "iotrace_probes{layer=\"vfs\"} 1.5",
        ];
        assert_eq!(samples(&open), expected);
        assert_eq!(samples(&old), expected);
        let comments = |text: &str| -> Vec<String> {
            text.lines().filter(|l| l.starts_with('#') && !l.contains("HELP")).map(str::to_owned).collect()
        };
        let of_open = [
            "# TYPE iotrace_build info",
            "# TYPE iotrace_bytes counter",
            "# UNIT iotrace_bytes bytes",
            "# TYPE iotrace_probes gauge",
            "# EOF",
        ];
        assert_eq!(comments(&open), of_open);
        assert!(open.ends_with("# EOF\n"));
        let of_old =
            ["# TYPE iotrace_build_info gauge", "# TYPE iotrace_bytes_total counter", "# TYPE iotrace_probes gauge"];
        assert_eq!(comments(&old), of_old);
    }

    #[test]
    fn buckets_are_cumulative_and_exact_at_their_bounds() {
        let mut durations = Durations::default();
        for ns in [0, 1000, 1001, 2000, 134_217_728_000, 134_217_728_001, i64::MAX, -5] {
            durations.add(ns);
        }
        let mut text = Text::new(Format::OpenMetrics);
        text.family(&OP_DURATION);
        text.histogram(&[("op", "x")], &durations);
        let text = text.finish();
        let value = |of: &str| {
            let found = samples(&text).into_iter().find_map(|l| l.strip_prefix(of)?.strip_prefix(' '));
            found.unwrap_or_else(|| panic!("{of}: {text}")).to_owned()
        };
        let bucket = |le: &str| value(&format!("iotrace_op_duration_seconds_bucket{{op=\"x\",le=\"{le}\"}}"));
        assert_eq!(["1e-06", "2e-06", "67.108864", "134.217728", "+Inf"].map(bucket), ["3", "5", "5", "6", "8"]);
        assert_eq!(value("iotrace_op_duration_seconds_count{op=\"x\"}"), "8");
        assert_eq!(value("iotrace_op_duration_seconds_sum{op=\"x\"}"), "9223372305.290235809");
    }

    #[test]
    fn bounds_are_the_powers_of_two_that_durations_are_counted_by() {
        for (at, le) in LE.iter().enumerate() {
            let ns = le.parse::<f64>().unwrap() * 1e9;
            assert!((ns - (1000_u64 << at) as f64).abs() < 0.5, "{le}");
        }
    }

    #[test]
    fn a_client_that_asks_for_text_and_not_for_openmetrics_gets_text() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for accept in [prometheus, "", "*/*", "application/OpenMetrics-text"] {
            assert_eq!(Format::accepted(accept), Format::OpenMetrics, "{accept}");
        }
        for accept in ["text/plain", "text/html,application/xhtml+xml,*/*;q=0.8", "text/plain;version=0.0.4"] {
            assert_eq!(Format::accepted(accept), Format::Prometheus, "{accept}");
        }
    }
}
