//! Sees what a program's I/O really does, through every layer at once.

pub mod catalog;
pub mod correlate;
pub mod event;
pub mod export;
pub mod loader;
mod skel;
pub mod words;
