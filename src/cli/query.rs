//! Options of `query`.

use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

use clap::Args;

use crate::cli::values::layer;
use crate::query::options::{By, Format, Metric, Query, like, numbers, ranks, window};
use crate::summary::filter::Filter;
use crate::vocabulary::Layer;

/// What is asked, of which calls.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// The dataset, or a directory with those of several nodes or periods
    pub dir: PathBuf,
    /// The figure
    #[arg(long, value_enum)]
    pub metric: Metric,
    /// What calls of each layer are put together by: rank, file, op, device, phase, time=100ms
    #[arg(long, value_name = "WHAT", default_value = "layer")]
    by: By,
    /// Calls of these layers; block: requests to devices
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = layer)]
    layer: Vec<Layer>,
    /// Calls of these functions: patterns with * and ?
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    op: Vec<String>,
    /// Calls of these ranks: 0-3,7
    #[arg(long, value_name = "LIST", value_parser = ranks)]
    ranks: Option<String>,
    /// Of the calls that fulfil all other conditions these of each rank (of each process without one), counted from 1 in order
    /// of their start: 100-200
    #[arg(long, value_name = "FIRST-LAST", value_parser = numbers)]
    calls: Option<RangeInclusive<usize>>,
    /// Calls on files whose path matches: a pattern with * and ?; without a / in it, of the last part
    #[arg(long, value_name = "GLOB")]
    file: Option<String>,
    /// Requests to this device
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Calls inside this function, which was traced with --phase
    #[arg(long, value_name = "FUNCTION")]
    phase: Option<String>,
    /// Calls inside a call of this function, on its thread: `H5Dwrite`
    #[arg(long, value_name = "FUNCTION")]
    inside: Option<String>,
    /// Calls that start in this time since the start of the trace: 1s-2.5s, 100ms- or -2s
    #[arg(long, value_name = "FROM-TO", value_parser = window, allow_hyphen_values = true)]
    time: Option<Range<i64>>,
    /// Calls that fulfil this condition, too: 'kind=write and bytes<4K' (the language of the dashboard)
    #[arg(long = "where", value_name = "CONDITION", value_parser = crate::cli::values::filter)]
    condition: Option<Filter>,
    /// At most so many groups of each layer, or calls of a list: the rest of groups is put together
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Watts of devices for --metric energy: [device.sda] with active = 9.5 and idle = 5, or [class.hdd] (hdd, ssd, nvme)
    #[arg(long, value_name = "FILE.toml")]
    pub power: Option<PathBuf>,
}

impl QueryArgs {
    /// The query.
    ///
    /// # Errors
    /// When options do not go together.
    pub fn query(&self) -> Result<Query, String> {
        if self.power.is_some() && self.metric != Metric::Energy {
            return Err("--power is for --metric energy".to_owned());
        }
        let query = Query {
            metric: self.metric,
            by: self.by,
            filter: self.filter()?,
            functions: self.op.iter().chain(&self.inside).filter(|op| !op.contains(['*', '?'])).cloned().collect(),
            layers: self.layer.clone(),
            device: self.device.clone(),
            phase: self.phase.clone(),
            inside: self.inside.clone(),
            calls: self.calls.clone(),
            time: self.time.clone(),
            limit: self.limit as usize,
        };
        query.scope()?;
        Ok(query)
    }

    /// All conditions that the filter language has.
    fn filter(&self) -> Result<Option<Filter>, String> {
        let mut all = Vec::new();
        if !self.layer.is_empty() {
            let names: Vec<&str> = self.layer.iter().map(|layer| layer.name()).collect();
            all.push(format!("layer={}", names.join(",")));
        }
        if !self.op.is_empty() {
            all.push(like("op", &self.op)?);
        }
        all.extend(self.ranks.clone());
        if let Some(pattern) = &self.file {
            all.push(like("file", std::slice::from_ref(pattern))?);
        }
        all.extend(self.condition.as_ref().map(|condition| format!("({})", condition.text())));
        if all.is_empty() {
            return Ok(None);
        }
        Filter::parse(&all.join(" and ")).map(Some).map_err(|wrong| wrong.to_string())
    }
}
