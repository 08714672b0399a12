//! A dataset as what figures are made of.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::analysis::trace::source::{Each, Source};
use crate::export::Dataset;
use crate::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FileRollup, Handle, Hist, Loss, Meta, Metric, Mount,
    Object, Process, Span, Stack,
};

/// Tables on disk, part by part.
impl Source for Dataset {
    fn spans(&mut self, each: Each<Span>) -> Result<()> {
        self.rows(|row: Span| each(&row))
    }
    fn blocks(&mut self, each: Each<Block>) -> Result<()> {
        self.rows(|row: Block| each(&row))
    }
    fn links(&mut self, each: Each<BlockLink>) -> Result<()> {
        self.rows(|row: BlockLink| each(&row))
    }
    fn block_bytes(&mut self, each: Each<BlockBytes>) -> Result<()> {
        self.rows(|row: BlockBytes| each(&row))
    }
    fn files(&mut self, each: Each<File>) -> Result<()> {
        self.rows(|row: File| each(&row))
    }
    fn handles(&mut self, each: Each<Handle>) -> Result<()> {
        self.rows(|row: Handle| each(&row))
    }
    fn paths(&mut self, each: Each<CallPath>) -> Result<()> {
        self.rows(|row: CallPath| each(&row))
    }
    fn stacks(&mut self, each: Each<Stack>) -> Result<()> {
        self.rows(|row: Stack| each(&row))
    }
    fn objects(&mut self, each: Each<Object>) -> Result<()> {
        self.rows(|row: Object| each(&row))
    }
    fn processes(&mut self, each: Each<Process>) -> Result<()> {
        self.rows(|row: Process| each(&row))
    }
    fn losses(&mut self, each: Each<Loss>) -> Result<()> {
        self.rows(|row: Loss| each(&row))
    }
    fn coverage(&mut self, each: Each<Coverage>) -> Result<()> {
        self.rows(|row: Coverage| each(&row))
    }
    fn meta(&mut self, each: Each<Meta>) -> Result<()> {
        self.rows(|row: Meta| each(&row))
    }
    fn metrics(&mut self, each: Each<Metric>) -> Result<()> {
        self.rows(|row: Metric| each(&row))
    }
    fn sums(&mut self, each: Each<FileRollup>) -> Result<()> {
        self.rows(|row: FileRollup| each(&row))
    }
    fn hists(&mut self, each: Each<Hist>) -> Result<()> {
        self.rows(|row: Hist| each(&row))
    }
    fn mounts(&mut self, each: Each<Mount>) -> Result<()> {
        self.rows(|row: Mount| each(&row))
    }

    fn spans_of_roots(&mut self, roots: &BTreeSet<i64>, each: Each<Span>) -> Result<()> {
        Self::spans_of_roots(self, roots, |span| each(&span))
    }

    fn warnings(&self) -> Vec<String> {
        Self::warnings(self).iter().map(ToString::to_string).collect()
    }
}
