//! Parallel jobs: ranks, nodes, phases, counters.

mod counters;
mod nodes;
mod phases;
mod ranges;
mod rank_of_program;
mod ranks;
mod scale;
mod slurm;
