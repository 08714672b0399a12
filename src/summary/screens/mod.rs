//! The data of each screen, part of [`crate::summary::view`].

mod calls;
mod devices;
mod distribution;
mod history;
mod output;
mod overview;
mod process;
mod processes;

pub use crate::analysis::calls::Sums;
pub use calls::*;
pub use devices::*;
pub use distribution::*;
pub use history::*;
pub use output::*;
pub use overview::*;
pub use process::*;
pub use processes::*;
