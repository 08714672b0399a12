//! `NetCDF`.

use crate::replay_code::calls::Arg::{
    self, Collective, Communicator, ElementSize, Elements, File, Handle, Hints, Mode, Object, Opened, Selection, Type,
};
use crate::replay_code::calls::Does::{self, Closes, Opens, Uses};
use crate::replay_code::calls::Row;
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
    netcdf(
        Uses,
        &["nc_put_att_text"],
        &[Handle, Object, Elements],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, {2}, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_att_*"],
        &[Handle, Object, Elements, Type],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, {3}, {2}, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_get_att_*"],
        &[Handle, Object, Elements],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_var_*", "nc_get_var_*"],
        &[Handle, Object, ElementSize, Collective],
        r#"good("{op}", {op}(nc[{0}], accessed(nc[{0}], &OBJECTS[{1}], {3}), (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_vara_*", "nc_get_vara_*"],
        &[Handle, Object, ElementSize, Collective, Selection],
        r#"good("{op}", {op}(nc[{0}], accessed(nc[{0}], &OBJECTS[{1}], {3}), {start}, {count}, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_var1_*", "nc_get_var1_*"],
        &[Handle, Object, ElementSize, Collective, Selection],
        r#"good("{op}", {op}(nc[{0}], accessed(nc[{0}], &OBJECTS[{1}], {3}), {start}, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_vars_*", "nc_get_vars_*"],
        &[Handle, Object, ElementSize, Collective, Selection],
        r#"good("{op}", {op}(nc[{0}], accessed(nc[{0}], &OBJECTS[{1}], {3}), {start}, {count}, NULL, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_varm_*", "nc_get_varm_*"],
        &[Handle, Object, ElementSize, Collective, Selection],
        r#"good("{op}", {op}(nc[{0}], accessed(nc[{0}], &OBJECTS[{1}], {3}), {start}, {count}, NULL, NULL, (void *)buffer));"#,
    ),
    netcdf(Uses, &["nc__enddef"], &[Handle], r#"good("enddef", NC(enddef)(nc[{0}]));"#),
];
