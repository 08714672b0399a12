//! Pure: events in, rows out. No clock, no thread, no file.

pub mod hist;
pub mod rows;
