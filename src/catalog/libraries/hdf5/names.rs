//! Groups, objects, links, named types, references and identifiers.

use crate::catalog::Src::{Arg, Ret, RetInt};
use crate::catalog::def::{Def, rows};
use crate::catalog::libraries::hdf5::data::opened;
use crate::catalog::libraries::hdf5::{
    ANY_CLASS, Effect, ListEffect, about, answer, close, h5, inside, list, long_answer, on, on_arg, plain, unnamed,
};
use crate::catalog::role::{Data, Hdf5, Open};
use crate::catalog::{Fails, Row};
use crate::vocabulary::Kind;

const fn sync(symbol: &'static str) -> Def<Data> {
    on(symbol, Kind::Sync)
}
/// `(location, name, type, ...)`: a type of the program becomes one of the file.
const fn commit(symbol: &'static str) -> Def<Hdf5> {
    made(inside(symbol, "type").handle(Arg(2)).fails(Fails::NegativeInt))
}
/// `hid_t f(reference, ...)`, which does not show where it leads.
const fn reference(symbol: &'static str, class: &'static str) -> Def<Open> {
    h5(symbol, Kind::Open).opens(Ret).object(class)
}
const fn made(row: Def<Open>) -> Def<Hdf5> {
    row.effect(Effect::Made)
}

pub(super) const ROWS: &[Row] = rows![
    made(inside("H5Gcreate1", "group")),
    made(inside("H5Gcreate2", "group")),
    made(unnamed("H5Gcreate_anon", "group")),
    inside("H5Gopen1", "group"),
    inside("H5Gopen2", "group"),
    close("H5Gclose"),
    list("H5Gget_create_plist", ListEffect::Unknown),
    sync("H5Gflush"),
    sync("H5Grefresh"),
    about("H5Gget_info"),
    about("H5Gget_info_by_name"),
    about("H5Gget_info_by_idx"),
    about("H5Gget_objinfo"),
    about("H5Gget_num_objs"),
    long_answer("H5Gget_objname_by_idx"),
    answer("H5Gget_objtype_by_idx"),
    about("H5Gget_linkval"),
    answer("H5Gget_comment"),
    about("H5Gset_comment"),
    answer("H5Giterate"),
    about("H5Glink"),
    about("H5Glink2"),
    about("H5Gmove"),
    about("H5Gmove2"),
    about("H5Gunlink"),
    //
    about("H5Lcreate_hard"),
    on_arg("H5Lcreate_soft", 1),
    on_arg("H5Lcreate_external", 2),
    about("H5Lcreate_ud"),
    about("H5Lmove"),
    about("H5Lcopy"),
    about("H5Ldelete"),
    about("H5Ldelete_by_idx"),
    answer("H5Lexists"),
    about("H5Lget_info"),
    about("H5Lget_info1"),
    about("H5Lget_info2"),
    about("H5Lget_info_by_idx"),
    about("H5Lget_info_by_idx1"),
    about("H5Lget_info_by_idx2"),
    about("H5Lget_val"),
    about("H5Lget_val_by_idx"),
    long_answer("H5Lget_name_by_idx"),
    answer("H5Literate"),
    answer("H5Literate1"),
    answer("H5Literate2"),
    answer("H5Literate_by_name"),
    answer("H5Literate_by_name1"),
    answer("H5Literate_by_name2"),
    answer("H5Lvisit"),
    answer("H5Lvisit1"),
    answer("H5Lvisit2"),
    answer("H5Lvisit_by_name"),
    answer("H5Lvisit_by_name1"),
    answer("H5Lvisit_by_name2"),
    //
    opened(inside("H5Oopen", ANY_CLASS)),
    opened(unnamed("H5Oopen_by_idx", ANY_CLASS)),
    opened(unnamed("H5Oopen_by_addr", ANY_CLASS)),
    opened(unnamed("H5Oopen_by_token", ANY_CLASS)),
    close("H5Oclose"),
    // `(object, location, name, ...)`.
    about("H5Olink").path(2).effect(Effect::Named { location: Arg(1) }).object(ANY_CLASS),
    about("H5Ocopy"),
    sync("H5Oflush"),
    sync("H5Orefresh"),
    about("H5Oincr_refcount"),
    about("H5Odecr_refcount"),
    answer("H5Oexists_by_name"),
    about("H5Oget_info"),
    about("H5Oget_info1"),
    about("H5Oget_info2"),
    about("H5Oget_info3"),
    about("H5Oget_info_by_name"),
    about("H5Oget_info_by_name1"),
    about("H5Oget_info_by_name2"),
    about("H5Oget_info_by_name3"),
    about("H5Oget_info_by_idx"),
    about("H5Oget_info_by_idx1"),
    about("H5Oget_info_by_idx2"),
    about("H5Oget_info_by_idx3"),
    about("H5Oget_native_info"),
    about("H5Oget_native_info_by_name"),
    about("H5Oget_native_info_by_idx"),
    long_answer("H5Oget_comment"),
    long_answer("H5Oget_comment_by_name"),
    about("H5Oset_comment"),
    about("H5Oset_comment_by_name"),
    answer("H5Ovisit"),
    answer("H5Ovisit1"),
    answer("H5Ovisit2"),
    answer("H5Ovisit3"),
    answer("H5Ovisit_by_name"),
    answer("H5Ovisit_by_name1"),
    answer("H5Ovisit_by_name2"),
    answer("H5Ovisit_by_name3"),
    about("H5Odisable_mdc_flushes"),
    about("H5Oenable_mdc_flushes"),
    //
    commit("H5Tcommit1"),
    commit("H5Tcommit2"),
    // `(location, type, ...)`.
    made(unnamed("H5Tcommit_anon", "type").handle(Arg(1)).fails(Fails::NegativeInt)),
    inside("H5Topen1", "type"),
    inside("H5Topen2", "type"),
    close("H5Tclose"),
    sync("H5Tflush"),
    sync("H5Trefresh"),
    plain("H5Treclaim", Kind::Other),
    //
    on_arg("H5Rcreate", 1),
    about("H5Rcreate_object"),
    about("H5Rcreate_region"),
    about("H5Rcreate_attr"),
    opened(unnamed("H5Rdereference1", ANY_CLASS)),
    opened(unnamed("H5Rdereference2", ANY_CLASS)),
    opened(reference("H5Ropen_object", ANY_CLASS)),
    reference("H5Ropen_attr", "attribute"),
    plain("H5Ropen_region", Kind::Meta).fails(Fails::Negative),
    plain("H5Rget_region", Kind::Meta).fails(Fails::Negative),
    answer("H5Rget_obj_type1"),
    about("H5Rget_obj_type2"),
    plain("H5Rget_obj_type3", Kind::Meta),
    long_answer("H5Rget_name"),
    plain("H5Rget_obj_name", Kind::Meta).fails(Fails::Negative),
    //
    // The last reference to an identifier closes what it stands for.
    close("H5Idec_ref").effect(Effect::References { count: RetInt }),
    about("H5Iinc_ref").effect(Effect::References { count: RetInt }),
    // It may look for it in the file.
    long_answer("H5Iget_name"),
    h5("H5Iget_file_id", Kind::Meta).dups(Ret, Arg(0)).effect(Effect::Reference),
];
