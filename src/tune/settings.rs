//! What can be set for a program from outside: variables, hints for ROMIO, and how far the kernel reads ahead.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::base::text::quoted;

/// Names the file with hints; it has a key and a value on each line (ROMIO User's Guide, section "Hints").
pub const ROMIO_HINTS: &str = "ROMIO_HINTS";

/// Settings of one try; none: the program as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Variables of the environment; `None`: one that is to be unset.
    pub environment: BTreeMap<String, Option<String>>,
    /// Hints for ROMIO.
    pub hints: BTreeMap<String, String>,
    /// KiB that the kernel reads ahead, by the number of a device: `8:0`.
    pub read_ahead_kib: BTreeMap<String, u64>,
}

impl Settings {
    pub fn variable(name: &str, value: &str) -> Self {
        Self { environment: BTreeMap::from([(name.to_owned(), Some(value.to_owned()))]), ..Self::default() }
    }

    pub fn unset(name: &str) -> Self {
        Self { environment: BTreeMap::from([(name.to_owned(), None)]), ..Self::default() }
    }

    pub fn hints<V: ToString>(hints: &[(&str, V)]) -> Self {
        let hints = hints.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())).collect();
        Self { hints, ..Self::default() }
    }

    /// Both; nothing where they set one name to different values.
    pub fn and(&self, other: &Self) -> Option<Self> {
        Some(Self {
            environment: union(&self.environment, &other.environment)?,
            hints: union(&self.hints, &other.hints)?,
            read_ahead_kib: union(&self.read_ahead_kib, &other.read_ahead_kib)?,
        })
    }

    /// On one line, for people.
    pub fn description(&self) -> String {
        let variables = self.environment.iter().map(|(name, value)| match value {
            Some(value) => format!("{name}={value}"),
            None => format!("{name} unset"),
        });
        let hints = self.hints.iter().map(|(key, value)| format!("{key}={value}"));
        let ahead = self.read_ahead_kib.iter().map(|(device, kib)| format!("read-ahead of {device} {kib} KiB"));
        let all: Vec<String> = variables.chain(hints).chain(ahead).collect();
        if all.is_empty() { "as it is".to_owned() } else { all.join(", ") }
    }

    /// Lines of a shell that set it, with hints in that file.
    pub fn lines(&self, hints: &Path) -> Vec<String> {
        let variables = self.environment.iter().map(|(name, value)| match value {
            Some(value) => format!("export {name}={}", quoted(Path::new(value))),
            None => format!("unset {name}"),
        });
        let file = (!self.hints.is_empty()).then(|| format!("export {ROMIO_HINTS}={}", quoted(hints)));
        let ahead =
            |(device, kib): (&String, &u64)| format!("echo {kib} | sudo tee /sys/class/bdi/{device}/read_ahead_kb");
        variables.chain(file).chain(self.read_ahead_kib.iter().map(ahead)).collect()
    }

    /// The file of hints: those of a file that the user has already, where these do not set the same.
    pub fn hints_file(&self, before: &str) -> String {
        let key = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let kept = before.lines().filter(|line| key(line).is_some_and(|key| !self.hints.contains_key(&key)));
        let own = self.hints.iter().map(|(key, value)| format!("{key} {value}"));
        kept.map(str::to_owned).chain(own).map(|line| line + "\n").collect()
    }
}

fn union<V: Clone + PartialEq>(a: &BTreeMap<String, V>, b: &BTreeMap<String, V>) -> Option<BTreeMap<String, V>> {
    let agree = a.iter().all(|(key, value)| b.get(key).is_none_or(|other| other == value));
    agree.then(|| a.iter().chain(b).map(|(key, value)| (key.clone(), value.clone())).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn all() -> Settings {
        let one = Settings::variable("OMPI_MCA_io", "^ompio").and(&Settings::unset("PYTHONUNBUFFERED")).unwrap();
        let mut all = one.and(&Settings::hints(&[("cb_nodes", 4)])).unwrap();
        all.read_ahead_kib.insert("8:0".into(), 1024);
        all
    }

    #[test]
    fn settings_are_lines_of_a_shell() {
        let expected = [
            "export OMPI_MCA_io='^ompio'",
            "unset PYTHONUNBUFFERED",
            "export ROMIO_HINTS='/home/a b/x.hints'",
            "echo 1024 | sudo tee /sys/class/bdi/8:0/read_ahead_kb",
        ];
        assert_eq!(all().lines(Path::new("/home/a b/x.hints")), expected);
        let expected = "OMPI_MCA_io=^ompio, PYTHONUNBUFFERED unset, cb_nodes=4, read-ahead of 8:0 1024 KiB";
        assert_eq!(all().description(), expected);
        assert!(Settings::default().lines(Path::new("x")).is_empty());
        assert_eq!(Settings::default().description(), "as it is");
    }

    #[test]
    fn settings_go_together_unless_they_contradict_each_other() {
        assert_eq!(all().and(&Settings::hints(&[("cb_nodes", 2)])), None);
        assert_eq!(all().and(&Settings::hints(&[("cb_nodes", 4)])), Some(all()));
    }

    #[test]
    fn hints_of_the_user_stay() {
        let before = "romio_cb_read enable\ncb_nodes 1\n\n";
        assert_eq!(all().hints_file(before), "romio_cb_read enable\ncb_nodes 4\n");
    }

    #[test]
    fn they_come_back_from_json() {
        let json = serde_json::to_string(&all()).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), all());
    }
}
