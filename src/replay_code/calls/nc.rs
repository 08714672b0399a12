//! What `NetCDF` and `PnetCDF` have alike: calls on attributes, and on variables by how a part of one is given.

use crate::replay_code::calls::Arg::{self, ElementSize, Elements, Handle, Object, Selection, Type};

pub const WHOLE: &[Arg] = &[Handle, Object, ElementSize];
pub const PART: &[Arg] = &[Handle, Object, ElementSize, Selection];
pub const TEXT: &[Arg] = &[Handle, Object, Elements];
pub const TYPED: &[Arg] = &[Handle, Object, Elements, Type];

/// The statement for an attribute, with the arguments before the data.
macro_rules! attribute {
    ($before:literal) => {
        concat!(
            r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, "#,
            $before,
            "(void *)buffer));"
        )
    };
}

/// Calls on attributes, whose names begin with this.
macro_rules! attributes {
    ($row:ident, $library:literal) => {
        &[
            $row(Uses, &[concat!($library, "_put_att_text")], nc::TEXT, nc::attribute!("{2}, ")),
            $row(Uses, &[concat!($library, "_put_att_*")], nc::TYPED, nc::attribute!("{3}, {2}, ")),
            $row(Uses, &[concat!($library, "_get_att_*")], nc::TEXT, nc::attribute!("")),
        ]
    };
}

/// A call that writes or reads a part of a variable: the variable in C, the part, and what follows the data.
macro_rules! access {
    ($row:ident, [$put:literal, $get:literal], $name:literal, $args:expr, $variable:literal, $part:literal, $end:literal) => {
        $row(
            Uses,
            &[concat!($put, $name), concat!($get, $name)],
            $args,
            concat!(r#"good("{op}", {op}(nc[{0}], "#, $variable, $part, ", (void *)buffer", $end, "));"),
        )
    };
}

/// Such calls for all kinds of parts.
macro_rules! accesses {
    ($row:ident, $names:tt, [$whole:expr, $part:expr], $variable:literal, $end:literal) => {
        &[
            nc::access!($row, $names, "_var_*", $whole, $variable, "", $end),
            nc::access!($row, $names, "_vara_*", $part, $variable, ", {start}, {count}", $end),
            nc::access!($row, $names, "_var1_*", $part, $variable, ", {start}", $end),
            nc::access!($row, $names, "_vars_*", $part, $variable, ", {start}, {count}, NULL", $end),
            nc::access!($row, $names, "_varm_*", $part, $variable, ", {start}, {count}, NULL, NULL", $end),
        ]
    };
}

pub(super) use {access, accesses, attribute, attributes};
