//! Property lists and dataspaces, which decide what other calls do, and event sets.

use crate::catalog::Src::{self, Arg, Int, Ret, RetInt};
use crate::catalog::def::{Def, rows};
use crate::catalog::libraries::hdf5::{
    DEFLATE, Effect, FLETCHER32, ListEffect as List, NBIT, NUMBERS, SCALEOFFSET, SHUFFLE, SZIP, SpaceEffect as Space,
    dims, plain,
};
use crate::catalog::role::{Data, Hdf5};
use crate::catalog::{Array, Count, Fails, Row, When};
use crate::vocabulary::Kind;

/// `herr_t f(list, ...)`: decides I/O, and has no shape.
const fn set(symbol: &'static str) -> Def<Data> {
    plain(symbol, Kind::Meta)
}
/// `herr_t f(list, ...)`, which gives the list a value.
const fn list(symbol: &'static str, effect: List, value: Src) -> Def<Hdf5> {
    set(symbol).effect(Effect::List { list: Arg(0), effect, value, index: Src::None })
}
/// `hid_t f(...)`: a new list.
const fn new_list(symbol: &'static str, effect: List) -> Def<Hdf5> {
    list(symbol, effect, Ret).fails(Fails::Negative)
}
/// `int f(list, ...)`.
const fn ask(symbol: &'static str, effect: List) -> Def<Hdf5> {
    list(symbol, effect, RetInt)
}
/// `int f(list, index, ...)`.
const fn ask_at(symbol: &'static str, effect: List) -> Def<Hdf5> {
    set(symbol).effect(Effect::List { list: Arg(0), effect, value: RetInt, index: Int(1) })
}
/// `(list, filter, flags, number of parameters, parameters)`.
const fn parameters(symbol: &'static str, effect: List) -> Def<Hdf5> {
    list(symbol, effect, Int(1)).array(0, Array::ints(NUMBERS, When::Entry, 4, Count::Arg(3)))
}
/// `int f(list, number, flags, number of parameters, parameters, ...)`.
const fn ask_filter(symbol: &'static str) -> Def<Hdf5> {
    ask_at(symbol, List::GetFilter).array(0, Array::ints(NUMBERS, When::Return, 4, Count::At(3)))
}
/// `herr_t f(dataspace, ...)`: selects; the call that moves them has the points.
const fn select(symbol: &'static str) -> Def<Data> {
    plain(symbol, Kind::Meta).secondary()
}
const fn space(symbol: &'static str, effect: Space, value: Src) -> Def<Hdf5> {
    plain(symbol, Kind::Meta).effect(Effect::Space { space: Arg(0), effect, value })
}
/// `hid_t f(dataspace, ...)`.
const fn new_space(symbol: &'static str, effect: Space) -> Def<Hdf5> {
    space(symbol, effect, Ret).fails(Fails::Negative)
}
/// `int f(dataspace, ...)`.
const fn number(symbol: &'static str) -> Def<Hdf5> {
    plain(symbol, Kind::Meta).effect(Effect::Result { result: RetInt })
}
const fn long_number(symbol: &'static str) -> Def<Hdf5> {
    plain(symbol, Kind::Meta).fails(Fails::Negative).effect(Effect::Result { result: Ret })
}

/// `hid_t H5Screate(class)`.
const CLASS: Effect = Effect::Space { space: Int(0), effect: Space::Class, value: Ret };

