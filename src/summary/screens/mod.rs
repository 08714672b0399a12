//! The data of each screen, part of [`crate::summary::view`].

mod calls;
mod common;
mod devices;
mod overview;
mod processes;

pub use crate::analysis::calls::Sums;
pub use calls::*;
pub use common::*;
pub use devices::*;
pub use overview::*;
pub use processes::*;
