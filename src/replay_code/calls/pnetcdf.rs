//! `PnetCDF`.

use crate::replay_code::calls::Arg::{
    self, Communicator, ElementSize, Elements, File, Handle, Hints, Mode, Object, Opened, Selection, Type,
};
use crate::replay_code::calls::Does::{self, Closes, Opens, Uses};
use crate::replay_code::calls::Row;
use crate::vocabulary::Layer;

const fn pnetcdf(does: Does, ops: &'static [&'static str], args: &'static [Arg], c: &'static str) -> Row {
    Row { layer: Layer::Pnetcdf, ops, does, args, c }
}

pub const ROWS: &[Row] = &[
    pnetcdf(
        Opens,
        &["ncmpi_create", "ncmpi_open"],
        &[Opened, File, Mode, Communicator, Hints],
        r#"good("{op}", {op}(communicator({3}), path({1}), {2}, hints({4}), &nc[{0}]));"#,
    ),
    pnetcdf(Closes, &["ncmpi_close"], &[Handle], r#"good("{op}", {op}(nc[{0}])); forget(nc[{0}]);"#),
    pnetcdf(Uses, &["ncmpi_def_var"], &[Handle, Object], r#"good("{op}", define(nc[{0}], &OBJECTS[{1}]));"#),
    pnetcdf(
        Uses,
        &[
            "ncmpi_enddef",
            "ncmpi_redef",
            "ncmpi_sync",
            "ncmpi_begin_indep_data",
            "ncmpi_end_indep_data",
            "ncmpi_flush",
            "ncmpi_sync_numrecs",
        ],
        &[Handle],
        r#"good("{op}", {op}(nc[{0}]));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_wait_all", "ncmpi_wait"],
        &[Handle],
        r#"good("{op}", {op}(nc[{0}], NC_REQ_ALL, NULL, NULL));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_att_text"],
        &[Handle, Object, Elements],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, {2}, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_att_*"],
        &[Handle, Object, Elements, Type],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, {3}, {2}, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_get_att_*"],
        &[Handle, Object, Elements],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_var_*", "ncmpi_get_var_*"],
        &[Handle, Object, ElementSize],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_vara_*", "ncmpi_get_vara_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_var1_*", "ncmpi_get_var1_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_vars_*", "ncmpi_get_vars_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, NULL, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_varm_*", "ncmpi_get_varm_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, NULL, NULL, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_varn_*", "ncmpi_get_varn_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), 1, pieces({start}), pieces({count}), (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_var_*", "ncmpi_iget_var_*"],
        &[Handle, Object, ElementSize],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), (void *)buffer, &request));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_vara_*", "ncmpi_iget_vara_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, (void *)buffer, &request));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_var1_*", "ncmpi_iget_var1_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, (void *)buffer, &request));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_vars_*", "ncmpi_iget_vars_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, NULL, (void *)buffer, &request));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_varm_*", "ncmpi_iget_varm_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, NULL, NULL, (void *)buffer, &request));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_varn_*", "ncmpi_iget_varn_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), 1, pieces({start}), pieces({count}), (void *)buffer, &request));"#,
    ),
    pnetcdf(Uses, &["ncmpi__enddef"], &[Handle], r#"good("enddef", NC(enddef)(nc[{0}]));"#),
];
