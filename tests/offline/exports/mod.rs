//! What other programs read: exports, pages, packages, programs of a replay.

mod export;
mod hive;
mod html;
mod otf2_darshan;
mod packages;
mod perfetto;
mod python;
mod replay_code;
mod text;
