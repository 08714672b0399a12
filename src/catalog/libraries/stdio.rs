//! C standard I/O rows. Signatures: ISO C23, POSIX.1-2017, glibc's stdio.h and wchar.h; a `FILE*` is the handle.
//!
//! Of names that share their code the first row is probed. Functions on wide characters move bytes too, but return
//! characters, so their bytes are not known.

use crate::catalog::Src::{
    self, Arg, Asked, Const, Global, Int, Line, Mul, Ret, RetTimes, StreamEnd, StreamMoved, StreamPos, Strlen,
};
use crate::catalog::def::{Def, row, rows};
use crate::catalog::role::{Close, Data, Open, Reopen, Seek};
use crate::catalog::{Fails, Family, Row, Variable};
use crate::vocabulary::{Kind, Layer};

const STDIN: Src = Global(Variable::Stdin);
const STDOUT: Src = Global(Variable::Stdout);
const STDERR: Src = Global(Variable::Stderr);

const fn c(symbol: &'static str, kind: Kind) -> Def<Data> {
    row(Family::Libc, Layer::Stdio, symbol, kind).fails(Fails::NegativeInt)
}
/// `FILE *f(...)`
const fn open(symbol: &'static str) -> Def<Open> {
    c(symbol, Kind::Open).opens(Ret).fails(Fails::Zero)
}
/// `FILE *f(path, mode, FILE*)`
const fn reopen(symbol: &'static str) -> Def<Reopen> {
    c(symbol, Kind::Open).reopens(Ret, Arg(2)).path(0).fails(Fails::Zero)
}
/// `int f(FILE*)`
const fn close(symbol: &'static str) -> Def<Close> {
    c(symbol, Kind::Close).closes(Arg(0)).position(StreamPos)
}

/// A read or write from where the stream stands.
const fn read(symbol: &'static str, stream: Src) -> Def<Data> {
    c(symbol, Kind::Read).handle(stream).off(StreamPos).brief()
}
const fn write(symbol: &'static str, stream: Src) -> Def<Data> {
    c(symbol, Kind::Write).handle(stream).off(StreamPos).brief()
}
/// `size_t f(buf, size, n, FILE*)`
const fn fread(symbol: &'static str) -> Def<Data> {
    read(symbol, Arg(3)).len(Mul(1, 2)).got(RetTimes(1)).fails(Fails::Eof)
}
/// The same with the size of the buffer as its second argument.
const fn fread_chk(symbol: &'static str, plain: &'static str) -> Def<Data> {
    read(symbol, Arg(4)).op(plain).len(Mul(2, 3)).got(RetTimes(2)).fails(Fails::Eof)
}
const fn fwrite(symbol: &'static str) -> Def<Data> {
    write(symbol, Arg(3)).len(Mul(1, 2)).got(RetTimes(1)).fails(Fails::Eof)
}
/// `int f(FILE*)` or `int f(void)`: a byte.
const fn getc(symbol: &'static str, stream: Src) -> Def<Data> {
    read(symbol, stream).len(Const(1)).got(Asked).fails(Fails::EofInt)
}
/// `int f(c, FILE*)` or `int f(c)`
const fn putc(symbol: &'static str, stream: Src) -> Def<Data> {
    write(symbol, stream).len(Const(1)).got(Asked)
}
/// `char *f(buf, n, FILE*)`
const fn fgets(symbol: &'static str) -> Def<Data> {
    read(symbol, Arg(2)).len(Int(1)).got(Strlen(0)).fails(Fails::Eof)
}
const fn fgets_chk(symbol: &'static str, plain: &'static str) -> Def<Data> {
    read(symbol, Arg(3)).op(plain).len(Int(2)).got(Strlen(0)).fails(Fails::Eof)
}
/// `char *f(buf)`: removes the newline from what it read, so that only the position shows the bytes.
const fn gets(symbol: &'static str) -> Def<Data> {
    read(symbol, STDIN).op("gets").got(StreamMoved).fails(Fails::Eof)
}
/// `ssize_t f(..., FILE*)`: the result is the number of bytes.
const fn getline(symbol: &'static str, stream: Src) -> Def<Data> {
    read(symbol, stream).got(Ret).fails(Fails::EofInt)
}
/// The result counts conversions; only the position shows the bytes.
const fn scanf(symbol: &'static str, plain: &'static str, stream: Src) -> Def<Data> {
    read(symbol, stream).op(plain).got(StreamMoved).fails(Fails::EofInt)
}
const fn fputs(symbol: &'static str) -> Def<Data> {
    write(symbol, Arg(1)).len(Strlen(0)).got(Asked)
}
/// The result is the number of bytes.
const fn printf(symbol: &'static str, plain: &'static str, stream: Src) -> Def<Data> {
    write(symbol, stream).op(plain).len(Ret).got(Ret)
}
/// `int f(fd, ...)`: a stream of its own, which ends with the call.
const fn dprintf(symbol: &'static str, plain: &'static str) -> Def<Data> {
    c(symbol, Kind::Write).op(plain).len(Ret).got(Ret)
}

