//! Which libraries there are, what a file is recognised by as one of them, and the catalog of a run: built-in rows, then the user's.

use crate::base::usage;
use crate::catalog::def::row;
use crate::catalog::phase::Phase;
use crate::catalog::{Fails, Family, Row, rows};
use crate::vocabulary::{self, Kind, Layer};
use anyhow::{Context as _, Result, bail};

/// Rows of a catalog (`IOT_MAX_SPECS`).
pub const MAX_ROWS: usize = 4096;

/// Which files are meant: by name, or by path when it has a slash; `*` and `?` stand for any characters and for one.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    glob: glob::Pattern,
}

impl Pattern {
    pub fn new(text: &str) -> Result<Self> {
        if text.is_empty() {
            bail!("an empty name of a file");
        }
        let glob = glob::Pattern::new(text).with_context(|| format!("{text:?} is no pattern of a file name"))?;
        Ok(Self { text: text.to_owned(), glob })
    }

    /// A library's name stands for its versions too: `libx.so` is `libx.so.1`.
    pub fn matches(&self, path: &str) -> bool {
        if self.text.contains('/') {
            return self.glob.matches(path);
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let versions = self.text.split_once(".so").is_some_and(|(_, rest)| rest.is_empty());
        let version = || name.strip_prefix(self.text.as_str()).is_some_and(|rest| rest.starts_with('.'));
        self.glob.matches(name) || (versions && version())
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A library of the catalog, and what identifies a file of it: all of these conditions hold.
#[derive(Debug, Clone)]
pub struct Library {
    pub family: Family,
    /// The name shown to people.
    pub name: &'static str,
    /// The layer its rows belong to.
    pub layer: Layer,
    /// It defines all of these symbols.
    pub symbols: Vec<&'static str>,
    /// It is called so.
    pub file: Option<Pattern>,
    /// It is an executable: of phases without a file.
    pub program: bool,
}

impl Library {
    /// Is the file at `path`, which defines some symbols and may be an executable, this library?
    pub fn is(&self, path: &str, program: bool, defines: impl Fn(&str) -> bool) -> bool {
        self.file.as_ref().is_none_or(|file| file.matches(path))
            && (program || !self.program)
            && self.symbols.iter().all(|symbol| defines(symbol))
    }

    /// Does it stand for phases, which are looked for in every file that matches, and need not be in any one of them?
    pub fn is_phases(&self) -> bool {
        self.symbols.is_empty()
    }
}

/// What is traced: every row, and the libraries that rows belong to. The position of a row is its number on the wire.
#[derive(Debug, Clone)]
pub struct Catalog {
    rows: Vec<Row>,
    libraries: Vec<Library>,
    /// Layers of which secondary rows are traced, too.
    whole: Vec<Layer>,
    /// The functions that are asked for of layers of which not all are.
    chosen: Vec<(Layer, glob::Pattern)>,
}

impl Catalog {
    /// The rows and libraries of this program.
    pub fn built_in() -> Self {
        let library = |family: Family| Library {
            family,
            name: family.name(),
            layer: family.layer(),
            symbols: family.sentinels().to_vec(),
            file: None,
            program: false,
        };
        Self { rows: rows(), libraries: Family::LIBRARIES.map(library).to_vec(), whole: Vec::new(), chosen: Vec::new() }
    }

    /// The built-in libraries with other rows.
    #[cfg(test)]
    pub fn of(rows: Vec<Row>) -> Self {
        Self { rows, ..Self::built_in() }
    }

    /// Asks for all calls of these layers, also for those of secondary rows, and for communication inside communication.
    pub fn ask_for_all(&mut self, layers: impl IntoIterator<Item = Layer>) {
        self.whole.extend(layers);
        if self.whole.contains(&Layer::Mpi) {
            for row in self.rows.iter_mut().filter(|row| row.layer == Layer::Mpi) {
                row.outermost = false;
            }
        }
    }

    /// Asks for functions of a layer: those, of all patterns of the layer, that one of them fits, and what
    /// [shows what they do](Row::stands_alone).
    ///
    /// # Errors
    /// When none fits, with the names that are close to it.
    pub fn choose(&mut self, layer: Layer, pattern: &glob::Pattern) -> Result<()> {
        let names = || self.rows.iter().filter(|r| r.layer == layer && r.inner().is_none()).map(|r| r.symbol);
        if !names().any(|name| pattern.matches(name)) {
            let near = usage::nearest(pattern.as_str().trim_matches(['*', '?']), names());
            bail!("no function of layer {layer} is like {pattern}; near it: {}", usage::list(near));
        }
        self.chosen.push((layer, pattern.clone()));
        Ok(())
    }

    /// Why a row is not probed: the user has not asked for it.
    pub fn leaves_out(&self, row: &Row) -> Option<String> {
        let layer = row.layer;
        let patterns = || self.chosen.iter().filter(|(of, _)| *of == layer).map(|(_, pattern)| pattern);
        if patterns().any(|pattern| pattern.matches(row.symbol)) || matches!(row.family, Family::User(_)) {
            return None;
        }
        if patterns().next().is_some() && (row.stands_alone() || row.secondary) {
            let asked: Vec<String> = patterns().map(|pattern| format!("{layer}:{pattern}")).collect();
            return Some(format!("not asked for: --layers {}", asked.join(",")));
        }
        let left_out = row.secondary && !self.whole.contains(&layer);
        left_out.then(|| format!("many calls that do no I/O: --layers {layer}=all records them"))
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub fn libraries(&self) -> &[Library] {
        &self.libraries
    }

    /// Is a library of these layers in it?
    pub fn serves(&self, layers: &[Layer]) -> bool {
        self.libraries.iter().any(|library| layers.contains(&library.layer))
    }

    /// The library of a row; none for system calls.
    pub fn library(&self, family: Family) -> Option<&Library> {
        self.libraries.iter().find(|library| library.family == family)
    }

    /// Rows that the user added.
    pub fn user_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| matches!(row.family, Family::User(_)))
    }

    /// Adds a library, which gets its family; rows follow with [`Catalog::add_row`].
    pub(super) fn add_library(&mut self, library: Library) -> Result<Family> {
        let users = self.libraries.iter().filter(|l| matches!(l.family, Family::User(_))).count();
        let family = Family::User(u8::try_from(users).context("more than 256 libraries and files with phases")?);
        self.libraries.push(Library { family, ..library });
        Ok(family)
    }

    pub(super) fn add_row(&mut self, row: Row) -> Result<()> {
        if self.rows.len() >= MAX_ROWS {
            let left = MAX_ROWS - rows().len();
            bail!("there is room for {left} functions besides the built-in ones, and these are more");
        }
        self.rows.push(row);
        Ok(())
    }

    /// Adds a phase.
    pub fn add_phase(&mut self, phase: &Phase) -> Result<()> {
        let file = phase.binary.as_deref().map(Pattern::new).transpose()?;
        let text = |file: Option<&Pattern>| file.map(|f| f.text().to_owned());
        let known = |l: &&Library| l.is_phases() && text(l.file.as_ref()) == phase.binary;
        let family = match self.libraries.iter().find(known) {
            Some(library) => library.family,
            None => self.add_library(Library {
                family: Family::Syscall, // until it has one
                name: "phases",
                layer: Layer::App,
                symbols: Vec::new(),
                program: file.is_none(),
                file,
            })?,
        };
        let function = vocabulary::intern(&phase.function)?;
        if self.rows.iter().any(|r| r.family == family && r.symbol == function) {
            return Ok(());
        }
        let row = row(family, Layer::App, function, Kind::Other).unrelated().fails(Fails::Never).done();
        debug_assert!(row.is_phase());
        self.add_row(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_meant_by_name_or_by_path() {
        let matches = |pattern: &str, path: &str| Pattern::new(pattern).unwrap().matches(path);
        assert!(matches("app", "/opt/bin/app") && !matches("app", "/opt/app/bin") && !matches("app", "/opt/bin/app.x"));
        assert!(matches("libx.so", "/usr/lib/libx.so.1.2") && !matches("libx.so", "/usr/lib/libx.so1"));
        assert!(matches("libx-*.so*", "/w/libx-1a2b.so.7") && !matches("libx-*.so", "/w/libx.so"));
        assert!(matches("/opt/bin/app", "/opt/bin/app") && !matches("/opt/app", "/usr/opt/app"));
        assert!(Pattern::new("").is_err() && Pattern::new("a[").is_err());
    }

    #[test]
    fn phases_are_rows_behind_all_others() {
        let mut catalog = Catalog::built_in();
        for phase in ["main", "step@app", "io::write@app", "main", "step"] {
            catalog.add_phase(&phase.parse().unwrap()).unwrap();
        }
        let built_in = rows().len();
        let added: Vec<_> = catalog.rows()[built_in..].iter().map(|r| (r.family, r.symbol)).collect();
        let user = Family::User;
        assert_eq!(added, [(user(0), "main"), (user(1), "step"), (user(1), "io::write"), (user(0), "step")]);
        assert!(catalog.user_rows().all(Row::is_phase));
        assert!(catalog.library(user(0)).unwrap().is("/x/app", true, |_| false));
        assert!(!catalog.library(user(0)).unwrap().is("/x/libx.so", false, |_| true));
        assert!(catalog.library(user(1)).unwrap().is("/x/app", false, |_| false));
    }

    #[test]
    fn functions_are_chosen_by_name_and_what_they_need_stays() {
        let mut catalog = Catalog::built_in();
        let mut choose = |layer, pattern| catalog.choose(layer, &glob::Pattern::new(pattern).unwrap());
        choose(Layer::Hdf5, "H5D*").unwrap();
        choose(Layer::Mpiio, "MPI_File_write_at").unwrap();
        choose(Layer::Mpiio, "MPI_File_read_at*").unwrap();
        let error = choose(Layer::Mpiio, "MPI_File_wrte_at*").unwrap_err().to_string();
        assert!(
            error.contains("no function of layer mpiio is like MPI_File_wrte_at*; near it: MPI_File_write_at"),
            "{error}"
        );
        let rows = rows();
        let why = |name: &str| catalog.leaves_out(rows.iter().find(|row| row.symbol == name).unwrap());
        for kept in [
            "H5Dwrite",
            "H5Fopen",
            "H5Fclose",
            "H5Pset_chunk",
            "H5Screate_simple",
            "MPI_File_write_at",
            "MPI_File_open",
            "MPI_File_seek",
            "MPI_File_set_view",
            "MPI_File_iwrite",
            "MPI_File_write_all_end",
            "MPI_File_read_at_all",
            "MPI_Info_set",
            "fread",
            "MPI_Barrier",
        ] {
            assert_eq!(why(kept), None, "{kept}");
        }
        assert_eq!(why("H5Fflush").unwrap(), "not asked for: --layers hdf5:H5D*");
        let both = "not asked for: --layers mpiio:MPI_File_write_at,mpiio:MPI_File_read_at*";
        for left_out in ["MPI_File_write", "MPI_File_sync", "MPI_File_get_size"] {
            assert_eq!(why(left_out).unwrap(), both, "{left_out}");
        }
    }

    #[test]
    fn there_is_an_end_to_the_rows() {
        let mut catalog = Catalog::built_in();
        let mut add = |n: usize| catalog.add_phase(&format!("f{n}").parse().unwrap());
        let error = (0..5000).find_map(|n| add(n).err()).unwrap().to_string();
        assert!(error.contains(&format!("room for {}", MAX_ROWS - rows().len())), "{error}");
        assert_eq!(catalog.rows().len(), MAX_ROWS);
    }
}