pub(super) const ROWS: &[Row] = rows![
    new_list("H5Pcreate", List::New),
    new_list("H5Pcopy", List::Copy),
    new_list("H5Pdecode", List::Unknown),
    list("H5Pclose", List::Close, Src::None),
    // Of a file.
    set("H5Pset_userblock"),
    set("H5Pset_sizes"),
    set("H5Pset_sym_k"),
    set("H5Pset_istore_k"),
    set("H5Pset_shared_mesg_nindexes"),
    set("H5Pset_shared_mesg_index"),
    set("H5Pset_shared_mesg_phase_change"),
    set("H5Pset_file_space"),
    set("H5Pset_file_space_strategy"),
    set("H5Pset_file_space_page_size"),
    set("H5Pset_alignment"),
    set("H5Pset_cache"),
    set("H5Pset_core_write_tracking"),
    set("H5Pset_driver"),
    set("H5Pset_driver_by_name"),
    set("H5Pset_driver_by_value"),
    set("H5Pset_fapl_core"),
    set("H5Pset_fapl_direct"),
    set("H5Pset_fapl_family"),
    set("H5Pset_fapl_hdfs"),
    set("H5Pset_fapl_ioc"),
    set("H5Pset_fapl_log"),
    set("H5Pset_fapl_mirror"),
    set("H5Pset_fapl_mpio"),
    set("H5Pset_fapl_multi"),
    set("H5Pset_fapl_onion"),
    set("H5Pset_fapl_ros3"),
    set("H5Pset_fapl_sec2"),
    set("H5Pset_fapl_split"),
    set("H5Pset_fapl_splitter"),
    set("H5Pset_fapl_stdio"),
    set("H5Pset_fapl_subfiling"),
    set("H5Pset_mpi_params"),
    set("H5Pset_vol"),
    set("H5Pset_family_offset"),
    set("H5Pset_multi_type"),
    set("H5Pset_file_image"),
    set("H5Pset_file_locking"),
    set("H5Pset_fclose_degree"),
    set("H5Pset_evict_on_close"),
    set("H5Pset_libver_bounds"),
    set("H5Pset_relax_file_integrity_checks"),
    set("H5Pset_mdc_config"),
    set("H5Pset_mdc_image_config"),
    set("H5Pset_mdc_log_options"),
    set("H5Pset_meta_block_size"),
    set("H5Pset_metadata_read_attempts"),
    set("H5Pset_all_coll_metadata_ops"),
    set("H5Pset_coll_metadata_write"),
    set("H5Pset_page_buffer_size"),
    set("H5Pset_sieve_buf_size"),
    set("H5Pset_small_data_block_size"),
    set("H5Pset_elink_file_cache_size"),
    // Of a dataset.
    list("H5Pset_chunk", List::Chunk, Src::None).array(0, dims(When::Entry, 2, Count::Arg(1)).rank()),
    list("H5Pset_layout", List::Layout, Int(1)),
    list("H5Pset_deflate", List::Filter(DEFLATE), Int(1)),
    list("H5Pset_shuffle", List::Filter(SHUFFLE), Src::None),
    list("H5Pset_fletcher32", List::Filter(FLETCHER32), Src::None),
    list("H5Pset_szip", List::Filter(SZIP), Src::None),
    list("H5Pset_nbit", List::Filter(NBIT), Src::None),
    list("H5Pset_scaleoffset", List::Filter(SCALEOFFSET), Src::None),
    parameters("H5Pset_filter", List::AnyFilter),
    parameters("H5Pmodify_filter", List::ModifyFilter),
    list("H5Premove_filter", List::RemoveFilter, Int(1)),
    set("H5Pset_chunk_opts"),
    set("H5Pset_chunk_cache"),
    set("H5Pset_append_flush"),
    set("H5Pset_alloc_time"),
    set("H5Pset_fill_time"),
    set("H5Pset_fill_value"),
    set("H5Pset_external"),
    set("H5Pset_efile_prefix"),
    set("H5Pset_virtual"),
    set("H5Pset_virtual_prefix"),
    set("H5Pset_virtual_printf_gap"),
    set("H5Pset_virtual_spatial_tree"),
    set("H5Pset_virtual_view"),
    set("H5Pset_dset_no_attrs_hint"),
    ask_at("H5Pget_chunk", List::GetChunk).array(0, dims(When::Return, 2, Count::Ret)),
    ask("H5Pget_layout", List::GetLayout),
    ask("H5Pget_nfilters", List::GetFilterCount),
    ask_filter("H5Pget_filter1"),
    ask_filter("H5Pget_filter2"),
    // Of a transfer.
    list("H5Pset_dxpl_mpio", List::Collective, Int(1)),
    set("H5Pset_dxpl_mpio_collective_opt"),
    set("H5Pset_dxpl_mpio_chunk_opt"),
    set("H5Pset_dxpl_mpio_chunk_opt_num"),
    set("H5Pset_dxpl_mpio_chunk_opt_ratio"),
    set("H5Pset_selection_io"),
    set("H5Pset_dataset_io_hyperslab_selection"),
    set("H5Pset_modify_write_buf"),
    set("H5Pset_buffer"),
    set("H5Pset_hyper_vector_size"),
    set("H5Pset_btree_ratios"),
    set("H5Pset_data_transform"),
    set("H5Pset_edc_check"),
    set("H5Pget_mpio_actual_io_mode"),
    set("H5Pget_mpio_actual_chunk_opt_mode"),
    set("H5Pget_mpio_no_collective_cause"),
    set("H5Pget_actual_selection_io_mode"),
    set("H5Pget_no_selection_io_cause"),
    // Of groups, links and copies.
    set("H5Pset_link_phase_change"),
    set("H5Pset_link_creation_order"),
    set("H5Pset_est_link_info"),
    set("H5Pset_local_heap_size_hint"),
    set("H5Pset_create_intermediate_group"),
    set("H5Pset_attr_phase_change"),
    set("H5Pset_attr_creation_order"),
    set("H5Pset_obj_track_times"),
    set("H5Pset_elink_acc_flags"),
    set("H5Pset_elink_fapl"),
    set("H5Pset_elink_prefix"),
    set("H5Pset_copy_object"),
    //
    plain("H5Screate", Kind::Meta).fails(Fails::Negative).effect(CLASS),
    // `(rank, dims, maxdims)`.
    new_space("H5Screate_simple", Space::New).array(0, dims(When::Entry, 1, Count::Arg(0)).rank()),
    new_space("H5Scopy", Space::Copy),
    new_space("H5Scombine_hyperslab", Space::Copy),
    new_space("H5Scombine_select", Space::Copy),
    long_number("H5Sselect_project_intersection"),
    long_number("H5Sdecode"),
    space("H5Sclose", Space::Close, Src::None),
    space("H5Sset_extent_simple", Space::Extent, Src::None).array(0, dims(When::Entry, 2, Count::Arg(1)).rank()),
    space("H5Sset_extent_none", Space::None, Src::None),
    // `(destination, source)`.
    space("H5Sextent_copy", Space::Same, Arg(1)),
    select("H5Sselect_all"),
    select("H5Sselect_none"),
    select("H5Sselect_hyperslab"),
    select("H5Sselect_elements"),
    select("H5Sselect_copy"),
    select("H5Sselect_adjust"),
    select("H5Smodify_select"),
    select("H5Soffset_simple"),
    space("H5Sget_simple_extent_dims", Space::GetExtent, RetInt).array(0, dims(When::Return, 1, Count::Ret)),
    number("H5Sget_simple_extent_ndims"),
    long_number("H5Sget_simple_extent_npoints"),
    long_number("H5Sget_select_npoints"),
    //
    long_number("H5EScreate"),
    plain("H5ESwait", Kind::Wait),
    plain("H5EScancel", Kind::Meta),
    plain("H5ESget_count", Kind::Meta),
    plain("H5ESget_err_status", Kind::Meta),
    plain("H5ESget_err_count", Kind::Meta),
    plain("H5ESclose", Kind::Close),
];
