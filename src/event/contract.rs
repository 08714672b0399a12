//! Fails the build where the enums and sizes of this program differ from those of the kernel side
//! (`bpf/core/contract.h`).
//!
//! Nothing runs here: numbers that only go to the kernel come from the skeleton; what this program has an enum or a
//! constant of its own for is compared with it.

use crate::base::hist::TABLE_BITS;
use crate::catalog::library::MAX_ROWS;
use crate::catalog::value::ARGUMENTS;
use crate::event::{BUCKETS, SIZES, TextKind};
use crate::skel::types::{iot_class, iot_fault_row, iot_layer, iot_limit, iot_sysno_entry, iot_text_kind};
use crate::vocabulary::{LAYERS, Layer};

macro_rules! numbers {
    ($($(#[$about:meta])* $layer:ident $name:literal $origin:ident $number:ident,)*) => {
        $(assert!(Layer::$layer as u32 == iot_layer::$number.0, "a layer and its number");)*
    };
}

const _: () = {
    layers!(numbers);
    assert!(LAYERS.len() == iot_layer::IOT_LAYER_COUNT.0 as usize, "layers");
    assert!(LAYERS.len() <= iot_limit::IOT_LAYERS.0 as usize, "room for layers");
    let mut i = 0;
    while i < LAYERS.len() {
        let (first, last) = (iot_layer::IOT_LAYER_FIRST_IO_LIBRARY.0, iot_layer::IOT_LAYER_LAST_IO_LIBRARY.0);
        let is_in = first as usize <= i && i <= last as usize;
        assert!(LAYERS[i].is_io_library() == is_in, "the I/O libraries");
        i += 1;
    }
};

const _: () = {
    assert!(MAX_ROWS == iot_limit::IOT_MAX_SPECS.0 as usize, "rows of a catalog");
    assert!(iot_limit::IOT_MAX_SPECS.0 <= 1 << iot_sysno_entry::IOT_SYSNO_LAYOUT.0, "a row and a layout");
    assert!(ARGUMENTS as u32 == iot_limit::IOT_ARGS.0, "arguments");
    assert!(BUCKETS == iot_limit::IOT_BUCKETS.0 as usize && TABLE_BITS == iot_limit::IOT_BUCKET_BITS.0, "histograms");
    assert!(SIZES == iot_limit::IOT_SIZES.0 as usize, "bins of sizes");
    assert!(iot_fault_row::IOT_FAULT_ROWS.0 == 2, "page faults that read, and that write");
    // Budgets of rings are arrays in this order.
    assert!(iot_class::IOT_C_LIFE.0 == 0 && iot_class::IOT_C_CALL.0 == 1 && iot_class::IOT_C_BLOCK.0 == 2);
    assert!(iot_class::IOT_C_MAX.0 == 3, "classes of rings");
    assert!(TextKind::Path.number() == iot_text_kind::IOT_X_PATH.0 as u64);
    assert!(TextKind::Path2.number() == iot_text_kind::IOT_X_PATH2.0 as u64);
    assert!(TextKind::Base.number() == iot_text_kind::IOT_X_BASE.0 as u64);
    assert!(TextKind::Base2.number() == iot_text_kind::IOT_X_BASE2.0 as u64);
    assert!(TextKind::Ints(0).number() == iot_text_kind::IOT_X_INTS.0 as u64);
    assert!(TextKind::Longs(0).number() == iot_text_kind::IOT_X_LONGS.0 as u64);
};
