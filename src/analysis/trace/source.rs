//! What a report reads: the tables it needs, row by row, so that no table has to fit into memory.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::analysis::trace::clocks::NodeRow;
use crate::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FileRollup, Handle, Hist, Loss, Meta, Metric, Mount,
    Object, Process, Row, Span, Stack,
};

/// Called for each row; an error ends the reading.
pub type Each<'a, T> = &'a mut dyn FnMut(&T) -> Result<()>;

/// What ids are given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    Process,
    /// Its id holds that of its thread.
    Span,
    File,
    Handle,
    Object,
    Request,
    Path,
    Mount,
    Stack,
}

/// Which of several datasets an id is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    pub host: &'a str,
    /// Its id there.
    pub id: i64,
}

/// The first id of each host.
#[derive(Debug, Clone, Default)]
pub struct Hosts(pub Vec<(i64, String)>);

impl Hosts {
    pub fn of(&self, id: i64) -> Option<&str> {
        let at = self.0.partition_point(|(base, _)| *base <= id).checked_sub(1)?;
        self.0.get(at).map(|(_, host)| host.as_str())
    }
}

/// A dataset, several, or rows in memory. Of several rows with one id in a dimension table the last holds.
pub trait Source {
    fn spans(&mut self, each: Each<Span>) -> Result<()>;
    fn blocks(&mut self, each: Each<Block>) -> Result<()>;
    fn links(&mut self, each: Each<BlockLink>) -> Result<()>;
    fn block_bytes(&mut self, each: Each<BlockBytes>) -> Result<()>;
    fn files(&mut self, each: Each<File>) -> Result<()>;
    fn handles(&mut self, each: Each<Handle>) -> Result<()>;
    fn paths(&mut self, each: Each<CallPath>) -> Result<()>;
    fn stacks(&mut self, each: Each<Stack>) -> Result<()>;
    fn objects(&mut self, each: Each<Object>) -> Result<()>;
    fn processes(&mut self, each: Each<Process>) -> Result<()>;
    fn losses(&mut self, each: Each<Loss>) -> Result<()>;
    fn coverage(&mut self, each: Each<Coverage>) -> Result<()>;
    fn meta(&mut self, each: Each<Meta>) -> Result<()>;
    fn metrics(&mut self, each: Each<Metric>) -> Result<()>;
    fn sums(&mut self, each: Each<FileRollup>) -> Result<()>;
    fn hists(&mut self, each: Each<Hist>) -> Result<()>;
    fn mounts(&mut self, each: Each<Mount>) -> Result<()>;

    /// The spans below these roots, the roots included.
    fn spans_of_roots(&mut self, roots: &BTreeSet<i64>, each: Each<Span>) -> Result<()> {
        self.spans(&mut |span| if roots.contains(&span.root_id) { each(span) } else { Ok(()) })
    }

    /// Which dataset an id is from, if rows are of more than one.
    fn origin(&self, _thing: IdKind, _id: i64) -> Option<Origin<'_>> {
        None
    }

    /// Calls `each` with the kernel's figures of each node, and the name of the node where there are several.
    fn metrics_of_nodes(&mut self, each: &mut dyn FnMut(&str, &Metric) -> Result<()>) -> Result<()> {
        self.metrics(&mut |row| each("", row))
    }

    /// From which id on ids are of which host, in order of ids: [`Self::origin`] while rows are read. Nothing of one dataset.
    fn hosts(&self, _kind: IdKind) -> Hosts {
        Hosts::default()
    }

    /// The nodes, in order of name, without what is known of their clocks.
    fn nodes(&self) -> Vec<NodeRow> {
        Vec::new()
    }

    /// Parts of the dataset that could not be read, in words for the reader of the report.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Rows in memory, in the order they were made.
impl Source for Vec<Row> {
    fn spans(&mut self, each: Each<Span>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Span(r) = row { each(r) } else { Ok(()) })
    }
    fn blocks(&mut self, each: Each<Block>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Block(r) = row { each(r) } else { Ok(()) })
    }
    fn links(&mut self, each: Each<BlockLink>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::BlockLink(r) = row { each(r) } else { Ok(()) })
    }
    fn block_bytes(&mut self, each: Each<BlockBytes>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::BlockBytes(r) = row { each(r) } else { Ok(()) })
    }
    fn files(&mut self, each: Each<File>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::File(r) = row { each(r) } else { Ok(()) })
    }
    fn handles(&mut self, each: Each<Handle>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Handle(r) = row { each(r) } else { Ok(()) })
    }
    fn paths(&mut self, each: Each<CallPath>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::CallPath(r) = row { each(r) } else { Ok(()) })
    }
    fn stacks(&mut self, each: Each<Stack>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Stack(r) = row { each(r) } else { Ok(()) })
    }
    fn objects(&mut self, each: Each<Object>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Object(r) = row { each(r) } else { Ok(()) })
    }
    fn processes(&mut self, each: Each<Process>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Process(r) = row { each(r) } else { Ok(()) })
    }
    fn losses(&mut self, each: Each<Loss>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Loss(r) = row { each(r) } else { Ok(()) })
    }
    fn coverage(&mut self, each: Each<Coverage>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Coverage(r) = row { each(r) } else { Ok(()) })
    }
    fn meta(&mut self, each: Each<Meta>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Meta(r) = row { each(r) } else { Ok(()) })
    }
    fn metrics(&mut self, each: Each<Metric>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Metric(r) = row { each(r) } else { Ok(()) })
    }
    fn sums(&mut self, each: Each<FileRollup>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::FileRollup(r) = row { each(r) } else { Ok(()) })
    }
    fn hists(&mut self, each: Each<Hist>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Hist(r) = row { each(r) } else { Ok(()) })
    }
    fn mounts(&mut self, each: Each<Mount>) -> Result<()> {
        self.iter().try_for_each(|row| if let Row::Mount(r) = row { each(r) } else { Ok(()) })
    }
}
