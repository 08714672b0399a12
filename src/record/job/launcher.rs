//! The parallel job that this tracer was started in, as one of its ranks: from the launcher's variables. Pure.

use std::hash::{DefaultHasher, Hash, Hasher as _};

/// A launcher: the variables that identify its jobs and their ranks.
struct Launcher {
    /// Variables that all have, and that are together the same for all ranks of a job, and for no other job.
    job: &'static [&'static str],
    /// The number of ranks: the first of them that is there.
    ranks: &'static [&'static str],
    /// The same on this node.
    local: &'static [&'static str],
    /// The number of this one.
    rank: &'static [&'static str],
}

/// Of several that are there the first one counts: it was started by the others, and not the other way round.
const LAUNCHERS: [Launcher; 5] = [
    // Open MPI, and `srun --mpi=pmix`.
    Launcher {
        job: &["PMIX_NAMESPACE"],
        ranks: &["OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"],
        local: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        rank: &["OMPI_COMM_WORLD_RANK", "PMIX_RANK"],
    },
    // Open MPI before it had PMIx.
    Launcher {
        job: &["OMPI_MCA_ess_base_jobid"],
        ranks: &["OMPI_COMM_WORLD_SIZE"],
        local: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        rank: &["OMPI_COMM_WORLD_RANK"],
    },
    // Intel MPI.
    Launcher { job: &["I_MPI_HYDRA_UUID"], ..PMI },
    // Hydra, where it listens for its ranks.
    Launcher { job: &["PMI_PORT"], ..PMI },
    Launcher {
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
        ranks: &["SLURM_STEP_NUM_TASKS"],
        local: &[],
        rank: &["SLURM_PROCID"],
    },
];

/// Hydra (MPICH and its kind) has no such variable: each rank has one end of a pair of sockets that the launcher made.
const PMI_FD: &str = "PMI_FD";
const PMI: Launcher = Launcher { job: &[], ranks: &["PMI_SIZE"], local: &["MPI_LOCALNRANKS"], rank: &["PMI_RANK"] };

/// Steps of Slurm from here on are no parallel programs, but the script of a job, its shell and the like
/// (`SLURM_MAX_NORMAL_STEP_ID` in `slurm.h`).
const NO_STEP: u32 = 0xffff_fff0;

/// A job of several ranks, and one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The same for all its ranks on a node, and for no other job.
    pub name: String,
    /// How many of its ranks are on this node, where the launcher sets that.
    pub local: Option<u32>,
    /// The number of this one, where the launcher sets that.
    pub rank: Option<u32>,
}

/// The job of a process with these variables. `maker` gives the process that made the socket of that number, `here` what else keeps jobs
/// apart.
pub fn of(var: impl Fn(&str) -> Option<String>, maker: impl Fn(i32) -> Option<String>, here: impl Hash) -> Option<Job> {
    let named = LAUNCHERS.iter().find_map(|launcher| {
        let values: Vec<String> = launcher.job.iter().map_while(|name| var(name)).collect();
        (values.len() == launcher.job.len()).then(|| (launcher, values.join(" ")))
    });
    let by_socket = || Some((&PMI, maker(var(PMI_FD)?.parse().ok()?)?));
    // Hydra may have been started by a rank of another launcher, or in a step of one: its own socket is nearer.
    let (launcher, value) = by_socket().or(named)?;
    let number = |names: &[&str]| names.iter().find_map(|name| var(name)?.parse::<u32>().ok());
    if launcher.job.contains(&"SLURM_STEP_ID") && number(&["SLURM_STEP_ID"]).is_none_or(|step| step >= NO_STEP) {
        return None;
    }
    // A single rank needs no rendezvous.
    if number(launcher.ranks) == Some(1) {
        return None;
    }
    let mut hash = DefaultHasher::new();
    (launcher.job, value, here).hash(&mut hash);
    let step = || tasks(&var("SLURM_STEP_TASKS_PER_NODE")?, number(&["SLURM_NODEID"])?);
    let local = number(launcher.local).or_else(|| step().filter(|_| launcher.ranks.contains(&"SLURM_STEP_NUM_TASKS")));
    Some(Job { name: format!("{:016x}", hash.finish()), local, rank: number(launcher.rank) })
}

