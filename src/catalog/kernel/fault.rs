//! Page faults on mapped files, as rows: what a program does to a file that it has mapped.

use crate::catalog::def::row;
use crate::catalog::{Fails, Family, Row};
use crate::vocabulary::{Kind, Layer};

const fn fault(symbol: &'static str, kind: Kind) -> Row {
    row(Family::Fault, Layer::Vfs, symbol, kind).fails(Fails::Never).done()
}

/// The kernel side fills these in by itself (`iot_fault_send` of `bpf/system/fault.h`), in this order: a fault that
/// reads, or that copies a page for the process alone, and one that makes a page of a shared mapping writable.
pub(in crate::catalog) const ROWS: &[Row] =
    &[fault("page_fault_read", Kind::Read), fault("page_fault_write", Kind::Write)];
