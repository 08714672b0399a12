//! What to attach where: reads files and `/proc` text, decides, and never touches the kernel itself.

pub mod elf;
pub mod maps;
pub mod plan;
pub mod prologue;
pub mod safety;

#[cfg(test)]
mod tests;
