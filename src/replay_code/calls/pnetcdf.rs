//! `PnetCDF`.

use crate::replay_code::calls::Arg::{self, Communicator, File, Handle, Hints, Mode, Object, Opened};
use crate::replay_code::calls::Does::{self, Closes, Opens, Uses};
use crate::replay_code::calls::{Row, nc};
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
    pnetcdf(Uses, &["ncmpi__enddef"], &[Handle], r#"good("enddef", NC(enddef)(nc[{0}]));"#),
    nc::access!(
        pnetcdf,
        ["ncmpi_put", "ncmpi_get"],
        "_varn_*",
        nc::PART,
        "variable(nc[{0}], &OBJECTS[{1}])",
        ", 1, pieces({start}), pieces({count})",
        ""
    ),
    nc::access!(
        pnetcdf,
        ["ncmpi_iput", "ncmpi_iget"],
        "_varn_*",
        nc::PART,
        "variable(nc[{0}], &OBJECTS[{1}])",
        ", 1, pieces({start}), pieces({count})",
        ", &request"
    ),
];

pub const ATTRIBUTES: &[Row] = nc::attributes!(pnetcdf, "ncmpi");

pub const VARIABLES: &[Row] =
    nc::accesses!(pnetcdf, ["ncmpi_put", "ncmpi_get"], [nc::WHOLE, nc::PART], "variable(nc[{0}], &OBJECTS[{1}])", "");

/// Those that begin a request.
pub const REQUESTS: &[Row] = nc::accesses!(
    pnetcdf,
    ["ncmpi_iput", "ncmpi_iget"],
    [nc::WHOLE, nc::PART],
    "variable(nc[{0}], &OBJECTS[{1}])",
    ", &request"
);
