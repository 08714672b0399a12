//! Collective calls: an id that the same call has on every rank of a file's communicator.
//!
//! No rank is asked what another did. All ranks open a file by one name, in one order, and call its collective functions
//! in one order (MPI-4.0, 14.2.2 and 14.6.4); so counting gives them the same numbers, on any node.

use std::collections::HashMap;

use crate::catalog::Role;
use crate::correlate::calls::call::succeeded;
use crate::correlate::resources::handles::Handles;
use crate::correlate::resources::processes::Owner;
use crate::correlate::seen::Seen;
use crate::event::TextKind;
use crate::vocabulary::flag;

/// The group of callers, by a name that all processes of a run have in common.
pub struct Caller<'a> {
    pub rank: Option<i32>,
    /// The run, as opposed to other runs at the same time.
    pub run: &'a [String],
}

/// How many processes open a file together and, where known, which.
type Group = (i32, Option<String>);

/// A file that is open.
struct Open {
    hash: Hash,
    calls: u64,
}

/// Every file opened by several processes together, and how often each was.
#[derive(Default)]
pub struct Collectives {
    files: HashMap<i32, Open>,
    opens: HashMap<(Owner, Vec<u8>, Group), u64>,
}

impl Collectives {
    /// A call ended that was about this handle: its id, if it is a collective one and the file was seen opened.
    pub fn call(&mut self, seen: &Seen, handle: Option<i32>, handles: &Handles, caller: &Caller) -> Option<i64> {
        if seen.row.flags & flag::COLLECTIVE == 0 {
            return None;
        }
        let handle = handle?;
        if seen.row.role() == Role::Open {
            let row = handles.row(handle)?;
            let opened = self.open(seen, (row.comm_size?, row.comm_ranks.clone()), caller)?;
            self.files.insert(handle, opened);
        }
        let file = self.files.get_mut(&handle)?;
        let id = file.hash.and(&file.calls.to_le_bytes()).id();
        file.calls += 1;
        if seen.row.role() == Role::Close && succeeded(seen.call) {
            self.files.remove(&handle);
        }
        Some(id)
    }

    fn open(&mut self, seen: &Seen, group: Group, caller: &Caller) -> Option<Open> {
        let name = seen.text(TextKind::Path)?;
        let ranks = group.0;
        let members = group.1.clone().unwrap_or_default();
        let times = self.opens.entry((seen.owner, name.to_vec(), group)).or_default();
        let mut hash = Hash::new();
        for part in caller.run {
            hash = hash.and(part.as_bytes()).and(&[0]);
        }
        hash = hash
            .and(name)
            .and(&[0])
            .and(&ranks.to_le_bytes())
            .and(members.as_bytes())
            .and(&[0])
            .and(&times.to_le_bytes());
        if ranks == 1 {
            // Each process for itself.
            let alone = caller.rank.map_or((1_u8, seen.owner.process_ix()), |rank| (0, rank));
            hash = hash.and(&[alone.0]).and(&alone.1.to_le_bytes());
        }
        *times += 1;
        Some(Open { hash, calls: 0 })
    }

    /// A process is gone, or executes another program.
    pub fn gone(&mut self, owner: Owner, handles: &Handles) {
        self.opens.retain(|(of, ..), _| *of != owner);
        self.files.retain(|handle, _| handles.row(*handle).is_some_and(|h| h.process_ix != owner.process_ix()));
    }
}

