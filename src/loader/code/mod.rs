//! What is in the files that processes map, and where to probe it. Pure, but for `examine` and `remembered`.

pub mod accessor;
pub mod bounds;
#[cfg(test)]
mod bounds_tests;
pub mod elf;
pub mod examine;
pub mod framed;
pub mod lines;
pub mod members;
pub mod outline;
pub mod plan;
pub mod prologue;
pub mod remembered;
pub mod returns;
pub mod safety;
#[cfg(test)]
mod tests;
pub mod version;
