//! The filter language: what matches, and the errors of a text that is no filter.

use crate::summary::filter::*;
use proptest::prelude::*;

const CALL: CallFields = CallFields {
    layer: Layer::Hdf5,
    op: "H5Dwrite",
    kind: Kind::Write,
    path: Some("/data/run 1/out.h5"),
    pid: 4711,
    tid: 4712,
    rank: Some(3),
    dur_ns: 12_000_000,
    self_ns: 400,
    offset: Some(4096),
    bytes: Some(1 << 20),
    errno: 0,
};

fn matches(text: &str) -> bool {
    Filter::parse(text).unwrap_or_else(|e| panic!("{e}")).matches(&CALL)
}

#[test]
fn conditions_on_every_field() {
    for yes in [
        "layer=hdf5",
        "layer=mpiio,hdf5",
        "layer!=syscall",
        "op=H5Dwrite",
        "op~H5D*",
        "op~*write",
        "op!~H5F*",
        "kind=write",
        "kind==read,write",
        "file~*.h5",
        "file=out.h5",
        "file='/data/run 1/out.h5'",
        "file~out*",
        "file!~*.nc",
        "pid=4711",
        "tid=4712",
        "rank=3",
        "rank=0..7",
        "rank!=0,1",
        "dur>10ms",
        "dur<=12ms",
        "dur=0.012s",
        "self<1us",
        "bytes>=1M",
        "bytes=1MiB",
        "bytes<1.5m",
        "offset=4k",
        "errno=0",
    ] {
        assert!(matches(yes), "{yes}");
        assert!(!matches(&format!("not {yes}")), "not {yes}");
        assert!(!matches(&format!("!({yes})")), "!({yes})");
    }
}

#[test]
fn and_binds_closer_than_or_and_needs_no_word() {
    assert!(matches("layer=vfs and pid=1 or rank=3"));
    assert!(!matches("layer=vfs and (pid=1 or rank=3)"));
    assert!(matches("layer=hdf5 kind=write !(pid=1) dur > 1ms"));
    assert!(matches("LAYER=hdf5 && NOT (pid=1 || pid=2)"));
    assert!(!matches("not layer=vfs and pid=1"), "not belongs to what follows it at once");
}

#[test]
fn what_a_call_does_not_have_fulfils_no_comparison() {
    let bare = CallFields { path: None, rank: None, offset: None, bytes: None, ..CALL };
    for text in ["file~*", "file!=x", "rank=0", "rank!=0", "bytes<1", "bytes!=7", "offset>=0"] {
        assert!(!Filter::parse(text).unwrap().matches(&bare), "{text}");
    }
}

#[test]
fn errors_name_the_place() {
    let wrong = |text: &str| Filter::parse(text).unwrap_err().to_string();
    insta::assert_snapshot!(wrong(""), @r#"at character 1 of "": a filter is expected, such as: layer=hdf5 and dur>10ms"#);
    let layers = Layer::names(|_| true);
    let no_layer = r#"at character 7 of "layer=hdf": no such layer (did you mean "hdf5"?); layers are: "#;
    assert_eq!(wrong("layer=hdf"), format!("{no_layer}{layers}"));
    insta::assert_snapshot!(wrong("size>3"), @r#"at character 1 of "size>3": "size" is no field; fields are: layer, op, kind, file, pid, tid, rank, dur, self, bytes, offset, errno"#);
    insta::assert_snapshot!(wrong("dur>10"), @r#"at character 5 of "dur>10": expected a time with its unit: 500us, 10ms, 1.5s"#);
    insta::assert_snapshot!(wrong("layer=hdf5 and (pid=1"), @r#"at character 16 of "layer=hdf5 and (pid=1": this parenthesis is never closed"#);
    insta::assert_snapshot!(wrong("pid=1)"), @r#"at character 6 of "pid=1)": this parenthesis was never opened"#);
    insta::assert_snapshot!(wrong("op>x"), @r#"at character 3 of "op>x": op is compared with =, !=, ~ and !~"#);
    insta::assert_snapshot!(wrong("pid"), @r#"at character 4 of "pid": expected a comparison after pid: = != ~ !~ < <= > >="#);
    insta::assert_snapshot!(wrong("pid="), @r#"at character 5 of "pid=": expected a value of pid"#);
    insta::assert_snapshot!(wrong("rank=7..0"), @r#"at character 6 of "rank=7..0": a range goes from the lower to the higher value"#);
    insta::assert_snapshot!(wrong("file='x"), @r#"at character 6 of "file='x": this quotation mark is never closed"#);
    insta::assert_snapshot!(wrong("pid=1 or"), @r#"at character 9 of "pid=1 or": expected a field (layer, op, kind, file, pid, tid, rank, dur, self, bytes, offset, errno), not or ("#);
}

#[test]
fn deep_nesting_is_refused_and_not_crashed_on() {
    let deep = format!("{}pid=1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(Filter::parse(&deep).unwrap_err().why.contains("deep"));
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,60}") {
        if let Err(e) = Filter::parse(&text) {
            prop_assert!(e.at <= text.chars().count());
        }
    }

    #[test]
    fn no_text_of_its_own_words_panics(words in prop::collection::vec(prop::sample::select(vec![
        "layer", "=", "hdf5", "(", ")", "not", "!", "and", "or", "dur", ">", "10ms", "file", "~", "*", ",", "..", "'", " ", "µs", "-1", "1e9",
    ]), 0..20)) {
        let _ = Filter::parse(&words.concat()).map(|f| f.matches(&CALL));
    }

    #[test]
    fn a_star_stands_for_anything(a in "[ab/]{0,6}", b in "[ab/]{0,6}", c in "[ab/]{0,6}") {
        let (pattern, text) = (format!("{a}*{c}"), format!("{a}{b}{c}"));
        prop_assert!(glob(pattern.as_bytes(), text.as_bytes()));
        prop_assert_eq!(glob(a.as_bytes(), b.as_bytes()), a == b);
    }
}