/// FNV-1a, 64 bits: the same in every build and on every node.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn and(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// 53 bits of it, all of which the others have a part in.
    fn id(self) -> i64 {
        ((self.0 >> 53 ^ self.0) & ((1 << 53) - 1)) as i64
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::OPENED_BY;
    use crate::correlate::testing::{Rows, Run, call};
    use crate::event::{Call, Event, TextKind};

    /// A process of two ranks opens a file with `ranks` others, writes and closes it; from its number `seq` on.
    fn session(run: &mut Run, process: u32, seq: u32, ranks: u64) {
        let at = u64::from(100 * seq);
        // No two processes have the same handle for it.
        let handle = Some(0xf000 + u64::from(process));
        let open = call(process, seq, 0, at, at + 10);
        run.text(&open, TextKind::Path, "out.dat");
        run.call("MPI_File_open", Call { handle, got: Some(ranks), ..open });
        run.call("MPI_File_write_all", Call { handle, len: Some(64), ..call(process, seq + 1, 0, at + 20, at + 30) });
        run.call("MPI_File_write", Call { handle, len: Some(64), ..call(process, seq + 2, 0, at + 30, at + 40) });
        run.call("MPI_File_close", Call { handle, ..call(process, seq + 3, 0, at + 50, at + 60) });
    }

    fn ids(rows: &Rows, process: u32, seq: u32) -> [Option<i64>; 4] {
        [0, 1, 2, 3].map(|n| rows.span(process, seq + n).coll_id)
    }

    fn two(env: [&str; 2], ranks: u64) -> Rows {
        let mut run = Run::new();
        for process in [1, 2] {
            run.process(10, process, None);
            let rank = format!("PMI_RANK={process}");
            run.exec(20, process, &[&rank, env[process as usize - 1]]);
            session(&mut run, process, 1, ranks);
            session(&mut run, process, 5, ranks);
        }
        run.finish()
    }

    #[test]
    fn all_ranks_give_a_call_one_id_and_another_call_another() {
        let rows = two(["PMIX_NAMESPACE=a", "PMIX_NAMESPACE=a"], 2);
        let [first, again] = [1, 5].map(|seq| ids(&rows, 1, seq));
        assert_eq!([first, again], [1, 5].map(|seq| ids(&rows, 2, seq)));
        let [open, write, alone, close] = first;
        assert_eq!(alone, None);
        let mut all = [[open, write, close], [again[0], again[1], again[3]]].concat();
        assert!(all.iter().all(|id| id.is_some_and(|id| (0..1 << 53).contains(&id))));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
        // The same in every build: datasets of several nodes are read together.
        let again = two(["PMIX_NAMESPACE=a", "PMIX_NAMESPACE=a"], 2);
        assert_eq!(ids(&again, 1, 1), first);
    }

    #[test]
    fn other_runs_other_files_and_processes_alone_have_other_ids() {
        let rows = two(["PMIX_NAMESPACE=a", "PMIX_NAMESPACE=b"], 2);
        assert_ne!(ids(&rows, 1, 1)[0], ids(&rows, 2, 1)[0]);
        let rows = two(["", ""], 1);
        assert_ne!(ids(&rows, 1, 1)[0], ids(&rows, 2, 1)[0]);
        assert!(rows.span(1, 1).coll_id.is_some());
    }

    #[test]
    fn communicators_of_one_size_differ_by_their_ranks() {
        let mut run = Run::new();
        for (process, members) in [(1, [0, 2, 2]), (2, [2, 0, -2]), (3, [1, 3, 2])] {
            run.process(10, process, None);
            let open = call(process, 1, 0, 100, 110);
            run.text(&open, TextKind::Path, "out.dat");
            run.push(Event::Text {
                time: 110,
                thread: process,
                seq: 1,
                what: TextKind::Ints(OPENED_BY),
                bytes: members.into_iter().flat_map(i32::to_ne_bytes).collect(),
                root: 0,
                cut: false,
                operation: false,
            });
            run.call("MPI_File_open", Call { handle: Some(u64::from(process)), got: Some(2), ..open });
        }
        let rows = run.finish();
        let of = |process| {
            let open = rows.span(process, 1);
            (open.coll_id.unwrap(), rows.handle(open.handle_id.unwrap()).comm_ranks.as_deref())
        };
        assert_eq!((of(1).1, of(3).1), (Some("0,2"), Some("1,3")));
        assert_eq!(of(1), of(2));
        assert_ne!(of(1).0, of(3).0);
    }

    #[test]
    fn a_file_that_was_not_seen_opened_has_none() {
        let mut run = Run::new();
        run.call("MPI_File_write_all", Call { handle: Some(7), ..call(0, 1, 0, 100, 110) });
        let open = call(0, 2, 0, 120, 130);
        run.text(&open, TextKind::Path, "out.dat");
        // How many open it is not known.
        run.call("MPI_File_open", Call { handle: Some(8), ..open });
        let rows = run.finish();
        assert_eq!([1, 2].map(|seq| rows.span(0, seq).coll_id), [None; 2]);
    }
}
