//! The caller of a call: threads, processes, ranks.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::base::paths::lossy_path;
use crate::correlate::calls::phases::Phases;
use crate::correlate::calls::stack::Stack;
use crate::correlate::resources::cgroup;
use crate::event::{Cached, Container, TextKind};
use crate::rows::{Process, Row, Span, Thread};
use crate::{HashMap, catalog};

/// Whose handles a call uses: a process, or a thread whose process is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    Process(u32),
    Thread(u32),
}

impl Owner {
    /// The process's index in rows; -1 when it is not known.
    pub fn process_ix(self) -> i32 {
        match self {
            Self::Process(p) => p as i32,
            Self::Thread(_) => -1,
        }
    }
}

/// A text that waits for its call.
pub struct Text {
    pub seq: u32,
    pub what: TextKind,
    pub bytes: Vec<u8>,
    /// Where the absolute paths of the process start.
    pub root: u64,
    pub cut: bool,
}

/// Texts kept per thread: as many as calls can be open on it. More means that their calls were lost.
const MAX_TEXTS: usize = 256;

/// A thread, its open phases, and the calls that wait for the end of one that encloses them.
pub struct ThreadState {
    pub owner: Owner,
    pub pid: i32,
    pub tid: i32,
    pub rank: Option<i32>,
    pub run: Run,
    pub phases: Phases,
    pub stack: Stack,
    pub texts: Vec<Text>,
    /// Page cache counts for the call of this number, which comes next.
    pub cached: Option<(u32, Cached)>,
    /// How long calls inside the call of this number took, which comes next; ns.
    pub inner: Option<(u32, i64)>,
}

impl ThreadState {
    pub fn unknown(thread: u32) -> Self {
        Self {
            owner: Owner::Thread(thread),
            pid: 0,
            tid: 0,
            rank: None,
            run: Run::default(),
            phases: Phases::default(),
            stack: Stack::default(),
            texts: Vec::new(),
            cached: None,
            inner: None,
        }
    }

    /// A call of this thread of which no more is known than its function and its start and duration.
    pub fn span(&self, row: &catalog::Row, id: i64, cpu: u16, (start_ns, dur_ns): (i64, i64)) -> Span {
        let function = (row.layer, row.op, row.kind);
        Span {
            pid: self.pid,
            tid: self.tid,
            rank: self.rank,
            cpu: cpu as i16,
            ..Span::new(id, function, self.owner.process_ix(), (start_ns, dur_ns))
        }
    }

    /// Keeps a text; false when an older one had to go.
    pub fn keep(&mut self, text: Text) -> bool {
        let full = self.texts.len() >= MAX_TEXTS;
        if full {
            self.texts.remove(0);
        }
        self.texts.push(text);
        !full
    }
}

/// The process of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owned {
    pub process_ix: i32,
    pub pid: i32,
    pub rank: Option<i32>,
}

impl Owned {
    pub const fn of(span: &Span) -> Self {
        Self { process_ix: span.process_ix, pid: span.pid, rank: span.rank }
    }
}

/// Environment variables set by an MPI launcher or a scheduler, the preferred first.
pub struct Variables {
    pub rank: Vec<String>,
    pub size: Vec<String>,
    pub job: Vec<String>,
}

/// Programs of one process whose ranks are remembered: sums of their calls come later than what they execute next, but
/// soon.
const PROGRAMS: usize = 16;

/// The ranks of a process, by the numbers of the programs that it executed, in their order: what comes before the first
/// one was its parent's program.
#[derive(Clone, Default)]
pub struct Ranks(VecDeque<(u32, Option<i32>)>);

impl Ranks {
    fn executes(&mut self, program: u32, rank: Option<i32>) {
        self.0.retain(|(known, _)| *known != program);
        self.0.truncate(PROGRAMS);
        self.0.push_front((program, rank));
    }

    /// What the process was when it ran this program.
    pub fn owned(&self, now: Owned, program: Option<u32>) -> Owned {
        let known = self.0.iter().find(|(known, _)| Some(*known) == program);
        known.map_or(now, |(_, rank)| Owned { rank: *rank, ..now })
    }
}

struct ProcessState {
    row: Process,
    ranks: Ranks,
    threads: Vec<u32>,
    run: Run,
    environment: EnvironmentIds,
}

