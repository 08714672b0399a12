//! `NetCDF`.

use crate::replay_code::calls::Arg::{
    self, Collective, Communicator, ElementSize, File, Handle, Hints, Mode, Object, Opened, Selection,
};
use crate::replay_code::calls::Does::{self, Closes, Opens, Uses};
use crate::replay_code::calls::{Row, nc};
use crate::vocabulary::Layer;

const fn netcdf(does: Does, ops: &'static [&'static str], args: &'static [Arg], c: &'static str) -> Row {
    Row { layer: Layer::Netcdf, ops, does, args, c }
}

pub const ROWS: &[Row] = &[
    netcdf(
        Opens,
        &["nc_create_par", "nc_open_par"],
        &[Opened, File, Mode, Communicator, Hints],
        r#"good("{op}", {op}(path({1}), {2}, communicator({3}), hints({4}), &nc[{0}]));"#,
    ),
    netcdf(Opens, &["nc_create", "nc_open"], &[Opened, File, Mode], r#"good("{op}", {op}(path({1}), {2}, &nc[{0}]));"#),
    netcdf(Closes, &["nc_close"], &[Handle], r#"good("{op}", {op}(nc[{0}])); forget(nc[{0}]);"#),
    netcdf(Uses, &["nc_def_var"], &[Handle, Object], r#"good("{op}", define(nc[{0}], &OBJECTS[{1}]));"#),
    netcdf(Uses, &["nc_enddef", "nc_redef", "nc_sync"], &[Handle], r#"good("{op}", {op}(nc[{0}]));"#),
    netcdf(Uses, &["nc__enddef"], &[Handle], r#"good("enddef", NC(enddef)(nc[{0}]));"#),
];

pub const ATTRIBUTES: &[Row] = nc::attributes!(netcdf, "nc");

const WHOLE: &[Arg] = &[Handle, Object, ElementSize, Collective];
const PART: &[Arg] = &[Handle, Object, ElementSize, Collective, Selection];

pub const VARIABLES: &[Row] =
    nc::accesses!(netcdf, ["nc_put", "nc_get"], [WHOLE, PART], "accessed(nc[{0}], &OBJECTS[{1}], {3})", "");
