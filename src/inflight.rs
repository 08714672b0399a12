//! What has entered and not returned: plain values, and the text of a dump.

use crate::base::text::{escape, time};
use crate::vocabulary::{Kind, Layer};

/// What is open at one moment, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InFlight {
    /// When it was looked at, since the beginning of the trace.
    pub at_ns: i64,
    pub operations: Vec<Operation>,
}

/// What kind of operation it is, and so what waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// Calls of a thread, inside each other.
    Calls,
    /// A request of `io_uring` or libaio.
    Asynchronous,
    /// A request in a block device: `id` is its `req_id`.
    Request,
}

/// One call or request in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub kind: OperationKind,
    /// As it is in the dataset, or will be: `span_id` of the innermost call, `req_id` of a request. The same in every dump.
    pub id: i64,
    /// Of the outermost call that is no phase.
    pub start_ns: i64,
    pub age_ns: i64,
    pub pid: u32,
    /// 0 for a request of a device, which no thread waits for by itself.
    pub tid: u32,
    pub comm: String,
    pub rank: Option<i32>,
    /// From the outermost to the innermost; of a request its device.
    pub calls: Vec<Open>,
    /// Where the thread is inside the kernel, the innermost function first. Empty while it runs.
    pub kernel: Vec<Frame>,
    /// Where it is in the program.
    pub user: Vec<Frame>,
}

/// A call that has not returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// `span_id`, or `req_id` of a request.
    pub id: i64,
    pub layer: Layer,
    pub op: String,
    pub kind: Kind,
    pub start_ns: i64,
    /// The path, or what else the descriptor is (`pipe:[...]`).
    pub file: Option<String>,
    /// Bytes that were asked for.
    pub bytes: Option<i64>,
    pub offset: Option<i64>,
}

/// A code address in the kernel or in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub address: u64,
    /// Its function, where it has a name.
    pub function: Option<String>,
    /// Program, library or module.
    pub module: Option<String>,
    /// Source file and line, from the debug information.
    pub line: Option<(String, u32)>,
}

impl Operation {
    /// The file of the innermost call that has one.
    pub fn file(&self) -> Option<&str> {
        self.calls.iter().rev().find_map(|c| c.file.as_deref())
    }

    /// The innermost call: what is waited for.
    pub fn innermost(&self) -> Option<&Open> {
        self.calls.last()
    }
}

impl Frame {
    /// `function (module, file:line)`.
    pub fn text(&self) -> String {
        let name = self.function.as_deref().map_or_else(|| format!("{:#x}", self.address), escape);
        let module = self.module.as_deref().map(escape);
        let line = self.line.as_ref().map(|(file, line)| format!("{}:{line}", escape(file)));
        let location: Vec<String> = module.into_iter().chain(line).collect();
        if location.is_empty() { name } else { format!("{name} ({})", location.join(", ")) }
    }
}

impl InFlight {
    /// Oldest first; what is equally old in the order of its id, so that dumps can be compared.
    pub fn sort(&mut self) {
        self.operations.sort_by_key(|o| (o.start_ns, o.id));
    }

    /// The same on the clock of a dataset that began `by` ns after the trace.
    #[must_use]
    pub fn shifted(mut self, by: i64) -> Self {
        let starts = self
            .operations
            .iter_mut()
            .flat_map(|o| std::iter::once(&mut o.start_ns).chain(o.calls.iter_mut().map(|call| &mut call.start_ns)));
        starts.chain([&mut self.at_ns]).for_each(|t| *t = t.saturating_sub(by));
        self
    }

    /// A dump for people.
    pub fn text(&self) -> String {
        let mut out = format!("in flight {} after the beginning: {}\n", time(self.at_ns), self.operations.len());
        for o in &self.operations {
            out += &o.text(self.at_ns);
        }
        out
    }
}

impl Operation {
    fn text(&self, at_ns: i64) -> String {
        let comm = escape(&self.comm);
        let mut out = format!("{:>10}  {comm} pid {}", time(self.age_ns), self.pid);
        if self.tid != 0 && self.tid != self.pid {
            out += &format!(" thread {}", self.tid);
        }
        if let Some(rank) = self.rank {
            out += &format!(" rank {rank}");
        }
        out += match self.kind {
            OperationKind::Calls => "\n",
            OperationKind::Asynchronous => ", submitted\n",
            OperationKind::Request => ", in the device\n",
        };
        for (depth, call) in self.calls.iter().enumerate() {
            out += &format!("            {:indent$}{} {}", "", call.layer, escape(&call.op), indent = depth * 2);
            for (name, value) in [("bytes", call.bytes), ("at", call.offset)] {
                if let Some(value) = value {
                    out += &format!(" {name} {value}");
                }
            }
            if let Some(file) = &call.file {
                out += &format!(" {}", escape(file));
            }
            out += &format!("  [{} for {}]\n", call.id, time(at_ns - call.start_ns));
        }
        for (name, frames) in [("kernel", &self.kernel), ("user", &self.user)] {
            for (i, frame) in frames.iter().enumerate() {
                out += &format!("            {:<6} {}\n", if i == 0 { name } else { "" }, frame.text());
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(id: i64, start_ns: i64) -> Operation {
        let open = |id, layer, op: &str, start_ns, file: Option<&str>| Open {
            id,
            layer,
            op: op.into(),
            kind: Kind::Write,
            start_ns,
            file: file.map(Into::into),
            bytes: file.map(|_| 8),
            offset: None,
        };
        let frame = |function: &str, line: Option<(String, u32)>| Frame {
            address: 0x10,
            function: Some(function.into()),
            module: line.is_some().then(|| "prog".into()),
            line,
        };
        Operation {
            kind: OperationKind::Calls,
            id,
            start_ns,
            age_ns: 5_000_000_000 - start_ns,
            pid: 7,
            tid: 8,
            comm: "a\x1bb".into(),
            rank: Some(3),
            calls: vec![
                open(id - 1, Layer::Stdio, "fwrite", start_ns, None),
                open(id, Layer::Syscall, "write", start_ns + 1_000_000_000, Some("/mnt/a b")),
            ],
            kernel: vec![frame("percpu_rwsem_wait", None), frame("vfs_write", None)],
            user: vec![frame("main", Some(("main.c".into(), 12)))],
        }
    }

    #[test]
    fn a_dump_shows_the_oldest_first_with_its_calls_and_stacks() {
        let operations = vec![operation(20, 3_000_000_000), operation(11, 1_000_000_000)];
        let mut dump = InFlight { at_ns: 5_000_000_000, operations };
        dump.sort();
        assert_eq!(dump.operations[0].file(), Some("/mnt/a b"));
        assert_eq!(dump.operations[0].innermost().map(|c| c.op.as_str()), Some("write"));
        let text = dump.text();
        let (oldest, _) = text.split_once("2.00 s").unwrap();
        assert_eq!(
            oldest.trim_end(),
            "in flight 5.00 s after the beginning: 2
    4.00 s  a\\x1bb pid 7 thread 8 rank 3
            stdio fwrite  [10 for 4.00 s]
              syscall write bytes 8 /mnt/a b  [11 for 3.00 s]
            kernel percpu_rwsem_wait
                   vfs_write
            user   main (prog, main.c:12)"
        );
    }
}
