//! What may help against findings without a change of the program.

use crate::tune::profile::ProgramProfile;
use crate::tune::settings::Settings;

/// Settings that are worth a try, and the findings that they may help against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub rules: Vec<&'static str>,
    pub settings: Settings,
}

/// Where settings have an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingScope {
    Romio,
    Ompio,
    Pnetcdf,
    Lustre,
    /// Programs with the run-time library of gfortran.
    Fortran,
    /// Programs that run with this variable.
    With(&'static str),
    /// Devices, which others on the node use as well.
    Devices,
}

struct Row {
    rules: &'static [&'static str],
    only: SettingScope,
    tries: fn(&ProgramProfile) -> Vec<Settings>,
}

/// Rules about collective calls and how ranks share a file.
const PARALLEL: &[&str] = &[
    "one-writer",
    "collective-wait",
    "independent-strided",
    "data-sieving",
    "misaligned-shared",
    "small-transfers",
    "partial-page-overwrite",
];
const LARGE: i64 = 64 << 20;
/// A stripe, and what pieces of ranks are to begin on multiples of.
const STRIPE: i64 = 4 << 20;
/// Room behind the header of a `NetCDF` file.
const HEADER: i64 = 1 << 20;
const STDIO_BUFFER: i64 = 1 << 20;
/// The most that the kernel is made to read ahead, and what it is set to where it reads too much, in KiB.
const MOST_AHEAD: u64 = 16 << 10;
const LEAST_AHEAD: u64 = 16;

// Hints: ROMIO User's Guide; PnetCDF's `PNETCDF_HINTS`: its README. Parameters of Open MPI: `ompi_info --param all all`.
// Variables of gfortran: "Runtime" in its manual.
const ROWS: &[Row] = &[
    Row { rules: &["data-sieving", "partial-page-overwrite"], only: SettingScope::Romio, tries: |_| vec![sieving()] },
    Row {
        rules: &["misaligned-shared", "small-transfers", "partial-page-overwrite", "collective-broken"],
        only: SettingScope::Romio,
        tries: |_| vec![Settings::hints(&[("romio_cb_write", "enable"), ("romio_cb_read", "enable")])],
    },
    Row { rules: &["one-writer", "collective-wait"], only: SettingScope::Romio, tries: aggregators },
    Row {
        rules: &["one-writer", "layer-overhead"],
        only: SettingScope::Romio,
        tries: |_| vec![Settings::hints(&[("cb_buffer_size", LARGE)])],
    },
    Row { rules: PARALLEL, only: SettingScope::Lustre, tries: stripes },
    Row { rules: PARALLEL, only: SettingScope::Ompio, tries: |_| vec![Settings::variable("OMPI_MCA_io", "^ompio")] },
    Row {
        rules: &["one-writer", "collective-wait", "misaligned-shared", "small-transfers"],
        only: SettingScope::Ompio,
        tries: |_| ["individual", "two_phase", "vulcan"].map(|name| Settings::variable("OMPI_MCA_fcoll", name)).into(),
    },
    Row {
        rules: &["one-writer"],
        only: SettingScope::Ompio,
        tries: |profile| counts(profile).map(|n| Settings::variable("OMPI_MCA_io_ompio_num_aggregators", &n)).collect(),
    },
    Row {
        rules: &["header-growth"],
        only: SettingScope::Pnetcdf,
        tries: |profile| vec![pnetcdf(profile, &format!("nc_header_align_size={HEADER}"))],
    },
    Row {
        rules: &["misaligned-shared"],
        only: SettingScope::Pnetcdf,
        tries: |profile| vec![pnetcdf(profile, &format!("nc_var_align_size={STRIPE}"))],
    },
    Row {
        rules: &["small-transfers", "partial-page-overwrite"],
        only: SettingScope::Fortran,
        tries: |_| vec![buffers()],
    },
    Row {
        rules: &["small-transfers"],
        only: SettingScope::With("GFORTRAN_UNBUFFERED_ALL"),
        tries: |_| vec![Settings::unset("GFORTRAN_UNBUFFERED_ALL")],
    },
    Row {
        rules: &["small-transfers"],
        only: SettingScope::With("PYTHONUNBUFFERED"),
        tries: |_| vec![Settings::unset("PYTHONUNBUFFERED")],
    },
    Row {
        rules: &["readahead-small"],
        only: SettingScope::Devices,
        tries: |profile| ahead(profile, |kib| (kib * 8).min(MOST_AHEAD)),
    },
    Row {
        rules: &["readahead-waste", "random-reads"],
        only: SettingScope::Devices,
        tries: |profile| ahead(profile, |kib| kib.min(LEAST_AHEAD)),
    },
];