/// Container, job and step as the environment of a process gives them.
#[derive(Clone, Default)]
struct EnvironmentIds {
    container: Option<String>,
    job: Option<String>,
    step: Option<String>,
}

impl ProcessState {
    /// Fills in container, unit and job: the environment first, else the control group. For containers the group is to
    /// be trusted more.
    fn assign_membership(&mut self) {
        let cgroup = self.row.cgroup.as_deref().map(cgroup::of).unwrap_or_default();
        let environment = self.environment.clone();
        self.row.container = cgroup.container.or(environment.container);
        self.row.unit = cgroup.unit;
        self.row.job_id = environment.job.or(cgroup.job);
        self.row.step_id = environment.step.or(cgroup.step);
    }
}

/// Variables with the image that a process runs in, where the runtime makes no control groups: Apptainer, and what it was
/// called before.
const IMAGE: [&str; 2] = ["APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"];

/// Variables with the part of a job: Slurm's.
const STEP: &str = "SLURM_STEP_ID";

/// Identifies the run that a process belongs to: the job's id, and the values of `RUN`.
pub type Run = Arc<[String]>;

/// Variables that are equal for all processes of one run of a launcher, and different for another: `PMIx` (Open MPI, Slurm),
/// Intel MPI's, Slurm. MPICH's launcher has none.
const RUN: [&str; 3] = ["PMIX_NAMESPACE", "I_MPI_HYDRA_UUID", "SLURM_STEP_ID"];

/// Everyone alive.
pub struct Processes {
    variables: Variables,
    alive: HashMap<u32, ProcessState>,
    pub threads: HashMap<u32, ThreadState>,
}

impl Processes {
    /// Puts into a span whose thread it is, where that became known since; false where it is not.
    pub fn learnt(&self, thread: u32, span: &mut Span) -> bool {
        let Some(known) = self.threads.get(&thread).filter(|t| t.owner != Owner::Thread(thread)) else { return false };
        (span.process_ix, span.pid, span.tid) = (known.owner.process_ix(), known.pid, known.tid);
        span.rank = known.rank;
        true
    }

    pub fn new(variables: Variables) -> Self {
        Self { variables, alive: HashMap::default(), threads: HashMap::default() }
    }

    /// The process, made up from what is known when its own event was lost.
    fn known(&mut self, process: u32, start_ns: i64) -> &mut ProcessState {
        self.alive.entry(process).or_insert_with(|| ProcessState {
            row: Process::placeholder(process as i32, start_ns),
            ranks: Ranks::default(),
            threads: Vec::new(),
            run: Run::default(),
            environment: EnvironmentIds::default(),
        })
    }

    pub fn process(&mut self, start_ns: i64, process: u32, parent: Option<u32>, ids: [u32; 3], out: &mut Vec<Row>) {
        let forked_by = parent.and_then(|p| self.alive.get(&p));
        let forked_by = forked_by.map(|p| (p.row.clone(), Arc::clone(&p.run), p.environment.clone()));
        let ProcessState { row, ranks, run, environment, .. } = self.known(process, start_ns);
        let inherited = match forked_by {
            Some((inherited, same_run, same)) => {
                (*run, *environment) = (same_run, same);
                inherited
            }
            None => row.clone(),
        };
        *row = Process {
            pid: ids[0] as i32,
            ppid: ids[1] as i32,
            uid: ids[2] as i32,
            start_ns,
            process_ix: process as i32,
            end_ns: None,
            exit_code: None,
            ..inherited
        };
        ranks.executes(0, row.rank);
        out.push(Row::Process(Box::new(row.clone())));
    }

    /// The pid of a process; 0 when it is not known.
    pub fn pid(&self, process: u32) -> i32 {
        self.alive.get(&process).map_or(0, |p| p.row.pid)
    }

    /// The process as rows name it, when it ran this program (none: now).
    pub fn owned(&self, process: u32, program: Option<u32>) -> Owned {
        let placeholder = Owned { process_ix: process as i32, pid: 0, rank: None };
        self.alive.get(&process).map_or(placeholder, |known| {
            let now = Owned { pid: known.row.pid, rank: known.row.rank, ..placeholder };
            known.ranks.owned(now, program)
        })
    }

    pub fn ranks(&self, process: u32) -> Ranks {
        self.alive.get(&process).map(|p| p.ranks.clone()).unwrap_or_default()
    }

