//! The trial before a trace: what the kernel allows, and then what hooks cost there, beside whatever else begins.

use crate::loader::kernel::calibrate::{self, Fixed};
use crate::loader::kernel::{Capabilities, known_or_tried};
use anyhow::{Context as _, anyhow, bail};
use std::thread::JoinHandle;

/// What the kernel allows, and what hooks cost, found out by threads of their own.
pub struct Trial {
    thread: Option<JoinHandle<Result<Capabilities, String>>>,
    libraries: bool,
    found: Option<Capabilities>,
    measures: Option<JoinHandle<anyhow::Result<Fixed>>>,
}

impl Trial {
    /// Tries what a trace needs: of the kinds of library probes none after the first one that works. `libraries`: their
    /// functions are traced.
    ///
    /// # Errors
    /// When there can be no thread for it.
    pub fn start(libraries: bool) -> anyhow::Result<Self> {
        let thread = std::thread::Builder::new().name("trial".into()).spawn(known_or_tried);
        Ok(Self { thread: Some(thread.context("trial of the kernel")?), libraries, found: None, measures: None })
    }

    /// Waits for it.
    ///
    /// # Errors
    /// When the kernel does not allow what every trace needs.
    pub fn found(&mut self) -> anyhow::Result<&Capabilities> {
        if let Some(thread) = self.thread.take() {
            let found = thread.join().map_err(|_| {
                anyhow!("the trial of the kernel panicked: a bug of iotrace-bpf; please report the lines above")
            })?;
            let caps = found.map_err(|e| anyhow!("{e}"))?;
            if let Err(why) = &caps.tp_btf {
                bail!("this kernel refuses tracepoint programs (tp_btf): {why}; see iotrace-bpf doctor");
            }
            let tier = caps.lib_tier().filter(|_| self.libraries);
            let measure = std::thread::Builder::new().name("calibrate".into()).spawn(move || calibrate::fixed(tier));
            self.measures = Some(measure.context("calibration")?);
            self.found = Some(caps);
        }
        self.found.as_ref().context("the trial of what this kernel allows has failed; `iotrace-bpf doctor` shows why")
    }

    /// What hooks cost, measured since it is known what the kernel allows. Waits for it.
    ///
    /// # Errors
    /// When it could not be measured.
    pub fn fixed(&mut self) -> anyhow::Result<Fixed> {
        self.found()?;
        let thread = self.measures.take().context("the cost of hooks was asked for already")?;
        thread
            .join()
            .map_err(|_| anyhow!("calibration panicked: a bug of iotrace-bpf; please report the lines above"))?
            .context("measuring what hooks cost")
    }
}