/// A read of wide characters; the result is -1 or null at the end of the file.
const fn wide_read(symbol: &'static str, plain: &'static str, stream: Src, fails: Fails) -> Def<Data> {
    c(symbol, Kind::Read).op(plain).handle(stream).fails(fails)
}
const fn getwc(symbol: &'static str, stream: Src) -> Def<Data> {
    wide_read(symbol, symbol, stream, Fails::EofInt)
}
const fn wide_write(symbol: &'static str, plain: &'static str, stream: Src) -> Def<Data> {
    c(symbol, Kind::Write).op(plain).handle(stream)
}
const fn putwc(symbol: &'static str, stream: Src) -> Def<Data> {
    wide_write(symbol, symbol, stream)
}

/// `int f(FILE*, ...)`: its offset is where the stream stands afterwards.
const fn seek(symbol: &'static str) -> Def<Data> {
    c(symbol, Kind::Seek).handle(Arg(0)).len(StreamPos).off(StreamEnd)
}
/// `int f(FILE*, offset, whence)`
const fn seek_from(symbol: &'static str) -> Def<Seek> {
    c(symbol, Kind::Seek).handle(Arg(0)).seeks(StreamEnd, StreamPos, Int(2))
}
/// `long f(FILE*)`: where it stands.
const fn tell(symbol: &'static str) -> Def<Data> {
    c(symbol, Kind::Other).handle(Arg(0)).off(Ret).fails(Fails::Negative)
}
/// `int f(FILE*, ...)` that moves nothing.
const fn on(symbol: &'static str, kind: Kind) -> Def<Data> {
    c(symbol, kind).handle(Arg(0)).len(StreamPos)
}
/// What the functions above call when a stream's buffer is empty or full, and what `exit` calls for each stream that is open
/// (glibc, libio/fileops.c; others have no such functions). They go through a table of pointers, so that their probes are met
/// from inside the library, too.
const fn slow(symbol: &'static str, does: Kind) -> Def<Data> {
    sure(on(symbol, Kind::Other)).outermost().slow_path(does)
}
/// `void f(FILE*, ...)`
const fn sure(row: Def<Data>) -> Def<Data> {
    row.fails(Fails::Never)
}

