//! Wrong usage: an error with an exit status of its own, and the known name that a misspelt one is closest to.

use std::fmt::Display;

/// What the user wrote is wrong: an option, its value, or a file of settings that an option names.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(pub String);

/// An error about a file of settings (`--rules`, `--probes`, `--power`) as wrong usage, with all its causes.
pub fn wrong(error: &anyhow::Error) -> anyhow::Error {
    WrongUsage(format!("{error:#}")).into()
}

/// `anyhow::bail!` for wrong usage.
macro_rules! bail {
    ($($text:tt)*) => { return Err($crate::base::usage::WrongUsage(format!($($text)*)).into()) };
}
pub(crate) use bail;

/// From which similarity (Jaro-Winkler, 0 to 1) a name is taken for a misspelt one.
const SIMILAR: f64 = 0.8;

/// ` (did you mean "hdf5"?)` for a name that is close to a known one, else nothing: to stand behind "no such layer".
pub fn hint<N: AsRef<str>>(name: &str, known: impl IntoIterator<Item = N>) -> String {
    closest(name, known).map_or_else(String::new, |known| format!(" (did you mean {:?}?)", known.as_ref()))
}

/// The known name that is closest to one that is not known, if any is close.
pub fn closest<N: AsRef<str>>(name: &str, known: impl IntoIterator<Item = N>) -> Option<N> {
    let small = name.to_ascii_lowercase();
    let similarity = |known: &N| strsim::jaro_winkler(&small, &known.as_ref().to_ascii_lowercase());
    let all = known.into_iter().map(|known| (similarity(&known), known));
    let best = all.reduce(|best, other| if other.0 > best.0 { other } else { best })?;
    (best.0 >= SIMILAR).then_some(best.1)
}

/// The known names that are closest to one that is not known, the closest first.
pub fn nearest<N: AsRef<str>>(name: &str, known: impl IntoIterator<Item = N>) -> Vec<N> {
    const SHOWN: usize = 4;
    let small = name.to_ascii_lowercase();
    let mut all: Vec<(f64, N)> = known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&small, &known.as_ref().to_ascii_lowercase()), known))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.dedup_by(|a, b| a.1.as_ref() == b.1.as_ref());
    all.into_iter().take(SHOWN).map(|(_, known)| known).collect()
}

/// "one, two, three": what may be written.
pub fn list<N: Display>(names: impl IntoIterator<Item = N>) -> String {
    names.into_iter().map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_found_and_no_distant_one() {
        let known = ["netcdf", "hdf5", "mpiio", "mpi", "stdio", "syscall", "block"];
        for (name, meant) in [
            ("hdf", Some("hdf5")),
            ("HDF5", Some("hdf5")),
            ("mpio", Some("mpiio")),
            ("sycsall", Some("syscall")),
            ("studio", Some("stdio")),
            ("disk", None),
            ("", None),
            ("\u{1f600}", None),
        ] {
            assert_eq!(closest(name, known), meant, "{name}");
        }
        assert_eq!(hint("H5Dwrit", ["H5Dread", "H5Dwrite"]), " (did you mean \"H5Dwrite\"?)");
        assert_eq!(hint("x", [] as [&str; 0]), "");
    }

    #[test]
    fn an_error_stays_wrong_usage_below_a_context() {
        use anyhow::Context as _;
        let error = wrong(&anyhow::anyhow!("inner").context("outer"));
        assert_eq!(error.to_string(), "outer: inner");
        let wrapped: anyhow::Error = Err::<(), _>(error).context("more").unwrap_err();
        assert!(wrapped.is::<WrongUsage>());
    }
}
