//! What this kernel allows, what to attach where, targets, rings.