    /// Notes the thread; returns whose handles it used so far when that was not known.
    pub fn thread(
        &mut self,
        t_ns: i64,
        thread: u32,
        process: u32,
        ids: [u32; 2],
        comm: [u8; 16],
        out: &mut Vec<Row>,
    ) -> Option<Owner> {
        let [pid, tid] = ids.map(|id| id as i32);
        let state = self.known(process, t_ns);
        if state.row.pid == 0 {
            state.row.pid = pid;
        }
        let (rank, run) = (state.row.rank, Arc::clone(&state.run));
        let known = self.threads.entry(thread).or_insert_with(|| ThreadState::unknown(thread));
        let before = known.owner;
        (known.owner, known.pid, known.tid, known.rank) = (Owner::Process(process), pid, tid, rank);
        known.run = run;
        if before != known.owner {
            self.known(process, t_ns).threads.push(thread);
        }
        let end = comm.iter().position(|b| *b == 0).unwrap_or(comm.len());
        let comm = lossy_path(&comm[..end]);
        out.push(Row::Thread(Thread { thread_ix: thread as i32, process_ix: process as i32, pid, tid, comm }));
        (before == Owner::Thread(thread)).then_some(before)
    }

    pub fn exec(&mut self, t_ns: i64, process: u32, program: &Program, out: &mut Vec<Row>) {
        let of = |name: &str| {
            let value = |v: &Vec<u8>| v.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(lossy_path);
            program.env.iter().find_map(value)
        };
        let value = |names: &[String]| names.iter().find_map(|name| of(name));
        let number = |names: &[String]| value(names).and_then(|v| v.trim().parse::<i32>().ok());
        let rank = number(&self.variables.rank);
        let world_size = number(&self.variables.size);
        let job_id = value(&self.variables.job);
        let run: Run = std::iter::once(job_id.clone()).chain(RUN.map(of)).map(Option::unwrap_or_default).collect();
        let container = IMAGE.into_iter().find_map(of).map(|image| format!("apptainer://{image}"));
        let environment = EnvironmentIds { container, job: job_id, step: of(STEP) };
        let state = self.known(process, t_ns);
        state.run = Arc::clone(&run);
        state.environment = environment;
        state.row.exe = Some(lossy_path(&program.exe));
        state.row.cmdline = program.args.iter().map(|a| lossy_path(a)).collect();
        (state.row.rank, state.row.world_size) = (rank, world_size);
        state.ranks.executes(program.number, rank);
        state.assign_membership();
        out.push(Row::Process(Box::new(state.row.clone())));
        let threads = state.threads.clone();
        for thread in &threads {
            if let Some(known) = self.threads.get_mut(thread) {
                known.rank = rank;
                known.run = Arc::clone(&run);
            }
        }
    }

    /// Notes the user of a process, and its control group with what is known of the container that this is of.
    pub fn belongs(
        &mut self,
        t_ns: i64,
        process: u32,
        (uid, user): (u32, Option<String>),
        cgroup: Option<(String, Container)>,
        out: &mut Vec<Row>,
    ) {
        let state = self.known(process, t_ns);
        let before = state.row.clone();
        (state.row.uid, state.row.user) = (uid as i32, user);
        if let Some((cgroup, container)) = cgroup {
            state.row.cgroup = Some(cgroup);
            (state.row.container_name, state.row.container_image) = (container.name, container.image);
        }
        state.assign_membership();
        if state.row != before {
            out.push(Row::Process(Box::new(state.row.clone())));
        }
    }

    /// Ends a process; returns its threads, for the caller to empty and drop.
    pub fn exit(&mut self, t_ns: i64, process: u32, status: u32, out: &mut Vec<Row>) -> Vec<u32> {
        self.known(process, t_ns);
        let Some(mut state) = self.alive.remove(&process) else { return Vec::new() };
        state.row.end_ns = Some(t_ns);
        state.row.exit_code = Some(exit_code(status));
        out.push(Row::Process(Box::new(state.row)));
        state.threads
    }
}

/// What a process executes.
pub struct Program {
    /// How many it has executed.
    pub number: u32,
    pub exe: Vec<u8>,
    pub args: Vec<Vec<u8>>,
    pub env: Vec<Vec<u8>>,
}

/// A wait status as a shell shows it.
fn exit_code(status: u32) -> i32 {
    match status & 0x7f {
        0 => (status >> 8 & 0xff) as i32,
        signal => 128 + signal as i32,
    }
}
