//! Programs that are built here.

use crate::catalog::Family;
use crate::loader::code::elf::{Binding, Elf, Target};
use crate::loader::code::prologue::InsnClass;
use crate::loader::code::tests::{
    LIBC, LIBMPI, STDIO, build, code_offsets, executable_segments, functions, output, planned, read, settled,
};
use crate::vocabulary::Layer;

#[test]
fn versions_of_one_name_are_all_found() {
    // glibc keeps several of these for programs linked long ago.
    let elf = Elf::parse(&read(LIBC), |name| name == "pthread_cond_wait" || name == "memcpy").unwrap();
    assert_eq!(code_offsets(&elf.symbols["pthread_cond_wait"]).len(), 2);
    assert!(elf.symbols["memcpy"].iter().any(|s| s.target == Target::Ifunc), "{:?}", elf.symbols["memcpy"]);
}

#[test]
fn version_suffixes_of_an_unstripped_library_are_taken_off() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("versions");
    std::fs::write(&script, "V1 { global: fopen; fwrite; fclose; local: *; }; V2 { global: fopen; } V1;").unwrap();
    let source = r#"
        int fopen_old(int a) { return a; }
        int fopen_new(int a) { return a + 2; }
        __asm__(".symver fopen_old, fopen@V1");
        __asm__(".symver fopen_new, fopen@@V2");
        int fwrite(int a) { return a + 3; }
        int fclose(int a) { return a + 4; }
    "#;
    let script = format!("-Wl,--version-script={}", script.display());
    let exe = build(&dir, source, &["-shared", "-fPIC", "-fno-builtin", "-nostdlib", &script]);
    let symtab = output("nm", &[exe.to_str().unwrap()]);
    assert!(symtab.contains(" fopen@@V2") && symtab.contains(" fopen@V1"), "{symtab}");
    let bytes = read(&exe);
    let elf = Elf::parse(&bytes, |_| true).unwrap();
    assert!(elf.symbols.keys().all(|name| !name.contains('@')), "{:?}", elf.symbols.keys());
    let (elf, plan) = planned(&bytes);
    assert_eq!(code_offsets(&elf.symbols["fopen"]).len(), 2);
    let probed: Vec<_> = plan.probes.iter().map(|p| p.symbol).collect();
    assert_eq!(probed, ["fopen", "fopen", "fclose", "fwrite"]);
    assert_eq!(plan.probes[0].spec, plan.probes[1].spec);
    // In both symbol tables, counted once.
    assert_eq!(elf.symbols["fclose"].len(), 1);
}

#[test]
fn a_function_in_data_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
        __asm__(".data; .globl fread; .type fread, @function; fread: .byte 0xc3; .size fread, 1; .text");
        int fopen, fwrite, fclose;
    "#;
    let (elf, plan) = planned(&read(build(&dir, source, &["-shared", "-fPIC", "-fno-builtin", "-nostdlib"])));
    assert_eq!(elf.symbols["fread"][0].target, Target::Outside);
    let why = "its address is in no executable segment of the file";
    assert!(settled(&plan).contains(&("fread", "refused", why)), "{:?}", settled(&plan));
}

#[test]
fn a_static_program_is_a_c_library() {
    let dir = tempfile::tempdir().unwrap();
    let exe = build(&dir, STDIO, &["-static", "-no-pie"]);
    let path = exe.to_str().unwrap();
    let bytes = read(&exe);
    let (elf, plan) = planned(&bytes);
    assert_eq!(plan.families, [Family::Libc]);
    assert!(elf.symbols.values().flatten().all(|s| s.binding != Binding::Local));
    let segments = executable_segments(path);
    let expected = functions(path, &[]);
    for name in ["fopen", "fread", "fwrite", "fclose"] {
        let probe = plan.probes.iter().find(|p| p.symbol == name).unwrap();
        let address = *expected[name].first().unwrap();
        let (offset, start, _) = segments.iter().find(|s| (s.1..s.1 + s.2).contains(&address)).unwrap();
        assert!((0..60).contains(&(probe.offset - (address - start + offset))), "{name}");
    }
    let header = output("readelf", &["-h", path]);
    let entry = header.lines().find_map(|l| l.trim().strip_prefix("Entry point address:")).unwrap().trim();
    let entry = u64::from_str_radix(entry.trim_start_matches("0x"), 16).unwrap();
    let (offset, start, _) = segments.iter().find(|s| (s.1..s.1 + s.2).contains(&entry)).unwrap();
    assert_eq!(crate::loader::code::elf::entry(&read(path)[..4096]), Ok(Some(entry - start + offset)));

    output("strip", &[path]);
    let (elf, plan) = planned(&read(&exe));
    assert!(elf.symbols.is_empty());
    let verdicts: Vec<_> = plan.settled.iter().map(|c| (c.layer, c.symbol.as_str(), c.status)).collect();
    assert_eq!((plan.probes, verdicts), (vec![], vec![(Layer::App, "", "refused")]));
}

