//! `--detail`: which calls are recorded one by one although they are summed up.

use crate::analysis::findings::{Severity, Which};
use crate::base::usage::hint;
use crate::vocabulary::Layer;
use glob::Pattern;
use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

/// One of `--detail`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// Calls that take longer than this, or than is usual, with all that runs inside them.
    Slow { layer: Option<Layer>, time: Option<Duration> },
    /// All of a rank.
    Rank(i32),
    /// All on files with such a path.
    File(Pattern),
    /// All of the processes that such a finding is about, while it holds.
    Finding(Which),
    /// All of the process that waits most, as long as it does.
    Critical,
}

impl FromStr for Detail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("slow", None) => Ok(Self::Slow { layer: None, time: None }),
            ("slow", Some(value)) => {
                let (layer, time) = crate::cli::slow(value)?;
                Ok(Self::Slow { layer, time: Some(time) })
            }
            ("rank", Some(rank)) => rank
                .parse()
                .ok()
                .filter(|n| *n >= 0)
                .map(Self::Rank)
                .ok_or_else(|| format!("expected the number of a rank, from 0: rank=3, not {rank:?}")),
            ("file", Some(pattern)) if !pattern.is_empty() => {
                Pattern::new(pattern).map(Self::File).map_err(|e| format!("{pattern}: {e}"))
            }
            ("critical", None) => Ok(Self::Critical),
            ("finding", None) => Ok(Self::Finding(Which::Severity(Severity::Warn))),
            ("finding", Some(which)) => Ok(Self::Finding(crate::cli::which(which)?)),
            _ => Err(format!(
                "expected slow, slow=TIME, slow=LAYER:TIME, rank=N, file=GLOB, critical, finding, finding=RULE or \
                 finding=critical{}",
                hint(name, ["slow", "rank", "file", "critical", "finding"])
            )),
        }
    }
}

impl Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow { layer: None, time: None } => write!(f, "slow"),
            Self::Slow { layer, time } => {
                let layer = layer.map_or_else(String::new, |layer| format!("{}:", layer.name()));
                write!(f, "slow={layer}{:?}", time.unwrap_or_default())
            }
            Self::Rank(rank) => write!(f, "rank={rank}"),
            Self::File(pattern) => write!(f, "file={pattern}"),
            Self::Critical => write!(f, "critical"),
            Self::Finding(Which::Rule(rule)) => write!(f, "finding={rule}"),
            Self::Finding(Which::Severity(severity)) => write!(f, "finding={}", severity.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_and_printed_again() {
        for text in [
            "slow",
            "slow=20ms",
            "slow=hdf5:5ms",
            "rank=3",
            "file=/data/*.h5",
            "critical",
            "finding=lock-wait",
            "finding=warn",
        ] {
            assert_eq!(text.parse::<Detail>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "fast",
            "slow=",
            "slow=disk:1s",
            "slow=soon",
            "rank=-1",
            "rank=x",
            "rank",
            "file=",
            "file=[a",
            "finding=",
            "finding=locks",
            "critical=3",
            "slow=20",
        ] {
            assert!(wrong.parse::<Detail>().is_err(), "{wrong}");
        }
    }
}