pub(in crate::catalog) const ROWS: &[Row] = rows![
    // The most used ones first: kernels without links for many probes get only so many, see `loader::attach`.
    open("fopen").path(0),
    open("fopen64").path(0),
    open("fdopen").opened_in(Int(0)),
    reopen("freopen"),
    close("fclose"),
    fread("fread"),
    fwrite("fwrite"),
    fgets("fgets"),
    fputs("fputs"),
    printf("fprintf", "fprintf", Arg(0)),
    printf("__fprintf_chk", "fprintf", Arg(0)),
    printf("vfprintf", "vfprintf", Arg(0)),
    printf("__vfprintf_chk", "vfprintf", Arg(0)),
    getc("fgetc", Arg(0)),
    getc("getc", Arg(0)),
    putc("fputc", Arg(1)),
    putc("putc", Arg(1)),
    write("puts", STDOUT).len(Line(0)).got(Asked),
    printf("printf", "printf", STDOUT),
    printf("__printf_chk", "printf", STDOUT),
    on("fflush", Kind::Sync),
    seek_from("fseek"),
    seek_from("fseeko"),
    seek_from("fseeko64"),
    // Open and close.
    reopen("freopen64"),
    open("tmpfile"),
    open("tmpfile64"),
    open("popen"),
    open("fopencookie"),
    open("fmemopen"),
    open("open_memstream"),
    open("open_wmemstream"),
    close("pclose"),
    c("fcloseall", Kind::Close),
    // Read.
    fread("fread_unlocked"),
    fread_chk("__fread_chk", "fread"),
    fread_chk("__fread_unlocked_chk", "fread_unlocked"),
    getc("_IO_getc", Arg(0)),
    getc("fgetc_unlocked", Arg(0)),
    getc("getc_unlocked", Arg(0)),
    getc("getchar", STDIN),
    getc("getchar_unlocked", STDIN),
    // The word may be what stands for the end of the file.
    sure(read("getw", Arg(0)).len(Const(4)).got(StreamMoved)),
    fgets("fgets_unlocked"),
    fgets_chk("__fgets_chk", "fgets"),
    fgets_chk("__fgets_unlocked_chk", "fgets_unlocked"),
    gets("gets"),
    gets("__gets_chk"),
    getline("getline", Arg(2)),
    getline("getdelim", Arg(3)),
    getline("__getdelim", Arg(3)),
    scanf("fscanf", "fscanf", Arg(0)),
    scanf("__isoc99_fscanf", "fscanf", Arg(0)),
    scanf("__isoc23_fscanf", "fscanf", Arg(0)),
    scanf("vfscanf", "vfscanf", Arg(0)),
    scanf("__isoc99_vfscanf", "vfscanf", Arg(0)),
    scanf("__isoc23_vfscanf", "vfscanf", Arg(0)),
    scanf("scanf", "scanf", STDIN),
    scanf("__isoc99_scanf", "scanf", STDIN),
    scanf("__isoc23_scanf", "scanf", STDIN),
    scanf("vscanf", "vscanf", STDIN),
    scanf("__isoc99_vscanf", "vscanf", STDIN),
    scanf("__isoc23_vscanf", "vscanf", STDIN),
    // Write.
    fwrite("fwrite_unlocked"),
    putc("_IO_putc", Arg(1)),
    putc("fputc_unlocked", Arg(1)),
    putc("putc_unlocked", Arg(1)),
    putc("putchar", STDOUT),
    putc("putchar_unlocked", STDOUT),
    write("putw", Arg(1)).len(Const(4)).got(Asked).fails(Fails::NonZero),
    fputs("fputs_unlocked"),
    printf("vprintf", "vprintf", STDOUT),
    printf("__vprintf_chk", "vprintf", STDOUT),
    dprintf("dprintf", "dprintf"),
    dprintf("__dprintf_chk", "dprintf"),
    dprintf("vdprintf", "vdprintf"),
    dprintf("__vdprintf_chk", "vdprintf"),
    sure(write("perror", STDERR)),
    sure(write("psignal", STDERR)),
    sure(write("psiginfo", STDERR)),
    // Wide characters.
    getwc("fgetwc", Arg(0)),
    getwc("getwc", Arg(0)),
    getwc("fgetwc_unlocked", Arg(0)),
    getwc("getwc_unlocked", Arg(0)),
    getwc("getwchar", STDIN),
    getwc("getwchar_unlocked", STDIN),
    wide_read("fgetws", "fgetws", Arg(2), Fails::Eof),
    wide_read("fgetws_unlocked", "fgetws_unlocked", Arg(2), Fails::Eof),
    wide_read("__fgetws_chk", "fgetws", Arg(3), Fails::Eof),
    wide_read("__fgetws_unlocked_chk", "fgetws_unlocked", Arg(3), Fails::Eof),
    wide_read("fwscanf", "fwscanf", Arg(0), Fails::EofInt),
    wide_read("__isoc99_fwscanf", "fwscanf", Arg(0), Fails::EofInt),
    wide_read("__isoc23_fwscanf", "fwscanf", Arg(0), Fails::EofInt),
    wide_read("vfwscanf", "vfwscanf", Arg(0), Fails::EofInt),
    wide_read("__isoc99_vfwscanf", "vfwscanf", Arg(0), Fails::EofInt),
    wide_read("__isoc23_vfwscanf", "vfwscanf", Arg(0), Fails::EofInt),
    wide_read("wscanf", "wscanf", STDIN, Fails::EofInt),
    wide_read("__isoc99_wscanf", "wscanf", STDIN, Fails::EofInt),
    wide_read("__isoc23_wscanf", "wscanf", STDIN, Fails::EofInt),
    wide_read("vwscanf", "vwscanf", STDIN, Fails::EofInt),
    wide_read("__isoc99_vwscanf", "vwscanf", STDIN, Fails::EofInt),
    wide_read("__isoc23_vwscanf", "vwscanf", STDIN, Fails::EofInt),
    putwc("fputwc", Arg(1)),
    putwc("putwc", Arg(1)),
    putwc("fputwc_unlocked", Arg(1)),
    putwc("putwc_unlocked", Arg(1)),
    putwc("putwchar", STDOUT),
    putwc("putwchar_unlocked", STDOUT),
    wide_write("fputws", "fputws", Arg(1)),
    wide_write("fputws_unlocked", "fputws_unlocked", Arg(1)),
    wide_write("fwprintf", "fwprintf", Arg(0)),
    wide_write("__fwprintf_chk", "fwprintf", Arg(0)),
    wide_write("vfwprintf", "vfwprintf", Arg(0)),
    wide_write("__vfwprintf_chk", "vfwprintf", Arg(0)),
    wide_write("wprintf", "wprintf", STDOUT),
    wide_write("__wprintf_chk", "wprintf", STDOUT),
    wide_write("vwprintf", "vwprintf", STDOUT),
    wide_write("__vwprintf_chk", "vwprintf", STDOUT),
    // Position.
    sure(seek("rewind")),
    seek("fsetpos").fails(Fails::NonZero),
    seek("fsetpos64").fails(Fails::NonZero),
    tell("ftell"),
    tell("ftello"),
    tell("ftello64"),
    seek("fgetpos").kind(Kind::Other).fails(Fails::NonZero),
    seek("fgetpos64").kind(Kind::Other).fails(Fails::NonZero),
    // Buffers. A byte or character that is pushed back is no byte moved.
    on("fflush_unlocked", Kind::Sync),
    sure(c("_flushlbf", Kind::Sync)),
    on("setvbuf", Kind::Other).len(Arg(3)).fails(Fails::NonZero),
    sure(on("setbuf", Kind::Other)),
    sure(on("setbuffer", Kind::Other).len(Arg(2))),
    sure(on("setlinebuf", Kind::Other)),
    c("ungetc", Kind::Other).handle(Arg(1)).len(StreamPos).off(StreamEnd),
    c("ungetwc", Kind::Other).handle(Arg(1)),
    on("fileno", Kind::Other),
    on("fileno_unlocked", Kind::Other),
    slow("_IO_file_underflow", Kind::Read),
    slow("_IO_file_overflow", Kind::Write),
    slow("_IO_file_setbuf", Kind::Other),
];
