//! Speedscope, which the tests let read folded stacks: the release in its npm package, in `target/speedscope-VERSION`.

use anyhow::{Context, Result};
use std::fs;
use std::process::Command;

use crate::{Tree, shell};

const VERSION: &str = "1.25.0";
const SHA256: &str = "2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03";

/// Arguments: the address, the checksum, and the directory to make.
const FETCH: &str = "
import hashlib, io, sys, tarfile, urllib.request
url, sha256, directory = sys.argv[1:]
data = urllib.request.urlopen(url, timeout=60).read()
found = hashlib.sha256(data).hexdigest()
if found != sha256:
    sys.exit(f'{url} has the checksum {found}, and not {sha256}')
tarfile.open(fileobj=io.BytesIO(data)).extractall(directory)
";

/// Fetches it, unless it is there.
pub fn make(tree: &Tree) -> Result<()> {
    let dir = tree.target.join(format!("speedscope-{VERSION}"));
    if dir.exists() {
        return Ok(());
    }
    let whole = tree.target.join("speedscope.inprogress");
    let url = format!("https://registry.npmjs.org/speedscope/-/speedscope-{VERSION}.tgz");
    shell::run(Command::new("python3").args(["-c", FETCH, &url, SHA256]).arg(&whole))
        .with_context(|| format!("the tests need {url}; is there a network?"))?;
    fs::rename(&whole, &dir).with_context(|| format!("cannot make {}", dir.display()))
}