/// The tasks on one of the nodes of a step: `4(x2),3` are four on each of two nodes, and three on the next one.
fn tasks(all: &str, node: u32) -> Option<u32> {
    let mut nodes = 0_u32;
    for run in all.split(',') {
        let (tasks, times) = run.strip_suffix(')').and_then(|run| run.split_once("(x")).unwrap_or((run, "1"));
        nodes = u32::checked_add(nodes, times.parse().ok()?)?;
        if node < nodes {
            return tasks.parse().ok();
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn job(vars: &[(&str, &str)]) -> Option<Job> {
        let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        of(var, |fd| (fd == 6).then(|| "a proxy".to_owned()), "node1")
    }

    fn name(vars: &[(&str, &str)]) -> String {
        job(vars).unwrap().name
    }

    #[test]
    fn ranks_of_one_job_meet_and_others_do_not() {
        let open = |space, rank| {
            let size = [("OMPI_COMM_WORLD_SIZE", "8"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2")];
            job(&[size.as_slice(), &[("PMIX_NAMESPACE", space), ("PMIX_RANK", rank)]].concat()).unwrap()
        };
        assert_eq!(open("17", "0").name, open("17", "5").name);
        assert_eq!(open("17", "5").rank, Some(5));
        assert_ne!(open("17", "0").name, open("18", "0").name);
        assert_eq!(open("17", "0").local, Some(2));
        let step = |job, step| name(&[("SLURM_JOB_ID", job), ("SLURM_STEP_ID", step), ("SLURM_PROCID", "3")]);
        assert_eq!(step("1", "0"), step("1", "0"));
        assert_ne!(step("1", "1"), step("1", "0"));
        assert_ne!(step("1", "10"), step("11", "0"));
        let hydra = job(&[("PMI_FD", "6"), ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "4"), ("PMI_RANK", "1")]).unwrap();
        assert_eq!((hydra.local, hydra.rank), (Some(4), Some(1)));
    }

    #[test]
    fn slurm_gives_the_number_of_ranks_of_a_node() {
        let step = |tasks, node| {
            let step = [("SLURM_JOB_ID", "1"), ("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "7")];
            let job = job(&[step.as_slice(), &[("SLURM_STEP_TASKS_PER_NODE", tasks), ("SLURM_NODEID", node)]].concat());
            job.unwrap()
        };
        let cases = [("4", "0", Some(4)), ("4(x2),3", "1", Some(4)), ("4(x2),3", "2", Some(3)), ("4(x2),3", "3", None)];
        for (tasks, node, local) in cases {
            assert_eq!(step(tasks, node).local, local, "{tasks} {node}");
        }
        for wrong in ["", "x", "4(x", "4(x2", "(x2)", "4(x99999999999)", "4(x4294967295),4(x2)"] {
            assert_eq!(step(wrong, "4294967295").local, None, "{wrong}");
        }
        assert_eq!(step("4", "0").rank, Some(7));
    }

    #[test]
    fn the_launcher_that_started_it_counts() {
        // mpirun starts its daemons in a step of Slurm, one for each node.
        let slurm = [("SLURM_JOB_ID", "1"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "1")];
        let open = [("PMIX_NAMESPACE", "17"), ("OMPI_COMM_WORLD_SIZE", "8")];
        assert_eq!(job(&[slurm.as_slice(), &open].concat()), job(&open));
        let hydra = [("PMI_FD", "6"), ("PMI_SIZE", "4")];
        assert_eq!(job(&[slurm.as_slice(), &hydra].concat()), job(&hydra));
    }

    #[test]
    fn what_is_no_job_of_several_ranks() {
        assert_eq!(job(&[]), None);
        assert_eq!(job(&[("PMIX_NAMESPACE", "17"), ("OMPI_COMM_WORLD_SIZE", "1")]), None);
        // The script of a job, and its shell.
        assert_eq!(job(&[("SLURM_JOB_ID", "1"), ("SLURM_NTASKS", "8")]), None);
        assert_eq!(job(&[("SLURM_JOB_ID", "1"), ("SLURM_STEP_ID", "4294967290")]), None);
        assert_eq!(job(&[("SLURM_JOB_ID", "1"), ("SLURM_STEP_ID", "batch")]), None);
        // A socket that is none.
        assert_eq!(job(&[("PMI_FD", "7"), ("PMI_SIZE", "4")]), None);
        assert_eq!(job(&[("PMI_FD", "x")]), None);
    }
}
