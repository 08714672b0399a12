//! Files that any user can map as code and that are made to be expensive to read.

use crate::common::live::{self, Data};
use crate::common::peak;
use crate::common::synthetic::hostile::{self, FILES, LOADED};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What a tracer may need that traces a program which maps these files (MiB). One that maps none needs about 250.
const CEILING: u64 = 700;

#[test]
fn files_that_are_too_large_cost_their_verdict_and_nothing_else() {
    let work = live::scratch();
    let mut files: Vec<PathBuf> = FILES.iter().chain([&LOADED]).map(|file| file.write(work.path())).collect();
    files.push(hostile::sound(work.path()));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/map_code.py");
    let dataset = work.path().join("run.iotrace");
    let mut tracer = live::tracer();
    tracer.args(["--phase", "ns::Grid::step"]).arg("-o").arg(&dataset).args(["--", "python3"]).arg(script);
    let tracer = tracer.args(&files).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let most = peak::of(live::child_of(tracer.id()));
    let output = tracer.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stdout.starts_with(b"9 mapped"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let data = Data::read(&dataset);
    for hostile in FILES.iter().chain([&LOADED]) {
        let path = work.path().join(hostile.name);
        let verdicts: Vec<_> = data.coverage.iter().filter(|c| Path::new(&c.target) == path).collect();
        let [verdict] = verdicts[..] else { panic!("{}: {verdicts:?}", hostile.name) };
        let reason = verdict.reason.as_deref().unwrap();
        assert_eq!((verdict.status, verdict.symbol.as_str()), ("skipped", ""), "{verdict:?}");
        assert!(reason.starts_with("too large to examine (") && reason.contains(hostile.beyond), "{verdict:?}");
    }
    let sound = data.coverage.iter().filter(|c| c.target.ends_with("/small.so"));
    assert_eq!(sound.filter(|c| c.status == "skipped").count(), 0);
    assert!(most < CEILING << 10, "{} MiB", most >> 10);
}
