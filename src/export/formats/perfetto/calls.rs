//! Calls as slices on the tracks of their threads.

use anyhow::Result;

use super::flows::Flows;
use super::lanes::{Lanes, Sink, Slice};
use super::messages::{DebugAnnotation, EventType, ProcessDescriptor, ThreadDescriptor, TrackDescriptor, TrackEvent};
use super::packets::Packets;
use crate::HashMap;
use crate::analysis::nesting::is_phase;
use crate::analysis::trace::source::{IdKind, Source};
use crate::base::text;
use crate::export::formats::texts::Texts;
use crate::export::report::Union;
use crate::rows::{PARTS, Process, SEQ_BITS, Span, Thread};
use crate::vocabulary::{flag, intern};

/// Tracks of one thread, for calls and phases, and for operations that are in progress at a time.
const CALLS_MAX: usize = 64;
const OPERATIONS_MAX: usize = 4096;

/// Flags, as people read them.
const FLAGS: [(i32, &str); 9] = [
    (flag::COLLECTIVE, "collective"),
    (flag::NONBLOCKING, "non-blocking"),
    (flag::ASYNC, "asynchronous"),
    (flag::DIRECT, "direct"),
    (flag::TRUNCATED, "truncated"),
    (flag::INFERRED_PARENT, "inferred parent"),
    (flag::UNFINISHED, "unfinished"),
    (flag::MAJOR, "major"),
    (flag::SUMMED, "summed"),
];

/// A group of tracks below one: its name, whether slices lie inside others, and how many tracks there may be.
struct Group {
    name: &'static str,
    nested: bool,
    most: usize,
}

/// The first track of calls is that of the thread itself.
const CALLS: Group = Group { name: "overlapping calls", nested: true, most: CALLS_MAX };
const PHASES: Group = Group { name: "phases", nested: true, most: CALLS_MAX };
const OPERATIONS: Group = Group { name: "asynchronous operations", nested: false, most: OPERATIONS_MAX };

/// The tracks of a thread.
struct Tracks {
    thread: u64,
    calls: Lanes,
    phases: Lanes,
    operations: Lanes,
}

impl Tracks {
    fn group(&mut self, span: &Span) -> (&mut Lanes, &'static Group) {
        if span.flags & flag::ASYNC != 0 {
            (&mut self.operations, &OPERATIONS)
        } else if is_phase(span) {
            // They are written when they end, after what is inside them.
            (&mut self.phases, &PHASES)
        } else {
            (&mut self.calls, &CALLS)
        }
    }
}

/// A process as it is shown. Its number is its pid, unless there are several nodes.
struct Program {
    track: u64,
    number: i32,
}

/// All calls on their way into a trace.
pub struct Calls<'a> {
    union: &'a Union,
    several: bool,
    texts: Texts,
    processes: HashMap<i32, Process>,
    comms: HashMap<i64, String>,
    programs: HashMap<(i32, i32), Program>,
    threads: HashMap<i64, Tracks>,
    /// Names of parts of the time of a call, as columns.
    parts: Vec<&'static str>,
    /// Calls for which no track had room: instants, and not slices.
    unplaced: u64,
}

impl<'a> Calls<'a> {
    pub fn new(union: &'a Union) -> Result<Self> {
        let (mut processes, mut comms) = (HashMap::default(), HashMap::default());
        union.rows(|process: Process| {
            processes.insert(process.process_ix, process);
            Ok(())
        })?;
        union.rows(|thread: Thread| {
            comms.insert(i64::from(thread.thread_ix), thread.comm);
            Ok(())
        })?;
        Ok(Self {
            union,
            several: union.nodes().len() > 1,
            texts: Texts::read(union)?,
            processes,
            comms,
            programs: HashMap::default(),
            threads: HashMap::default(),
            parts: PARTS.iter().map(|(part, _)| intern(&format!("{part}_ns"))).collect::<Result<_>>()?,
            unplaced: 0,
        })
    }

    /// A slice.
    pub fn write(&mut self, packets: &mut Packets<'_>, flows: &mut Flows, span: &Span) -> Result<()> {
        self.ensure_thread(packets, span)?;
        let mut notes = self.notes(packets, span);
        let Some(tracks) = self.threads.get_mut(&(span.span_id >> SEQ_BITS)) else { return Ok(()) };
        let thread = tracks.thread;
        let (lanes, group) = tracks.group(span);
        let slice = Slice {
            id: span.span_id,
            parent: span.parent_id,
            start: span.start_ns,
            end: span.end_ns().max(span.start_ns),
        };
        let mut below = Below { packets: &mut *packets, above: thread, name: group.name };
        let track = lanes.place(&slice, (group.nested, group.most), &mut below)?;
        let kind = if track.is_some() { EventType::SliceBegin } else { EventType::Instant };
        if track.is_none() {
            self.unplaced += 1;
            notes.push(packets.note("dur_ns", span.dur_ns));
        }
        let flow_ids = flows.of_call(span).into_iter().collect();
        let event = TrackEvent { debug_annotations: notes, flow_ids, ..TrackEvent::default() };
        packets.named((kind, span.start_ns, track.unwrap_or(thread)), (span.layer.name(), span.op), event)
    }

