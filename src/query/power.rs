//! What a device takes while it works and while it waits: from a file of the user, or by its class.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::base::usage::hint;
use crate::rows::Mount;

/// Watts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watts {
    pub active: f64,
    pub idle: f64,
}

/// Classes of devices, and what one of each takes. See docs/query.md for the sources.
pub const CLASSES: [(&str, Watts, &str); 4] = [
    ("hdd", Watts { active: 12.0, idle: 7.5 }, "Seagate Barracuda 7200.7, product manual, table 4"),
    ("ssd", Watts { active: 3.0, idle: 0.28 }, "Samsung 850 Pro 1 TB, measured by Tom's Hardware"),
    ("nvme", Watts { active: 7.8, idle: 0.07 }, "Samsung 970 EVO Plus, its power states 0 and 3"),
    ("stacked", Watts { active: 0.0, idle: 0.0 }, "the devices below it take the power"),
];

/// Names of devices that hand requests down to others, or to memory.
const STACKED: [&str; 6] = ["dm-", "md", "loop", "zram", "ram", "bcache"];

/// Watts by class and by name of a device.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    #[serde(default)]
    class: BTreeMap<String, Watts>,
    #[serde(default)]
    device: BTreeMap<String, Watts>,
}

impl Table {
    /// Reads `[class.hdd]` and `[device.sda]` with `active` and `idle` each.
    ///
    /// # Errors
    /// When it cannot be read, or is no such file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is no table of power", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let table: Self = toml::from_str(text)?;
        for name in table.class.keys() {
            if !CLASSES.iter().any(|(class, ..)| class == name) {
                let known = CLASSES.map(|(class, ..)| class);
                bail!("there is no class {name:?}{}: classes are {}", hint(name, known), known.join(", "));
            }
        }
        for (name, watts) in table.class.iter().chain(&table.device) {
            if !(watts.idle >= 0.0 && watts.active >= watts.idle && watts.active.is_finite()) {
                bail!("{name}: active and idle are watts, and idle is from 0 to active");
            }
        }
        Ok(table)
    }

    /// The class of a device and its watts.
    pub fn of(&self, device: &str, rotational: Option<bool>) -> (&'static str, Watts) {
        let class = class_of(device, rotational);
        let (name, default, _) = CLASSES.into_iter().find(|(name, ..)| *name == class).unwrap_or(CLASSES[0]);
        let watts = self.device.get(device).or_else(|| self.class.get(name)).copied();
        (name, watts.unwrap_or(default))
    }
}

fn class_of(device: &str, rotational: Option<bool>) -> &'static str {
    if STACKED.iter().any(|prefix| device.starts_with(prefix)) {
        "stacked"
    } else if device.starts_with("nvme") {
        "nvme"
    } else if rotational == Some(true) {
        "hdd"
    } else {
        "ssd"
    }
}

/// Which disks turn, by name.
#[derive(Debug, Default)]
pub struct Disks(BTreeMap<String, bool>);

impl Disks {
    pub fn mount(&mut self, mount: &Mount) {
        let names = [&mount.disk, &mount.device].into_iter().flatten();
        if let Some(rotational) = mount.rotational {
            self.0.extend(names.map(|name| (name.trim_start_matches("/dev/").to_owned(), rotational)));
        }
    }

    pub fn rotational(&self, device: &str) -> Option<bool> {
        self.0.get(device).copied()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn classes_by_name_and_by_what_turns() {
        let table = Table::default();
        let class = |name, turns| table.of(name, turns).0;
        assert_eq!(class("nvme0n1", Some(false)), "nvme");
        assert_eq!((class("sda", Some(true)), class("sda", Some(false)), class("vda", None)), ("hdd", "ssd", "ssd"));
        assert_eq!(class("dm-0", Some(true)), "stacked");
        assert!(CLASSES.iter().all(|(_, watts, source)| watts.active >= watts.idle && !source.is_empty()));
    }

    #[test]
    fn a_file_changes_classes_and_devices() {
        let table = Table::parse("[class.hdd]\nactive = 9\nidle = 5\n[device.sdb]\nactive = 1.5\nidle = 1").unwrap();
        assert_eq!(table.of("sda", Some(true)).1, Watts { active: 9.0, idle: 5.0 });
        assert_eq!(table.of("sdb", Some(true)).1, Watts { active: 1.5, idle: 1.0 });
        assert_eq!(table.of("sdc", Some(false)).1, CLASSES[1].1);
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for bad in [
            "[class.tape]\nactive = 1\nidle = 1",
            "[device.sda]\nactive = 1",
            "[device.sda]\nactive = 1\nidle = 2",
            "[device.sda]\nactive = -1\nidle = -2",
            "[device.sda]\nactive = nan\nidle = 0",
            "[device.sda]\nactive = 1\nidle = 0\nwatts = 3",
            "[disks]",
            "active = ",
        ] {
            assert!(Table::parse(bad).is_err(), "{bad}");
        }
    }
}
