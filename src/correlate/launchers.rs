//! Rank, number of ranks and job of a process, from the variables that launchers and schedulers set: those of docs/jobs.md.
#![allow(clippy::expect_used)]

use crate::correlate::testing::Run;
use crate::rows::Row;

/// A launcher, its variables, and the rank, the number of ranks and the job in them.
type Case = (&'static str, &'static [&'static str], Option<i32>, Option<i32>, Option<&'static str>);

const CASES: [Case; 17] = [
    ("none", &["HOME=/root", "RANKS=4", "XRANK=1", "JOB_IDS=8"], None, None, None),
    ("Open MPI", &["OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=1"], Some(3), Some(4), None),
    ("PRRTE, srun --mpi=pmix", &["PMIX_RANK=3", "SLURM_JOB_ID=7", "SLURM_NTASKS=4"], Some(3), Some(4), Some("7")),
    ("Hydra", &["PMI_RANK=3", "PMI_SIZE=4", "PMI_FD=9"], Some(3), Some(4), None),
    ("MVAPICH", &["MV2_COMM_WORLD_RANK=3", "MV2_COMM_WORLD_SIZE=4"], Some(3), Some(4), None),
    ("Slurm", &["SLURM_PROCID=3", "SLURM_NTASKS=4", "SLURM_JOB_ID=7"], Some(3), Some(4), Some("7")),
    (
        "Open MPI in a job of Slurm",
        &["SLURM_PROCID=0", "SLURM_NTASKS=1", "SLURM_JOB_ID=7", "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4"],
        Some(3),
        Some(4),
        Some("7"),
    ),
    ("PBS and Open MPI", &["PBS_JOBID=7.server", "OMPI_COMM_WORLD_RANK=3"], Some(3), None, Some("7.server")),
    ("an array of PBS", &["PBS_JOBID=7[12].server"], None, None, Some("7[12].server")),
    ("PBS and PALS", &["PBS_JOBID=7.server", "PALS_RANKID=3"], Some(3), None, Some("7.server")),
    (
        "PBS, PALS and Cray MPICH",
        &["PBS_JOBID=7.server", "PALS_RANKID=3", "PMI_RANK=3", "PMI_SIZE=4"],
        Some(3),
        Some(4),
        Some("7.server"),
    ),
    ("Flux", &["FLUX_TASK_RANK=3", "FLUX_JOB_SIZE=4", "FLUX_JOB_ID=ƒ2SGqqpKj"], Some(3), Some(4), Some("ƒ2SGqqpKj")),
    ("JSM and LSF", &["JSM_NAMESPACE_RANK=3", "JSM_NAMESPACE_SIZE=4", "LSB_JOBID=7"], Some(3), Some(4), Some("7")),
    ("torchrun and Grid Engine", &["RANK=3", "WORLD_SIZE=4", "JOB_ID=7"], Some(3), Some(4), Some("7")),
    ("blanks around numbers", &["PMI_RANK= 3 ", "PMI_SIZE=4\n"], Some(3), Some(4), None),
    (
        "what acts on terminals",
        &["RANK=\x1b[31m3", "WORLD_SIZE=4\x07", "PBS_JOBID=a\x1b]0;owned\x07\r\n"],
        None,
        None,
        Some("a\x1b]0;owned\x07\r\n"),
    ),
    ("numbers beyond all bounds", &["RANK=99999999999", "WORLD_SIZE=-99999999999"], None, None, None),
];

#[test]
fn rank_number_of_ranks_and_job_are_those_of_the_launcher() {
    let mut run = Run::new();
    for (ix, (_, env, ..)) in (1..).zip(&CASES) {
        run.process(10, ix, None);
        run.exec(20, ix, env);
    }
    // Bytes that are no UTF-8.
    let other = CASES.len() as u32 + 1;
    run.process(10, other, None);
    run.exec_as(20, other, 1, vec![b"PBS_JOBID=\xff\x9b31m".to_vec(), b"RANK=\xff".to_vec()]);
    let rows = run.finish();
    let last = |ix: i32| {
        let mut rows = rows.0.iter().rev().filter_map(|row| if let Row::Process(p) = row { Some(p) } else { None });
        let row = rows.find(|p| p.process_ix == ix).expect("a row");
        (row.rank, row.world_size, row.job_id.as_deref())
    };
    for (ix, (launcher, _, rank, size, job)) in (1..).zip(CASES) {
        assert_eq!(last(ix), (rank, size, job), "{launcher}");
    }
    assert_eq!(last(other as i32), (None, None, Some("\\xff\\x9b31m")));
}
