//! Samples from the text that a metrics server sends: `OpenMetrics` 1.0, or the Prometheus text format before it.

use std::borrow::Cow;

/// One sample, without its time and its exemplar.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    pub name: &'a str,
    pub labels: Labels<'a>,
    pub value: f64,
}

impl Sample<'_> {
    /// The value of a label; to have none and to be empty is the same.
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(of, _)| *of == name).map_or("", |(_, value)| value)
    }
}

/// Names and values.
pub type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// All samples of a text, line by line.
pub fn samples(text: &str) -> impl Iterator<Item = Result<Sample<'_>, String>> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim_matches([' ', '\t', '\r'])));
    let samples = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    samples.map(|(number, line)| sample(line).ok_or_else(|| format!("line {number} is no sample of a metric")))
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    let (name, rest) = taken(line, is_name);
    if name.is_empty() {
        return None;
    }
    let rest = blank(rest);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    // A time and an exemplar may follow.
    let (value, _) = taken(blank(rest), |c| !matches!(c, ' ' | '\t'));
    Some(Sample { name, labels, value: value.parse().ok()? })
}

/// What is up to the closing brace, and what comes after it.
fn labels(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = blank(rest);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = taken(rest, |c| c.is_ascii_alphanumeric() || c == '_');
        let quoted = blank(blank(after).strip_prefix('=')?).strip_prefix('"')?;
        let (value, after) = value(quoted)?;
        if name.is_empty() {
            return None;
        }
        labels.push((name, value));
        rest = blank(after);
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

/// The value of a label up to its closing quote, and what comes after that.
fn value(quoted: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = quoted.find(['"', '\\'])?;
    if quoted[end..].starts_with('"') {
        return Some((Cow::Borrowed(&quoted[..end]), &quoted[end + 1..]));
    }
    let mut value = quoted[..end].to_owned();
    let mut chars = quoted[end..].char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Cow::Owned(value), &quoted[end + at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                c @ ('"' | '\\') => value.push(c),
                // As Prometheus has it.
                c => value.extend(['\\', c]),
            },
            c => value.push(c),
        }
    }
    None
}

/// The longest beginning of such characters, and the rest.
fn taken(text: &str, such: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !such(c)).unwrap_or(text.len()))
}

fn blank(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::family::{Family, Type, family};
    use crate::metrics::text::{Format, Text};
    use proptest::prelude::*;

    const PROBES: Family = family("iotrace_probes", Type::Gauge, "", "layer, status", "Verdicts on probes");

    /// Name, labels and value.
    type Owned = (String, Vec<(String, String)>, f64);

    fn one(line: &str) -> Option<Owned> {
        let sample = sample(line)?;
        let labels = sample.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into_owned()));
        Some((sample.name.to_owned(), labels.collect(), sample.value))
    }

    #[test]
    fn names_labels_and_values() {
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(one("up 1"), Some(("up".into(), vec![], 1.0)));
        let all = one("a:b_total { x=\"1\" , y = \"}, #\\\"\\\\\\n\", } -2.5e3 1700000000 # {trace=\"z\"} 1");
        assert_eq!(all, Some(("a:b_total".into(), vec![label("x", "1"), label("y", "}, #\"\\\n")], -2500.0)));
        assert_eq!(one("a{} +Inf").map(|s| s.2), Some(f64::INFINITY));
        assert!(one("a NaN").is_some_and(|s| s.2.is_nan()));
        for wrong in
            ["a", "a{", "a{x}", "a{x=\"1\" y=\"2\"} 1", "a{x=1} 1", "a{x=\"1} 1", "{x=\"1\"} 1", "<html>", "é 1"]
        {
            assert_eq!(one(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn comments_are_none_and_errors_have_their_line() {
        let text = "# HELP a {\n\na 1\r\n# EOF\nb{\n";
        let read: Vec<Result<f64, String>> = samples(text).map(|s| s.map(|s| s.value)).collect();
        assert_eq!(read, [Ok(1.0), Err("line 5 is no sample of a metric".to_owned())]);
    }

    proptest! {
        #[test]
        fn what_the_server_writes_is_read_as_it_was(layer in ".*", status in ".*", value in any::<f64>()) {
            let mut text = Text::new(Format::OpenMetrics);
            text.family(&PROBES);
            text.sample(&[("layer", &layer), ("status", &status)], value);
            let text = text.finish();
            let read: Vec<_> = samples(&text).collect::<Result<_, _>>().unwrap_or_default();
            prop_assert_eq!(read.len(), 1, "{}", text);
            prop_assert_eq!((read[0].label("layer"), read[0].label("status")), (&*layer, &*status));
            prop_assert!(read[0].value.to_bits() == value.to_bits() || value.is_nan());
        }

        #[test]
        fn no_text_is_too_strange(text in "(.|\n)*") {
            samples(&text).for_each(drop);
        }
    }
}