    /// What is not shown as it is.
    pub fn warnings(&self) -> Vec<String> {
        let names = self.texts.overflow.then(|| "there are more names of files than are shown".to_owned());
        let calls = || format!("{} calls overlap too many others: they are shown without duration", self.unplaced);
        names.into_iter().chain((self.unplaced > 0).then(calls)).collect()
    }

    /// Ends what is open.
    pub fn finish(self, packets: &mut Packets<'_>) -> Result<()> {
        for tracks in self.threads.into_values() {
            for lanes in [tracks.calls, tracks.phases, tracks.operations] {
                lanes.close(&mut Below { packets: &mut *packets, above: tracks.thread, name: "" })?;
            }
        }
        Ok(())
    }

    fn ensure_thread(&mut self, packets: &mut Packets<'_>, span: &Span) -> Result<()> {
        let id = span.span_id >> SEQ_BITS;
        if self.threads.contains_key(&id) {
            return Ok(());
        }
        let (process, number) = self.program(packets, span)?;
        let tid = if self.several { i32::try_from(id).unwrap_or(i32::MAX) } else { span.tid };
        let thread = packets.track(TrackDescriptor {
            parent_uuid: Some(process),
            thread: Some(ThreadDescriptor {
                pid: Some(number),
                tid: Some(tid),
                thread_name: self.comms.get(&id).map(crate::base::text::escape),
            }),
            ..TrackDescriptor::default()
        })?;
        let (phases, operations) = (Lanes::default(), Lanes::default());
        self.threads.insert(id, Tracks { thread, calls: Lanes::on(thread), phases, operations });
        Ok(())
    }

    /// The track of a process, and its number.
    fn program(&mut self, packets: &mut Packets<'_>, span: &Span) -> Result<(u64, i32)> {
        let key = (span.process_ix, span.pid);
        if let Some(Program { track, number }) = self.programs.get(&key) {
            return Ok((*track, *number));
        }
        let about = self.processes.get(&span.process_ix);
        let exe = about.and_then(|process| process.exe.as_deref());
        let mut name =
            exe.map_or_else(String::new, |exe| crate::base::text::escape(exe.rsplit('/').next().unwrap_or(exe)));
        if let Some(rank) = about.and_then(|process| process.rank) {
            name = format!("rank {rank}: {name}");
        }
        // On several nodes processes have equal pids.
        let number = if self.several { span.process_ix } else { span.pid };
        if let Some(origin) = self.union.origin(IdKind::Process, span.process_ix.into()) {
            name = format!("{}: {name} (pid {})", crate::base::text::escape(origin.host), span.pid);
        }
        let cmdline = about.map(|process| process.cmdline.iter().map(crate::base::text::escape).collect());
        let track = packets.track(TrackDescriptor {
            process: Some(ProcessDescriptor {
                pid: Some(number),
                cmdline: cmdline.unwrap_or_default(),
                process_name: Some(name),
            }),
            ..TrackDescriptor::default()
        })?;
        self.programs.insert(key, Program { track, number });
        Ok((track, number))
    }

    /// What is known of a call, by the names of the columns.
    fn notes(&self, packets: &mut Packets<'_>, span: &Span) -> Vec<DebugAnnotation> {
        let numbers = [
            ("span_id", Some(span.span_id)),
            ("offset", span.offset),
            ("bytes", span.bytes),
            ("req_bytes", span.req_bytes),
            ("miss_bytes", span.miss_bytes),
            ("ahead_bytes", span.ahead_bytes),
            ("arg", span.arg),
            ("ret", span.ret),
            ("coll_id", span.coll_id),
            ("probe_ns", span.probe_ns.filter(|ns| *ns > 0)),
        ];
        let parts = span.parts().into_iter().flatten().zip(&self.parts).filter(|(ns, _)| *ns > 0);
        let parts = parts.map(|(ns, name)| (*name, Some(ns)));
        let known = numbers.into_iter().chain(parts).filter_map(|(name, value)| Some((name, value?)));
        let mut notes: Vec<_> = known.map(|(name, value)| packets.note(name, value)).collect();
        let flags: Vec<_> = FLAGS.iter().filter(|(bit, _)| span.flags & bit != 0).map(|(_, name)| *name).collect();
        let flags = flags.join(", ");
        let texts = [
            ("path", self.texts.path(span)),
            ("object", self.texts.object(span)),
            ("cmd", span.cmd),
            ("flags", Some(flags.as_str()).filter(|flags| !flags.is_empty())),
        ];
        let known = texts.into_iter().filter_map(|(name, text)| Some((name, text?)));
        notes.extend(known.map(|(name, text)| packets.note_text(name, text)));
        if span.errno != 0 {
            notes.push(packets.note_text("error", &text::errno(span.errno)));
        }
        notes
    }
}

/// Makes tracks of one name below another track.
pub struct Below<'a, 'p> {
    pub packets: &'a mut Packets<'p>,
    pub above: u64,
    pub name: &'static str,
}

impl Sink for Below<'_, '_> {
    fn track(&mut self) -> Result<u64> {
        let (name, parent_uuid) = (Some(self.name.to_owned()), Some(self.above));
        self.packets.track(TrackDescriptor { name, parent_uuid, ..TrackDescriptor::default() })
    }

    fn end(&mut self, track: u64, at: i64) -> Result<()> {
        self.packets.end(track, at)
    }
}
