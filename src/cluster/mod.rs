//! Several nodes while they are traced: the metrics that the tracer of each one serves, asked for again and again, and
//! what became of them between two answers. All but `watch`, `scrape` and `names` is pure.

pub mod history;
mod names;
pub mod scrape;
pub mod target;
pub mod totals;
pub mod view;
pub mod watch;

#[cfg(test)]
pub mod testing;
