//! What is to have been different, as the command line has it.

use std::fmt;

use crate::base::usage::list;

/// Devices of any name.
const ALL: &str = "all";
/// The greatest change of a device.
const FACTOR_MAX: f64 = 1e6;

/// A device that is so many times as fast.
#[derive(Debug, Clone, PartialEq)]
pub struct Faster {
    /// `None`: all devices.
    pub name: Option<String>,
    pub factor: f64,
}

impl Faster {
    /// `NAME=2x`, `all=0.5x`.
    ///
    /// # Errors
    /// Names the form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = || format!("{text:?} is no device with a factor: sda=2x is twice as fast, all=0.5x half as fast");
        let (name, factor) = text.split_once('=').ok_or_else(form)?;
        let name = name.strip_prefix("/dev/").unwrap_or(name);
        let factor: f64 = factor.strip_suffix('x').and_then(|factor| factor.parse().ok()).ok_or_else(form)?;
        if name.is_empty() || !(1.0 / FACTOR_MAX..=FACTOR_MAX).contains(&factor) {
            return Err(form());
        }
        Ok(Self { name: (name != ALL).then(|| name.to_owned()), factor })
    }
}

/// What reads find in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    Nothing,
    Everything,
}

impl Cache {
    /// `0` or `all`.
    ///
    /// # Errors
    /// Names both.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "0" => Ok(Self::Nothing),
            ALL => Ok(Self::Everything),
            _ => Err("0: each read comes from the device; all: each read is in the page cache".to_owned()),
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// So many ranks write the bytes that all write.
    RanksWriting(usize),
    Cache(Cache),
    /// Nothing waits until data is on a device.
    SyncOff,
    Device(Faster),
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RanksWriting(ranks) => write!(f, "--ranks-writing {ranks}"),
            Self::Cache(Cache::Nothing) => write!(f, "--cache 0"),
            Self::Cache(Cache::Everything) => write!(f, "--cache all"),
            Self::SyncOff => write!(f, "--sync off"),
            Self::Device(Faster { name, factor }) => {
                write!(f, "--device {}={factor}x", name.as_deref().unwrap_or(ALL))
            }
        }
    }
}

/// Conditions in the order in which they apply: what ranks do, what of it waits, and then how long devices take.
///
/// # Errors
/// When there is none, or a device has two.
pub fn conditions(
    ranks_writing: Option<usize>,
    cache: Option<Cache>,
    sync_off: bool,
    devices: &[Faster],
) -> Result<Vec<Condition>, String> {
    let all = devices.iter().any(|device| device.name.is_none());
    let twice = |at: usize| devices[..at].iter().any(|before| before.name == devices[at].name);
    if devices.len() > 1 && (all || (0..devices.len()).any(twice)) {
        return Err("give --device once for each device, or once for all".to_owned());
    }
    let ranks = ranks_writing.map(Condition::RanksWriting);
    let cache = cache.map(Condition::Cache);
    let sync = sync_off.then_some(Condition::SyncOff);
    let devices = devices.iter().cloned().map(Condition::Device);
    let all: Vec<Condition> = ranks.into_iter().chain(cache).chain(sync).chain(devices).collect();
    if all.is_empty() {
        let options = ["--device NAME=2x", "--ranks-writing N", "--sync off", "--cache 0", "--cache all"];
        return Err(format!("what is to have been different? {}", list(options)));
    }
    Ok(all)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn device(text: &str) -> Faster {
        Faster::parse(text).unwrap()
    }

    #[test]
    fn a_device_has_a_name_and_a_factor() {
        assert_eq!(device("sda=2x"), Faster { name: Some("sda".to_owned()), factor: 2.0 });
        assert_eq!(device("/dev/loop0=0.5x").name.as_deref(), Some("loop0"));
        assert_eq!(device("all=1x"), Faster { name: None, factor: 1.0 });
        for wrong in ["sda", "sda=2", "=2x", "sda=x", "sda=0x", "sda=-1x", "sda=NaNx", "sda=infx", "sda=1e9x"] {
            assert!(Faster::parse(wrong).unwrap_err().contains("sda=2x"), "{wrong}");
        }
    }

    #[test]
    fn conditions_have_one_order_and_are_at_least_one() {
        let all = conditions(Some(4), Some(Cache::Nothing), true, &[device("sda=2x"), device("sdb=0.5x")]).unwrap();
        let words: Vec<String> = all.iter().map(ToString::to_string).collect();
        let wanted = ["--ranks-writing 4", "--cache 0", "--sync off", "--device sda=2x", "--device sdb=0.5x"];
        assert_eq!(words, wanted);
        assert!(conditions(None, None, false, &[]).unwrap_err().contains("--sync off"));
        for devices in [["sda=2x", "sda=3x"], ["all=2x", "sda=3x"]] {
            assert!(conditions(None, None, false, &devices.map(device)).is_err(), "{devices:?}");
        }
    }
}
