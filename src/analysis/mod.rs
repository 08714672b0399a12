//! What the figures of a trace are: each is defined here once, over rows, and report, dashboard, metrics and the flight
//! recorder read it. `views.sql` says the same in SQL; tests compare them.

pub mod share;
