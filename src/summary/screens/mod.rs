//! The data of each screen, part of [`crate::summary::view`].

mod calls;
mod common;
mod devices;
mod output;
mod overview;
mod process;
mod processes;

pub use crate::analysis::calls::Sums;
pub use calls::*;
pub use common::*;
pub use devices::*;
pub use output::*;
pub use overview::*;
pub use process::*;
pub use processes::*;
