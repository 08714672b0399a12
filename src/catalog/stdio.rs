//! C standard I/O rows. Signatures: ISO C and POSIX.1-2017; a `FILE*` is the handle.

use super::Src::{Arg, Asked, Int, Mul, Ret, RetTimes, Strlen};
use super::{Fails, Family, Role, Row, row};
use crate::words::{Kind, Layer};

const fn c(symbol: &'static str, kind: Kind) -> Row {
    row(Family::Libc, Layer::Stdio, symbol, kind)
}
const fn open(symbol: &'static str) -> Row {
    c(symbol, Kind::Open).role(Role::Open).handle(Ret).path(0).fails(Fails::Zero)
}
/// `size_t f(buf, size, n, FILE*)`
const fn items(symbol: &'static str, kind: Kind) -> Row {
    c(symbol, kind).handle(Arg(3)).len(Mul(1, 2)).got(RetTimes(1)).fails(Fails::Never)
}
/// `int f(FILE*, format, ...)`: the result is the number of bytes.
const fn printf(symbol: &'static str) -> Row {
    c(symbol, Kind::Write).handle(Arg(0)).len(Ret).got(Ret).fails(Fails::NegativeInt)
}
const fn seek(symbol: &'static str) -> Row {
    c(symbol, Kind::Seek).handle(Arg(0)).off(Arg(1)).fails(Fails::NegativeInt)
}

pub(super) const ROWS: &[Row] = &[
    open("fopen"),
    open("fopen64"),
    open("freopen"),
    open("freopen64"),
    c("fdopen", Kind::Open).role(Role::Open).handle(Ret).off(Int(0)).fails(Fails::Zero),
    c("fclose", Kind::Close).role(Role::Close).handle(Arg(0)).fails(Fails::NegativeInt),
    items("fread", Kind::Read),
    items("fwrite", Kind::Write),
    // The chk variant carries the size of the buffer as its second argument.
    c("__fread_chk", Kind::Read).op("fread").handle(Arg(4)).len(Mul(2, 3)).got(RetTimes(2)).fails(Fails::Never),
    c("fgets", Kind::Read).handle(Arg(2)).len(Int(1)).got(Strlen(0)).fails(Fails::Eof),
    c("__fgets_chk", Kind::Read).op("fgets").handle(Arg(3)).len(Int(2)).got(Strlen(0)).fails(Fails::Eof),
    c("fputs", Kind::Write).handle(Arg(1)).len(Strlen(0)).got(Asked).fails(Fails::NegativeInt),
    printf("fprintf"),
    printf("vfprintf"),
    printf("__fprintf_chk").op("fprintf"),
    printf("__vfprintf_chk").op("vfprintf"),
    c("fflush", Kind::Sync).handle(Arg(0)).fails(Fails::NegativeInt),
    seek("fseek"),
    seek("fseeko"),
    seek("fseeko64"),
    c("rewind", Kind::Seek).handle(Arg(0)).fails(Fails::Never),
];