fn sieving() -> Settings {
    Settings::hints(&[("romio_ds_read", "disable"), ("romio_ds_write", "disable")])
}

fn buffers() -> Settings {
    let size = Some(STDIO_BUFFER.to_string());
    let names = ["GFORTRAN_FORMATTED_BUFFER_SIZE", "GFORTRAN_UNFORMATTED_BUFFER_SIZE"];
    Settings { environment: names.map(|name| (name.to_owned(), size.clone())).into(), ..Settings::default() }
}

/// Numbers of aggregators: 2, 4, ... and all ranks.
fn counts(profile: &ProgramProfile) -> impl Iterator<Item = String> {
    let ranks = profile.ranks;
    let powers = std::iter::successors(Some(2_usize), |n| n.checked_mul(4)).take_while(move |n| *n < ranks);
    powers.chain((ranks > 1).then_some(ranks)).map(|n| n.to_string())
}

/// ROMIO takes one process of each node, unless a list says otherwise.
fn aggregators(profile: &ProgramProfile) -> Vec<Settings> {
    counts(profile).map(|n| Settings::hints(&[("cb_nodes", n.clone()), ("cb_config_list", format!("*:{n}"))])).collect()
}

fn stripes(_: &ProgramProfile) -> Vec<Settings> {
    ["4", "16", "-1"]
        .map(|count| Settings::hints(&[("striping_factor", count.to_owned()), ("striping_unit", STRIPE.to_string())]))
        .into()
}

/// Hints of `PnetCDF`, behind those that the user has set.
fn pnetcdf(profile: &ProgramProfile, hint: &str) -> Settings {
    const NAME: &str = "PNETCDF_HINTS";
    let own = profile.variables.get(NAME).map_or_else(|| hint.to_owned(), |own| format!("{own};{hint}"));
    Settings::variable(NAME, &own)
}

fn ahead(profile: &ProgramProfile, other: fn(u64) -> u64) -> Vec<Settings> {
    let changed = profile.devices.iter().map(|(device, kib)| (device, *kib, other(*kib)));
    let changed = changed.filter(|(_, is, to)| is != to);
    let one = |(device, _, to): (&String, u64, u64)| Settings {
        read_ahead_kib: [(device.clone(), to)].into(),
        ..Settings::default()
    };
    changed.map(one).collect()
}

impl SettingScope {
    fn holds(self, profile: &ProgramProfile) -> bool {
        match self {
            Self::Romio => profile.romio,
            Self::Ompio => profile.ompio,
            Self::Pnetcdf => profile.pnetcdf,
            Self::Lustre => profile.lustre && profile.romio,
            Self::Fortran => profile.fortran,
            Self::With(name) => profile.variables.contains_key(name),
            Self::Devices => !profile.devices.is_empty(),
        }
    }
}

