//! Programs of a C compiler: where lines of theirs begin and end, and why they do not.

use super::*;
use std::process::Command;

/// Line 1 is the first of these.
const SOURCE: &str = "extern int puts(const char *);
static int twice(int n) { return 2 * n; }
int loops(int n) {
	int sum = 0;
	for (int i = 0; i < n; i++) {
		if (i == 3)
			continue;
		sum += i;
	}
	return sum;
	/* end */
}
int other(int n) {
	puts(\"other\");
	return twice(n);
}
int main(int argc, char **argv) {
	(void)argv;
	return loops(argc) + other(argc);
}
";

/// The program, as the options of the compiler make it.
fn build(options: &[&str]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("src")).unwrap();
    std::fs::write(dir.path().join("src/lines.c"), SOURCE).unwrap();
    let mut cc = Command::new("cc");
    let out = cc.current_dir(dir.path()).args(["-o", "lines", "src/lines.c"]).args(options).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    std::fs::read(dir.path().join("lines")).unwrap()
}

fn at(bytes: &[u8], range: &str) -> Result<Vec<Point>, No> {
    let lines = Lines::parse(range).unwrap().unwrap();
    points(bytes, &lines).map(|points| points.into_values().collect())
}

/// How many places begin, end and start functions.
fn counted(points: &[Point]) -> (usize, usize, usize) {
    let count = |is: fn(&Point) -> bool| points.iter().filter(|point| is(point)).count();
    (count(|p| p.begins), count(|p| p.ends), count(|p| p.starts))
}

#[test]
fn a_loop_and_its_body_are_found_whatever_the_debug_format() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let bytes = build(&["-O0", version]);
        // From before the loop, and to behind it.
        let around = at(&bytes, "lines.c:5-9").unwrap();
        assert_eq!(counted(&around), (1, 1, 1), "{around:?}");
        // The body goes on behind `continue` and at its end; both are the same step of the loop.
        let body = at(&bytes, "src/lines.c:6-8").unwrap();
        assert_eq!(counted(&body), (1, 1, 1), "{body:?}");
        assert!(around.iter().chain(&body).filter(|p| !p.starts).all(|p| p.frame.base && p.frame.words == 2));
        // A whole function begins where it starts.
        let whole = at(&bytes, "lines.c:3-12").unwrap();
        assert!(whole.iter().any(|p| p.starts && p.begins && !p.frame.base && p.frame.words == 1), "{whole:?}");
    }
    assert!(at(&build(&["-O2", "-g", "-fno-inline"]), "lines.c:14-14").is_ok());
}

#[test]
fn why_lines_are_not_found_is_said() {
    let plain = build(&["-O0"]);
    assert_eq!(at(&plain, "lines.c:5-9"), Err(No::NotHere("has no debug information".into())));
    let bytes = build(&["-O0", "-g"]);
    let why = |range: &str| match at(&bytes, range) {
        Err(No::NotHere(why) | No::Refused(why)) => why,
        Ok(points) => panic!("{range}: {points:?}"),
    };
    assert_eq!(why("lnies.c:5-9"), "has no source file lnies.c (did you mean \"lines.c\"?)");
    assert_eq!(why("lib/lines.c:5-9"), "has no source file lib/lines.c (did you mean \"lines.c\"?)");
    assert_eq!(why("lines.c:11-11"), "no code is of lines 11 to 11 of lines.c; lines next to them that have: 10, 12");
    assert_eq!(why("lines.c:90-99"), "no code is of lines 90 to 99 of lines.c; lines next to them that have: 20");
    let several = "lines 8 to 14 are of several functions: line 8 is in loops, line 14 in other";
    assert_eq!(why("lines.c:8-14"), several);
}

#[test]
fn any_damage_is_an_answer() {
    let bytes = build(&["-O0", "-g"]);
    for step in [97, 1009] {
        let mut damaged = bytes.clone();
        damaged.iter_mut().skip(64).step_by(step).for_each(|byte| *byte = !*byte);
        let _ = at(&damaged, "lines.c:5-9");
    }
    for end in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
        let _ = at(&bytes[..end], "lines.c:5-9");
    }
}

#[test]
fn debug_information_is_decompressed_within_bounds() {
    let mut bytes = build(&["-O0", "-g", "-gz=zlib"]);
    assert_eq!(counted(&at(&bytes, "lines.c:5-9").unwrap()), (1, 1, 1));
    let file = File::parse(&*bytes).unwrap();
    let is_compressed = |section: &object::read::elf::ElfSection64<'_, '_, object::LittleEndian>| {
        section.compressed_data().unwrap().format != object::CompressionFormat::None
    };
    let section = file.sections().find(is_compressed).unwrap();
    // The header of its data has the size (System V ABI, Elf64_Chdr).
    let size = section.file_range().unwrap().0 as usize + 8;
    bytes[size..size + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let error = at(&bytes, "lines.c:5-9").unwrap_err();
    assert!(matches!(&error, No::NotHere(why) if why.starts_with("is not looked into: ")), "{error:?}");
}
