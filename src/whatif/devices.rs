//! Which device calls wait for, and how long each device was busy.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use crate::HashMap;
use crate::analysis::findings::groups::busy::Busy;
use crate::analysis::trace::source::Source;
use crate::base::usage::{bail, hint, list};
use crate::rows::{Block, File, Mount};

/// The device of a mount: its number, and the names of that and of the disk that it is on.
#[derive(Debug, Clone, Default)]
struct MountedDevice {
    dev: i64,
    names: Vec<String>,
}

/// Devices of one node, and the files on them.
#[derive(Default)]
pub struct Devices {
    names: BTreeMap<i32, String>,
    /// Devices that got requests from one that stands on them.
    below: BTreeSet<(i32, i32)>,
    busy: BTreeMap<i32, Busy>,
    /// The mount of a file, and the number of the device that has its data, if that is another one (overlayfs).
    files: HashMap<i32, (Option<i32>, Option<i64>)>,
    mounts: BTreeMap<i32, MountedDevice>,
    /// Numbers are those of one node.
    one_node: bool,
    pub requests: i64,
}

impl Devices {
    pub fn read(source: &mut dyn Source) -> Result<Self> {
        let mut devices = Self { one_node: source.nodes().len() < 2, ..Self::default() };
        source.mounts(&mut |mount| {
            devices.mount(mount);
            Ok(())
        })?;
        source.files(&mut |file| {
            devices.file(file);
            Ok(())
        })?;
        source.blocks(&mut |block| {
            devices.block(block);
            Ok(())
        })?;
        Ok(devices)
    }

    fn mount(&mut self, mount: &Mount) {
        let names = mount.device.iter().chain(&mount.disk);
        let names = names.map(|name| name.strip_prefix("/dev/").unwrap_or(name).to_owned()).collect();
        self.mounts.insert(mount.mount_id, MountedDevice { dev: mount.dev, names });
    }

    fn file(&mut self, file: &File) {
        self.files.insert(file.file_id, (file.mount_id, file.data_dev));
    }

    fn block(&mut self, block: &Block) {
        self.requests = self.requests.saturating_add(1);
        self.names.entry(block.dev).or_insert_with(|| block.device_name());
        if let Some(upper) = block.upper_dev {
            self.below.insert((block.dev, upper));
        }
        let end = block.issue_ns.saturating_add(block.dur_ns.unwrap_or(0));
        self.busy.entry(block.dev).or_default().add(block.issue_ns, end);
    }

    /// Is there a device of that name?
    ///
    /// # Errors
    /// Names those that there are.
    pub fn check(&self, name: &str) -> Result<()> {
        let mounted = self.mounts.values().flat_map(|mount| &mount.names);
        let known: BTreeSet<&str> = self.names.values().chain(mounted).map(String::as_str).collect();
        if !known.contains(name) {
            let there = if known.is_empty() { "none".to_owned() } else { list(&known) };
            bail!("the trace has no device {name}{}; it has {there}", hint(name, &known));
        }
        ensure!(
            self.one_node,
            "devices of several nodes have the same names: give all=..., or the dataset of one node"
        );
        Ok(())
    }

    /// Is a file on this device? `None`: that is not known.
    pub fn has(&self, device: Option<&str>, file: Option<i32>) -> Option<bool> {
        let Some(device) = device else { return Some(true) };
        let only = self.names.values().all(|name| name == device);
        match file.and_then(|file| self.mount_of(file)) {
            Some(mount) => Some(mount.names.iter().any(|name| name == device) || self.stands_on(mount, device)),
            None => (only && !self.names.is_empty()).then_some(true),
        }
    }

    fn mount_of(&self, file: i32) -> Option<&MountedDevice> {
        let (mount, data) = self.files.get(&file)?;
        match data {
            Some(dev) => self.mounts.values().find(|mount| mount.dev == *dev && !mount.names.is_empty()),
            None => self.mounts.get(&(*mount)?),
        }
    }

    /// Does a mount's device hand its requests down to this one, over others or directly?
    fn stands_on(&self, mount: &MountedDevice, device: &str) -> bool {
        let mut reached: BTreeSet<i32> =
            self.names.iter().filter(|(_, name)| mount.names.contains(name)).map(|(dev, _)| *dev).collect();
        loop {
            let more: Vec<i32> = self.below.iter().filter(|(_, upper)| reached.contains(upper)).map(|b| b.0).collect();
            let before = reached.len();
            reached.extend(more);
            if reached.len() == before {
                return reached.iter().any(|dev| self.names.get(dev).is_some_and(|name| name == device));
            }
        }
    }

    /// Seconds in which the device had a request; of all devices, the one that had for longest.
    pub fn busy_s(&self, device: Option<&str>) -> f64 {
        let named = |dev: &i32| device.is_none_or(|device| self.names.get(dev).is_some_and(|name| name == device));
        let of = |busy: &Busy| busy.clone().wall() as f64 / 1e9;
        self.busy.iter().filter(|(dev, _)| named(dev)).map(|(_, busy)| of(busy)).fold(0.0, f64::max)
    }
}