#[test]
fn a_static_program_has_what_it_uses_of_the_c_library() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"#include <stdio.h>
        int main(int n, char **v) { return fprintf(stdout, "%s", v[0]) < n; }"#;
    for flag in ["-static", "-static-pie"] {
        let exe = build(&dir, source, &[flag, "-fno-builtin"]);
        let (elf, plan) = planned(&read(&exe));
        assert!(elf.is_static && elf.has_functions, "{flag}");
        assert_eq!(plan.families, [Family::Libc]);
        assert!(plan.probes.iter().any(|p| p.symbol == "fprintf"), "{flag}");
        assert!(settled(&plan).contains(&("fgets", "absent", "the file does not define it")), "{flag}");
        output("strip", &[exe.to_str().unwrap()]);
        let stripped = read(&exe);
        let mut without_sections = stripped.clone();
        without_sections[40..48].fill(0);
        for bytes in [stripped, without_sections] {
            let (elf, plan) = planned(&bytes);
            assert!(elf.is_static && !elf.has_functions && plan.families.is_empty(), "{flag}");
            assert_eq!(plan.settled.len(), 1);
        }
    }
    // Needs a loader, or is it; and a library is no program.
    for path in ["/bin/true", "/lib64/ld-linux-x86-64.so.2", LIBMPI] {
        assert!(!Elf::parse(&read(path), |_| false).unwrap().is_static, "{path}");
    }
}

#[test]
fn probes_of_a_cet_build_lie_behind_endbr64() {
    let dir = tempfile::tempdir().unwrap();
    // Stands in for a library: the names count, not what they do.
    let source = r"
        extern int other(void *, int);
        __attribute__((weak)) int other(void *p, int n) { return p != 0 && n; }
        __attribute__((noinline)) int fopen(void *p, int n) { int a = other(p, n); return a + other(p, a) + n; }
        int fwrite(void *p, int n) { return fopen(p, n) + other(p, n); }
        int fclose(void *p) { return other(p, 1) + fwrite(p, 2) ; }
        static int fread(void *p) { return fclose(p) + 3; }
        int (*reader)(void *) = fread;
    ";
    let flags = ["-fcf-protection=full", "-shared", "-fPIC", "-fno-builtin", "-nostdlib"];
    let bytes = read(build(&dir, source, &flags));
    let (elf, plan) = planned(&bytes);
    assert_eq!(plan.families, [Family::Libc]);
    assert_eq!(elf.symbols["fread"][0].binding, Binding::Local);
    assert_eq!(crate::loader::code::elf::entry(&bytes), Ok(None));
    for name in ["fopen", "fwrite", "fclose"] {
        let start = *code_offsets(&elf.symbols[name]).first().unwrap() as usize;
        assert_eq!(bytes[start..start + 4], [0xf3, 0x0f, 0x1e, 0xfa], "{name}");
        let probe = plan.probes.iter().find(|p| p.symbol == name).unwrap();
        assert_eq!((probe.offset, probe.class), (start as u64 + 4, InsnClass::Emulated), "{name}: {}", probe.text);
        assert!(probe.text.starts_with("push r"), "{name}: {}", probe.text);
    }
}

#[test]
fn a_private_function_of_a_public_name_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
        #include <stdio.h>
        int helper(int);
        int main(void) {
            FILE *f = fopen("/dev/null", "r+");
            fwrite("x", 1, 1, f);
            return fclose(f) + helper(3);
        }"#;
    let mine = dir.path().join("mine.c");
    std::fs::write(
        &mine,
        "static __attribute__((noinline)) int fclose(int x) { return x * x; } int helper(int x) { return fclose(x); }",
    )
    .unwrap();
    let exe = build(&dir, source, &["-static", "-fno-builtin", mine.to_str().unwrap()]);
    let both = output("nm", &[exe.to_str().unwrap()]);
    assert_eq!(both.lines().filter(|l| l.ends_with(" fclose")).count(), 2, "{both}");
    let (elf, _) = planned(&read(&exe));
    assert_eq!(elf.symbols["fclose"].len(), 1);
    assert_ne!(elf.symbols["fclose"][0].binding, Binding::Local);
}

#[test]
fn go_is_known_by_its_sections_or_by_its_build_information() {
    let dir = tempfile::tempdir().unwrap();
    let plain = "int main(void) { return 0; }";
    for (flag, source) in [
        (true, r#"__attribute__((section(".go.buildinfo"), used)) int x = 1; int main(void) { return 0; }"#),
        (true, r#"__attribute__((section(".gopclntab"), used)) int x = 1; int main(void) { return 0; }"#),
        (true, r#"__attribute__((aligned(16))) char x[] = "\xff Go buildinf:"; int main(void) { return 0; }"#),
        // The same in read-only data: a program that looks for Go programs.
        (false, r#"__attribute__((aligned(16))) const char x[] = "\xff Go buildinf:"; int main(void) { return 0; }"#),
        (false, plain),
    ] {
        let elf = Elf::parse(&read(build(&dir, source, &[])), |_| false).unwrap();
        assert_eq!(elf.go, flag, "{source}");
    }
    // As position-independent Go programs have it; a C linker would merge it with others.
    let exe = build(&dir, plain, &[]);
    output("objcopy", &["--rename-section", ".comment=.data.rel.ro.gopclntab", exe.to_str().unwrap()]);
    assert!(Elf::parse(&read(&exe), |_| false).unwrap().go);
}
