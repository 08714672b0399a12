//! `--trigger`: what asks the flight recorder for a dataset.

use crate::analysis::findings::{Severity, Which};
use crate::base::text;
use crate::base::usage::hint;
use crate::vocabulary::Layer;
use nix::errno::Errno;
use std::str::FromStr;
use std::time::Duration;

/// One of `--trigger`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A call, or a request of a device, took that long.
    Slow { layer: Option<Layer>, time: Duration },
    /// A call failed, with this error or any that is no everyday one.
    Error(Option<Errno>),
    /// A call has not returned for that long.
    Stuck(Duration),
    /// A signal ended a process.
    Crash,
    /// A call took that long, and was very slow against those of earlier runs.
    VerySlow(Duration),
    /// A rule found something that it had not found before.
    Finding(Which),
}

impl FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("slow", Some(value)) => {
                let (layer, time) = crate::cli::slow(value)?;
                Ok(Self::Slow { layer, time })
            }
            ("error", None) => Ok(Self::Error(None)),
            ("error", Some(name)) => {
                // Numbers of errors end well before this one.
                let all = (1..200).map(|number: i16| (text::errno(number), Errno::from_raw(number.into())));
                let all: Vec<(String, Errno)> = all.filter(|(_, e)| *e != Errno::UnknownErrno).collect();
                let known = all.iter().find(|(known, _)| known == name);
                known.map(|(_, e)| Self::Error(Some(*e))).ok_or_else(|| {
                    let similar = hint(name, all.iter().map(|(known, _)| known));
                    format!("{name:?} is not the name of an error of errno(3), such as EIO or ENOSPC{similar}")
                })
            }
            ("stuck", Some(time)) => Ok(Self::Stuck(crate::cli::duration(time)?)),
            ("very-slow", Some(time)) => Ok(Self::VerySlow(crate::cli::duration(time)?)),
            ("crash", None) => Ok(Self::Crash),
            ("finding", None) => Ok(Self::Finding(Which::Severity(Severity::Warn))),
            ("finding", Some(which)) => Ok(Self::Finding(crate::cli::which(which)?)),
            _ => Err(format!(
                "triggers are: slow=TIME, slow=LAYER:TIME, error, error=NAME, stuck=TIME, crash, finding, \
                 finding=RULE, finding=critical, very-slow=TIME{}",
                hint(name, ["slow", "error", "stuck", "crash", "finding", "very-slow"])
            )),
        }
    }
}
