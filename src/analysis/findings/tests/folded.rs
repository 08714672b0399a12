//! Runs of more processes than have groups of their own.

use super::*;

fn findings_of(collect: Collect) -> Findings {
    let (losses, coverage) = (Losses::default(), covered(&[Layer::Syscall, Layer::Block]));
    let trace = Trace {
        duration_ns: 1200 * MS,
        tracing: Some(0.0),
        coverage: &coverage,
        losses: &losses,
        aggregate: false,
        nodes: 1,
    };
    collect.finish(&mut Vec::<Row>::new(), &trace, &Config::default()).unwrap()
}

/// A rank that flushes each record, and 699 others that write the same file, open it, and fail to lock it.
fn many_ranks() -> Vec<Span> {
    let others = (1..700_u32).flat_map(|rank| {
        let calls = [("openat", Kind::Open), ("pwrite64", Kind::Write), ("write", Kind::Write), ("read", Kind::Read)];
        calls.into_iter().enumerate().map(move |(n, what)| {
            let call = call(rank, n as u32, what, 10 * n as i64, 1);
            Span { rank: Some(rank as i32), bytes: Some(1 << 20), offset: Some(i64::from(rank) << 20), ..call }
        })
    });
    let failed = (1..700_u32).map(|rank| {
        let call = call(rank, 9, ("fsync", Kind::Sync), 100, 1);
        Span { rank: Some(rank as i32), errno: nix::libc::EIO as i16, ..call }
    });
    let flushes = (0..100).map(|n| Span { rank: Some(0), ..flush(0, n, i64::from(n) * 12, 10) });
    flushes.chain(others).chain(failed).collect()
}

/// Groups are folded and joined when there are so many.
fn collected(spans: &[Span], most_in_all: usize) -> Collect {
    let groups = Groups::folding_at(most_in_all);
    let mut collect = Collect::with(&mut Vec::<Row>::new(), groups, Others::default()).unwrap();
    let mut nesting = Nesting::default();
    for span in spans {
        let around = nesting.of(span);
        collect.span(span, &around);
    }
    collect
}

/// What a finding is, whatever it takes.
fn essence(all: &Findings) -> Vec<(&'static str, String, Severity)> {
    all.findings.iter().map(|f| (f.rule, f.title.clone(), f.severity)).collect()
}

#[test]
fn of_very_many_processes_groups_are_folded_and_the_findings_are_the_same() {
    let spans = many_ranks();
    let findings = |most_in_all: usize| {
        let collect = collected(&spans, most_in_all);
        let groups = collect.groups.all.len();
        (groups, findings_of(collect))
    };
    let ((all, whole), (fewer, folded)) = (findings(usize::MAX), findings(2800));
    assert!(fewer < all, "{fewer} of {all}");
    assert_eq!(seconds(&whole)[..2], seconds(&folded)[..2]);
    assert_eq!(essence(&whole), essence(&folded));
    assert!(essence(&whole).iter().any(|(rule, ..)| *rule == "sync-per-record"), "{:?}", essence(&whole));
    assert!(essence(&whole).iter().any(|(rule, ..)| *rule == "errors"), "{:?}", essence(&whole));
}

#[test]
fn rules_are_not_applied_where_the_process_that_counts_was_folded() {
    let mut groups = Groups::folding_at(600);
    let mut nesting = Nesting::default();
    // Each is in calls for as long as the others, and the last one of the lightest for longer afterwards.
    let first = (0..700_u32).map(|rank| Span { rank: Some(rank as i32), ..flush(rank, 0, 0, 1) });
    let later = (1..100).map(|n| Span { rank: Some(599), ..flush(599, n, i64::from(n) * 12, 10) });
    for span in first.chain(later) {
        let around = nesting.of(&span);
        groups.span(&span, &around);
    }
    assert!(groups.is_folded([599].into_iter()) && !groups.is_folded([0, -1].into_iter()));
    // What comes next is of another time, and whole.
    let mut later = groups.clone();
    let slice = later.split(i64::MAX);
    assert!(slice.is_folded([599].into_iter()) && !later.is_folded([599].into_iter()));
    let collect = Collect { groups, others: Others::default() };
    let found = findings_of(collect);
    assert_eq!((found.findings.len(), found.not_evaluated.len()), (0, RULES.len()));
}

/// A lane of processes without a rank is many of them, and that of a rank the shell around its program, too.
#[test]
fn processes_without_a_rank_and_all_of_the_longest_rank_stay() {
    let groups = |spans: &mut dyn Iterator<Item = Span>| {
        let mut groups = Groups::folding_at(600);
        let mut nesting = Nesting::default();
        for span in spans {
            let around = nesting.of(&span);
            groups.span(&span, &around);
        }
        groups
    };
    let without = groups(&mut (0..700).map(|process| flush(process, 0, 0, 1)));
    assert!(!without.is_folded(0..700));
    let program = Span { rank: Some(0), ..flush(0, 0, 0, 1000) };
    let shell = Span { rank: Some(0), ..flush(700, 0, 0, 1) };
    let others = (1..700).map(|rank| Span { rank: Some(rank as i32), ..flush(rank, 0, 0, 2) });
    let of_ranks = groups(&mut [program, shell].into_iter().chain(others));
    assert!(!of_ranks.is_folded([0, 700].into_iter()) && of_ranks.is_folded(1..700));
}

/// Which function it is, groups of a folded rank no longer have.
#[test]
fn a_call_of_a_folded_rank_that_has_not_returned_is_found() {
    let mut groups = Groups::folding_at(600);
    let mut nesting = Nesting::default();
    let longest = Span { rank: Some(0), ..flush(0, 0, 0, 30_000) };
    let others = (1..700_u32).map(|rank| Span { rank: Some(rank as i32), ..flush(rank, 0, 0, 1) });
    let open = Span { rank: Some(599), flags: flag::UNFINISHED, ..flush(599, 1, 10, 20_000) };
    let last = Span { rank: Some(700), ..flush(700, 0, 0, 1) };
    for span in [longest].into_iter().chain(others).chain([last, open]) {
        let around = nesting.of(&span);
        groups.span(&span, &around);
    }
    let found = findings_of(Collect { groups, others: Others::default() });
    let stuck: Vec<_> = found.findings.iter().filter(|f| f.rule == "stuck").map(|f| f.title.clone()).collect();
    assert_eq!(stuck, ["syscall call had not returned for 20.0 s"]);
}
