//! Programs in Fortran, for the libraries whose interface for Fortran calls the functions that a trace has.

mod source;
mod statements;
mod syntax;
#[cfg(test)]
mod tests;

use anyhow::{Result, bail, ensure};

use crate::replay_code::fortran::syntax::Fortran;
use crate::replay_code::interface;
use crate::replay_code::program::Program;
use crate::replay_code::ranks::Group;
use crate::replay_code::readme::{Build, Sources};
use crate::vocabulary::Layer;

const COMMON: &str = include_str!("common.f90");
const HDF5: &str = include_str!("hdf5.f90");
const PNETCDF: &str = include_str!("pnetcdf.f90");

/// How a library is used in Fortran.
struct Library {
    name: &'static str,
    module: &'static str,
    syntax: Fortran,
    /// Lines of the `Makefile`: where the library's modules are, and what is linked.
    variables: &'static str,
}

fn library(layer: Layer) -> Result<Library> {
    Ok(match layer {
        Layer::Hdf5 => Library {
            name: "HDF5",
            module: HDF5,
            syntax: Fortran { index: "hsize_t", first: 0 },
            variables: "MODULES = $(shell pkg-config --cflags hdf5-openmpi)\n\
                        LDLIBS = $(shell pkg-config --libs-only-L hdf5-openmpi) -lhdf5_fortran \
                        $(shell pkg-config --libs hdf5-openmpi)\n",
        },
        Layer::Pnetcdf => Library {
            name: "PnetCDF",
            module: PNETCDF,
            syntax: Fortran { index: "mpi_offset_kind", first: 1 },
            variables: "PREFIX = $(shell pkg-config --variable=prefix pnetcdf)\n\
                        # Debian has modules in a directory for their format.\n\
                        MODULE = $(firstword $(wildcard $(PREFIX)/include/pnetcdf.mod \
                        $(PREFIX)/lib/*/fortran/*/pnetcdf.mod))\n\
                        MODULES = $(addprefix -I,$(dir $(MODULE)))\n\
                        LDLIBS = $(shell pkg-config --libs pnetcdf)\n",
        },
        other => bail!(
            "programs in Fortran are made for hdf5 and pnetcdf, not for {}: take one of the two, or --language c",
            interface(other)
        ),
    })
}

/// # Errors
/// When there are no programs in Fortran for the layer.
pub fn has(layer: Layer) -> Result<()> {
    library(layer).map(drop)
}

/// The program in Fortran.
///
/// # Errors
/// When there is none for its layer, or it has what the library's interface for Fortran cannot be given.
pub fn sources(program: &Program, groups: &[Group], keep_time: bool) -> Result<Sources> {
    let library = library(program.layer)?;
    for op in &program.ops {
        ensure!(statements::of(op).is_some(), "there is no {op} in Fortran: take --language c");
    }
    names_are_passed(program)?;
    let build = Build {
        variables: format!(
            "FC = mpif90\n{}FFLAGS = -std=f2018 -O2 -Wall -Wextra -Werror $(MODULES)\n",
            library.variables
        ),
        needs: "support.f90 replay.f90",
        compile: "$(FC) $(FFLAGS) -o $@ support.f90 replay.f90 $(LDLIBS)",
        made: "replay *.mod",
    };
    let texts = vec![
        ("replay.f90", source::source(program, groups, library.syntax, keep_time)),
        ("support.f90", [COMMON, library.module].concat()),
        ("Makefile", build.makefile(program)),
    ];
    Ok(Sources { interface: library.name, notes: notes(program), texts })
}

/// Libraries leave out blanks at the end of names that Fortran passes, and MPI also those at the begin of hints.
fn names_are_passed(program: &Program) -> Result<()> {
    let objects = program.objects.iter().flat_map(|object| [Some(&object.path), object.attribute.as_ref()]);
    for name in objects.flatten() {
        ensure!(
            !name.ends_with(' '),
            "`{}` ends with a blank, which names in Fortran cannot: take --language c",
            crate::base::text::escape(name)
        );
    }
    for text in program.hints.iter().flatten().flat_map(|(key, value)| [key, value]) {
        ensure!(
            text.trim_matches(' ') == text,
            "the hint `{}` begins or ends with a blank, which hints in Fortran cannot: take --language c",
            crate::base::text::escape(text)
        );
    }
    Ok(())
}

/// What differs from a program in C.
fn notes(program: &Program) -> Vec<String> {
    let other: Vec<String> =
        program.ops.iter().filter_map(|op| Some(format!("`{op}` is `{}`", statements::other(op)?))).collect();
    let mut notes = Vec::new();
    if !other.is_empty() {
        notes.push(format!(
            "Fortran has neither unsigned integers nor `long`: their calls are those of integers with as many bytes \
             ({}).",
            other.join(", ")
        ));
    }
    notes
}
