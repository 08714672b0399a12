//! Hints that a program gives with a file: sets of keys and values (`MPI_Info`), from their making to their end.

use crate::base::paths::lossy_path;
use crate::correlate::calls::call::succeeded;
use crate::correlate::resources::handles::Set;
use crate::correlate::resources::processes::Owner;
use crate::correlate::seen::Seen;
use crate::event::TextKind;
use crate::{HashMap, catalog};

/// Every set that lives, by process, copy of the library and handle.
#[derive(Default)]
pub struct Hints {
    sets: HashMap<(Owner, u16, u64), Set>,
}

impl Hints {
    /// Does to sets what the call did; returns what it gives to a file.
    pub fn call(&mut self, seen: &Seen) -> Option<&Set> {
        if seen.row.hints() == catalog::Hints::None || !succeeded(seen.call) {
            return None;
        }
        let name = |raw: u64| (seen.owner, seen.copy, raw);
        let text = |what| seen.text(what).map(lossy_path);
        let (handle, off, len) = (seen.call.handle, seen.call.off, seen.call.len);
        match seen.row.hints() {
            catalog::Hints::None => {}
            catalog::Hints::Create => drop(self.sets.insert(name(handle?), Set::new())),
            catalog::Hints::Set => {
                // A set that was not seen made has keys that are not known.
                let (key, value) = (text(TextKind::Path)?, text(TextKind::Path2)?);
                self.sets.get_mut(&name(handle?))?.insert(key, value);
            }
            catalog::Hints::Delete => drop(self.sets.get_mut(&name(handle?))?.remove(&text(TextKind::Path)?)),
            catalog::Hints::Dup => {
                let copy = self.sets.get(&name(handle?))?.clone();
                self.sets.insert(name(off?), copy);
            }
            catalog::Hints::Free => drop(self.sets.remove(&name(handle?))),
            catalog::Hints::Off => return self.sets.get(&name(off?)),
            catalog::Hints::Len => return self.sets.get(&name(len?)),
        }
        None
    }

    /// A process is gone, or executes another program.
    pub fn gone(&mut self, owner: Owner) {
        self.sets.retain(|(of, ..), _| *of != owner);
    }
}

#[cfg(test)]
mod tests {
    use crate::correlate::testing::{Rows, Run, call};
    use crate::event::{Call, TextKind};

    /// Calls one after the other.
    struct Calls {
        run: Run,
        seq: u32,
    }

    impl Calls {
        fn call(&mut self, symbol: &str, texts: &[&str], values: Call) {
            self.seq += 1;
            let at = u64::from(self.seq) * 100;
            let this = Call { seq: self.seq, start: at, ..values };
            for (what, text) in [TextKind::Path, TextKind::Path2].into_iter().zip(texts) {
                self.run.text(&this, what, text);
            }
            self.run.call(symbol, this);
        }

        fn on(&mut self, symbol: &str, info: u64, texts: &[&str]) {
            self.call(symbol, texts, Call { handle: Some(info), ..call(0, 0, 0, 0, 10) });
        }

        fn open(&mut self, raw: u64, info: u64) {
            let opened =
                Call { handle: Some(raw), off: Some(info), len: Some(9), got: Some(2), ..call(0, 0, 0, 0, 10) };
            self.call("MPI_File_open", &["x.dat"], opened);
        }
    }

    fn hints(rows: &Rows, handle: i32) -> Vec<(&str, &str)> {
        rows.handle(handle).hints.iter().flatten().map(|(k, v)| (k.as_str(), v.as_str())).collect()
    }

    #[test]
    fn a_file_has_the_hints_that_it_was_given() {
        let mut calls = Calls { run: Run::new(), seq: 0 };
        calls.on("MPI_Info_create", 1, &[]);
        calls.on("MPI_Info_set", 1, &["cb_nodes", "2"]);
        calls.on("MPI_Info_set", 1, &["striping_unit", "65536"]);
        calls.call("MPI_Info_dup", &[], Call { handle: Some(1), off: Some(2), ..call(0, 0, 0, 0, 10) });
        calls.on("MPI_Info_set", 1, &["cb_nodes", "4"]);
        calls.on("MPI_Info_delete", 2, &["striping_unit"]);
        calls.open(0xa, 2);
        calls.on("MPI_Info_free", 2, &[]);
        // Its name is that of a new, empty set.
        calls.on("MPI_Info_create", 2, &[]);
        calls.open(0xb, 2);
        calls.open(0xc, 99);
        let view = Call { handle: Some(0xc), off: Some(0), len: Some(1), ..call(0, 0, 0, 0, 10) };
        calls.call("MPI_File_set_view", &[], view);
        let view = calls.seq;
        let rows = calls.run.finish();
        assert_eq!(hints(&rows, 1), [("cb_nodes", "2")]);
        assert_eq!(rows.handle(2).hints, Some(Vec::new()));
        assert_eq!(hints(&rows, 3), [("cb_nodes", "4"), ("striping_unit", "65536")]);
        assert_eq!((rows.handle(1).comm_size, rows.handle(1).mode), (Some(2), Some(9)));
        // Handles of hints are neither offsets nor bytes, nor handles of files.
        assert_eq!((rows.span(0, view).offset, rows.span(0, view).req_bytes), (Some(0), None));
        assert_eq!((rows.span(0, 4).offset, rows.span(0, 4).handle_id), (None, None));
    }
}
