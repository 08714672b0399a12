//! Errors, full disks and rings, signals, races, and what tracing costs others.

mod bystanders;
mod clock;
mod disk;
mod errors;
mod harmless;
mod hostile;
mod kill;
mod limits;
mod overflow;
mod races;
mod share;
mod signals;
mod stopped;
mod stuck;
mod tiers;