/// What to try, in the order of the table; with `devices` also what changes them for all on the node.
pub fn of(profile: &ProgramProfile, devices: bool) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for row in ROWS.iter().filter(|row| row.only.holds(profile) && (devices || row.only != SettingScope::Devices)) {
        let rules: Vec<&'static str> = row.rules.iter().copied().filter(|rule| profile.found(rule)).collect();
        if rules.is_empty() {
            continue;
        }
        let new = (row.tries)(profile).into_iter().map(|settings| Candidate { rules: rules.clone(), settings });
        for candidate in new {
            if all.iter().all(|other| other.settings != candidate.settings) {
                all.push(candidate);
            }
        }
    }
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::analysis::findings::rules::RULES;

    fn profile(rules: &[&'static str]) -> ProgramProfile {
        let rules = rules.iter().map(|rule| (*rule, None)).collect();
        ProgramProfile { rules, ranks: 4, ..ProgramProfile::default() }
    }

    fn descriptions(profile: &ProgramProfile) -> Vec<String> {
        of(profile, true).iter().map(|candidate| candidate.settings.description()).collect()
    }

    #[test]
    fn every_rule_of_the_table_exists() {
        for rule in ROWS.iter().flat_map(|row| row.rules) {
            assert!(RULES.iter().any(|known| known.id == *rule), "{rule}");
        }
    }

    #[test]
    fn settings_are_tried_where_they_have_an_effect() {
        let all = profile(&["data-sieving", "one-writer"]);
        assert_eq!(descriptions(&all), [""; 0]);
        let romio = ProgramProfile { romio: true, ..all.clone() };
        let expected = [
            "romio_ds_read=disable, romio_ds_write=disable",
            "cb_config_list=*:2, cb_nodes=2",
            "cb_config_list=*:4, cb_nodes=4",
            "cb_buffer_size=67108864",
        ];
        assert_eq!(descriptions(&romio), expected);
        assert_eq!(of(&romio, false)[1].rules, ["one-writer"]);
        let lustre = ProgramProfile { lustre: true, ..romio };
        assert!(descriptions(&lustre).contains(&"striping_factor=16, striping_unit=4194304".to_owned()));
        let ompio = ProgramProfile { ompio: true, ..all };
        let expected = [
            "OMPI_MCA_io=^ompio",
            "OMPI_MCA_fcoll=individual",
            "OMPI_MCA_fcoll=two_phase",
            "OMPI_MCA_fcoll=vulcan",
            "OMPI_MCA_io_ompio_num_aggregators=2",
            "OMPI_MCA_io_ompio_num_aggregators=4",
        ];
        assert_eq!(descriptions(&ompio), expected);
        // A finding that no setting changes.
        let both = ProgramProfile { romio: true, ompio: true, ..profile(&["sync-per-record"]) };
        assert_eq!(descriptions(&both), [""; 0]);
    }

    #[test]
    fn devices_are_left_alone_unless_asked_for() {
        let rules = ["readahead-small", "random-reads"];
        let slow = ProgramProfile { devices: [("8:0".to_owned(), 128)].into(), ..profile(&rules) };
        assert_eq!(descriptions(&slow), ["read-ahead of 8:0 1024 KiB", "read-ahead of 8:0 16 KiB"]);
        assert_eq!(of(&slow, false), []);
        let devices = [("8:0".to_owned(), MOST_AHEAD)].into();
        let largest = ProgramProfile { devices, ..profile(&["readahead-small"]) };
        assert_eq!(descriptions(&largest), [""; 0]);
    }

    #[test]
    fn variables_of_the_user_count() {
        let python = ProgramProfile {
            variables: [("PYTHONUNBUFFERED".to_owned(), "1".to_owned())].into(),
            ..profile(&["small-transfers"])
        };
        assert_eq!(descriptions(&python), ["PYTHONUNBUFFERED unset"]);
        let own = [("PNETCDF_HINTS".to_owned(), "cb_nodes=2".to_owned())].into();
        let pnetcdf = ProgramProfile { variables: own, pnetcdf: true, ..profile(&["header-growth"]) };
        assert_eq!(descriptions(&pnetcdf), ["PNETCDF_HINTS=cb_nodes=2;nc_header_align_size=1048576"]);
    }
}
