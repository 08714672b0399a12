/*
 * Calls every function of C standard I/O that the GNU C library exports, with exactly known bytes at exactly known
 * places: `stdio_all DIR`.
 *
 * Writes DIR/truth.json without using stdio: {"pid":..,"calls":{"fopen":n,..},"bytes":{"fgetc":n,..},
 * "offset":{"fgetc":sum,..},"errors":{"fopen":n,..}}, by symbol. Sums of bytes and offsets are of calls on files whose
 * functions return them.
 */
#define __NO_INLINE__ 1 /* The functions and not the headers' inline versions of them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio_ext.h>
#include <wchar.h>

#include "truth.h"

/* What the tracer reads of a FILE. */
_Static_assert(offsetof(FILE, _flags) == 0, "flags");
_Static_assert(offsetof(FILE, _IO_read_ptr) == 8, "read_ptr");
_Static_assert(offsetof(FILE, _IO_read_end) == 16, "read_end");
_Static_assert(offsetof(FILE, _IO_write_base) == 32, "write_base");
_Static_assert(offsetof(FILE, _IO_write_ptr) == 40, "write_ptr");
_Static_assert(offsetof(FILE, _IO_save_base) == 72, "save_base");
_Static_assert(offsetof(FILE, _IO_save_end) == 88, "save_end");
_Static_assert(offsetof(FILE, _fileno) == 112, "fd");
_Static_assert(offsetof(FILE, _mode) == 192, "mode");

/* Functions that the headers hide behind others. */
extern char *gets(char *);
extern int _IO_getc(FILE *), _IO_putc(int, FILE *);
extern int plain_fscanf(FILE *, const char *, ...) __asm__("fscanf");
extern int plain_vfscanf(FILE *, const char *, va_list) __asm__("vfscanf");
extern int plain_scanf(const char *, ...) __asm__("scanf");
extern int plain_vscanf(const char *, va_list) __asm__("vscanf");
extern int plain_fwscanf(FILE *, const wchar_t *, ...) __asm__("fwscanf");
extern int plain_vfwscanf(FILE *, const wchar_t *, va_list) __asm__("vfwscanf");
extern int plain_wscanf(const wchar_t *, ...) __asm__("wscanf");
extern int plain_vwscanf(const wchar_t *, va_list) __asm__("vwscanf");
extern int __isoc99_fscanf(FILE *, const char *, ...), __isoc99_vfscanf(FILE *, const char *, va_list);
extern int __isoc99_scanf(const char *, ...), __isoc99_vscanf(const char *, va_list);
extern int __isoc99_fwscanf(FILE *, const wchar_t *, ...), __isoc99_vfwscanf(FILE *, const wchar_t *, va_list);
extern int __isoc99_wscanf(const wchar_t *, ...), __isoc99_vwscanf(const wchar_t *, va_list);
extern size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
extern size_t __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);
extern char *__fgets_chk(char *, size_t, int, FILE *), *__fgets_unlocked_chk(char *, size_t, int, FILE *);
extern char *__gets_chk(char *, size_t);
extern int __fprintf_chk(FILE *, int, const char *, ...), __vfprintf_chk(FILE *, int, const char *, va_list);
extern int __printf_chk(int, const char *, ...), __vprintf_chk(int, const char *, va_list);
extern int __dprintf_chk(int, int, const char *, ...), __vdprintf_chk(int, int, const char *, va_list);
extern wchar_t *__fgetws_chk(wchar_t *, size_t, int, FILE *);
extern wchar_t *__fgetws_unlocked_chk(wchar_t *, size_t, int, FILE *);
extern int __fwprintf_chk(FILE *, int, const wchar_t *, ...), __vfwprintf_chk(FILE *, int, const wchar_t *, va_list);
extern int __wprintf_chk(int, const wchar_t *, ...), __vwprintf_chk(int, const wchar_t *, va_list);

/* Calls and counts. */
#define DO(f, ...)	    COUNT("calls", f, __VA_ARGS__)
#define DO_AS(name, f, ...) (tally("calls", name, 1), f(__VA_ARGS__))

/* Where the stream in use is in its file, as it follows from what was called. */
static long at;

/* The call moved n bytes. */
static void moved(const char *name, long n)
{
	tally("bytes", name, n);
	tally("offset", name, at);
	at += n;
}

/* A call that moves n bytes and then is as its result must be. */
#define MOVE(n, f, condition, ...)                                                                                     \
	do {                                                                                                           \
		CHECK(DO(f, __VA_ARGS__) condition);                                                                   \
		moved(#f, n);                                                                                          \
	} while (0)
#define MOVE_AS(name, n, f, condition, ...)                                                                            \
	do {                                                                                                           \
		CHECK(DO_AS(name, f, __VA_ARGS__) condition);                                                          \
		moved(name, n);                                                                                        \
	} while (0)

/* A call that must fail. */
#define FAIL(f, condition, ...)                                                                                        \
	do {                                                                                                           \
		CHECK(DO(f, __VA_ARGS__) condition);                                                                   \
		tally("errors", #f, 1);                                                                                \
	} while (0)

/* Functions that take a va_list, called with arguments. */
#define WITH_LIST(name, type, call)                                                                                    \
	static int name(type target, const void *format, ...)                                                          \
	{                                                                                                              \
		va_list list;                                                                                          \
		va_start(list, format);                                                                                \
		(void)target;                                                                                          \
		int n = call;                                                                                          \
		va_end(list);                                                                                          \
		return n;                                                                                              \
	}
WITH_LIST(call_vfprintf, FILE *, vfprintf(target, format, list))
WITH_LIST(call_vfprintf_chk, FILE *, __vfprintf_chk(target, 1, format, list))
WITH_LIST(call_vprintf, FILE *, vprintf(format, list))
WITH_LIST(call_vprintf_chk, FILE *, __vprintf_chk(1, format, list))
WITH_LIST(call_vdprintf, int, vdprintf(target, format, list))
WITH_LIST(call_vdprintf_chk, int, __vdprintf_chk(target, 1, format, list))
WITH_LIST(call_vfscanf, FILE *, plain_vfscanf(target, format, list))
WITH_LIST(call_vfscanf99, FILE *, __isoc99_vfscanf(target, format, list))
WITH_LIST(call_vscanf, FILE *, plain_vscanf(format, list))
WITH_LIST(call_vscanf99, FILE *, __isoc99_vscanf(format, list))
WITH_LIST(call_vfwprintf, FILE *, vfwprintf(target, format, list))
WITH_LIST(call_vfwprintf_chk, FILE *, __vfwprintf_chk(target, 1, format, list))
WITH_LIST(call_vwprintf, FILE *, vwprintf(format, list))
WITH_LIST(call_vwprintf_chk, FILE *, __vwprintf_chk(1, format, list))
WITH_LIST(call_vfwscanf, FILE *, plain_vfwscanf(target, format, list))
WITH_LIST(call_vfwscanf99, FILE *, __isoc99_vfwscanf(target, format, list))
WITH_LIST(call_vwscanf, FILE *, plain_vwscanf(format, list))
WITH_LIST(call_vwscanf99, FILE *, __isoc99_vwscanf(format, list))

static char dir[4000];

static const char *in_dir(const char *name)
{
	static char paths[4][4096];
	static int turn;
	char *path = paths[turn++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* A file that stdio has nothing to do with. */
static const char *make(const char *name, const char *text)
{
	const char *path = in_dir(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && !truth_write(fd, text) && !close(fd));
	return path;
}

static void writes(void)
{
	FILE *f = DO(fopen, in_dir("writes"), "w");
	CHECK(f);
	at = 0;
	CHECK(DO(setvbuf, f, NULL, _IOFBF, 64) == 0);
	for (int i = 0; i < 100; i++)
		MOVE(1, fputc, == 'a', 'a', f);
	MOVE(1, putc, == 'b', 'b', f);
	MOVE(1, _IO_putc, == 'c', 'c', f);
	MOVE(1, fputc_unlocked, == 'd', 'd', f);
	MOVE(1, putc_unlocked, == 255, 255, f);
	MOVE(4, putw, == 0, 0x01020304, f);
	MOVE(6, fputs, >= 0, "fputs\n", f);
	MOVE(0, fputs, >= 0, "", f);
	MOVE(7, fputs_unlocked, >= 0, "fputs_u", f);
	/* More than the buffer. */
	static const char block[1000];
	MOVE(1000, fwrite, == 125, block, 8, 125, f);
	MOVE(0, fwrite, == 0, block, 8, 0, f);
	MOVE(30, fwrite_unlocked, == 10, block, 3, 10, f);
	MOVE(8, fprintf, == 8, f, "%d %s\n", 42, "text");
	MOVE(5, __fprintf_chk, == 5, f, 1, "%5d", 7);
	MOVE_AS("vfprintf", 3, call_vfprintf, == 3, f, "%d", 123);
	MOVE_AS("__vfprintf_chk", 4, call_vfprintf_chk, == 4, f, "%d", 1234);
	CHECK(DO(fflush, f) == 0 && DO(fflush_unlocked, f) == 0);
	CHECK(DO(fclose, f) == 0);

	/* At the end of the file, wherever the stream stands. */
	f = DO(fopen64, in_dir("writes"), "a+");
	CHECK(f);
	long size = at;
	at = 0;
	MOVE(1, fgetc, == 'a', f);
	at = size;
	MOVE(3, fputs, >= 0, "end", f);
	CHECK(DO(fseek, f, 0, SEEK_SET) == 0);
	at = size + 3;
	MOVE(3, fputs, >= 0, "END", f);
	CHECK(DO(fclose, f) == 0);

	/* On a descriptor, whose position the stream takes over. */
	int fd = open(in_dir("writes"), O_WRONLY);
	CHECK(lseek(fd, 50, SEEK_SET) == 50);
	f = DO(fdopen, fd, "w");
	CHECK(f && DO(fileno, f) == fd && DO(fileno_unlocked, f) == fd);
	at = 50;
	MOVE(2, fputs, >= 0, "50", f);
	CHECK(DO(fclose, f) == 0);

	/* Not through a stream of the program's: without a place. */
	fd = open(in_dir("dprintf"), O_WRONLY | O_CREAT, 0600);
	CHECK(DO(dprintf, fd, "%d", 1) == 1 && DO(__dprintf_chk, fd, 1, "%d", 22) == 2);
	CHECK(DO_AS("vdprintf", call_vdprintf, fd, "%d", 333) == 3);
	CHECK(DO_AS("__vdprintf_chk", call_vdprintf_chk, fd, "%d", 4444) == 4);
	tally("bytes", "dprintf", 1);
	tally("bytes", "__dprintf_chk", 2);
	tally("bytes", "vdprintf", 3);
	tally("bytes", "__vdprintf_chk", 4);
	CHECK(close(fd) == 0);
}

static void reads(void)
{
	char buf[256], *line = NULL;
	size_t room = 0;
	/* From 0, 11, 29, 53 and 117 on. */
	const char *path = make("reads", "0123456789\n"
					 "line of 18 bytes.\n"
					 "fgets\nfgets\nfgets\nfgets\n"
					 "a block of bytes of 64 in all, 16 for each of the four functions"
					 "getline\nget;__get;\n");
	FILE *f = DO(fopen, path, "r");
	CHECK(f);
	at = 0;
	MOVE(1, fgetc, == '0', f);
	MOVE(1, getc, == '1', f);
	MOVE(1, _IO_getc, == '2', f);
	MOVE(1, fgetc_unlocked, == '3', f);
	MOVE(1, getc_unlocked, == '4', f);
	MOVE(4, getw, == 0x38373635, f);
	/* A byte that is pushed back is read again. */
	MOVE(1, fgetc, == '9', f);
	CHECK(DO(ungetc, '9', f) == '9');
	at--;
	MOVE(1, fgetc, == '9', f);
	/* Another one than was read, and two of them. */
	CHECK(DO(ungetc, 'y', f) == 'y' && DO(ungetc, 'x', f) == 'x');
	at -= 2;
	MOVE(1, fgetc, == 'x', f);
	MOVE(1, getc, == 'y', f);
	MOVE(1, fgetc, == '\n', f);
	MOVE(9, fgets, == buf, buf, 10, f);
	MOVE(9, fgets, == buf, buf, sizeof(buf), f);
	MOVE(6, fgets, == buf, buf, sizeof(buf), f);
	MOVE(6, fgets_unlocked, == buf, buf, sizeof(buf), f);
	MOVE(6, __fgets_chk, == buf, buf, sizeof(buf), 100, f);
	MOVE(6, __fgets_unlocked_chk, == buf, buf, sizeof(buf), 100, f);
	MOVE(16, fread, == 4, buf, 4, 4, f);
	MOVE(16, fread_unlocked, == 16, buf, 1, 16, f);
	MOVE(16, __fread_chk, == 2, buf, sizeof(buf), 8, 2, f);
	MOVE(16, __fread_unlocked_chk, == 8, buf, sizeof(buf), 2, 8, f);
	MOVE(8, getline, == 8, &line, &room, f);
	MOVE(4, getdelim, == 4, &line, &room, ';', f);
	MOVE(6, __getdelim, == 6, &line, &room, ';', f);
	/* A short read, then nothing. */
	MOVE(1, fread, == 1, buf, 1, 100, f);
	MOVE(0, fread, == 0, buf, 1, 100, f);
	MOVE(0, fgetc, == EOF, f);
	MOVE(0, fgets, == NULL, buf, sizeof(buf), f);
	MOVE(0, getline, == -1, &line, &room, f);
	free(line);

	/* Positions. */
	fpos_t pos;
	fpos64_t pos64;
	CHECK(DO(fseek, f, 5, SEEK_SET) == 0 && DO(ftell, f) == 5 && DO(fgetpos, f, &pos) == 0);
	at = 5;
	MOVE(1, fgetc, == '5', f);
	CHECK(DO(fseeko, f, 2, SEEK_CUR) == 0 && DO(ftello, f) == 8 && DO(fgetpos64, f, &pos64) == 0);
	CHECK(DO(fseeko64, f, -1, SEEK_END) == 0 && DO(ftello64, f) == 135);
	at = 135;
	MOVE(1, fgetc, == '\n', f);
	CHECK(DO(fsetpos, f, &pos) == 0);
	at = 5;
	MOVE(1, fgetc, == '5', f);
	CHECK(DO(fsetpos64, f, &pos64) == 0);
	at = 8;
	MOVE(1, fgetc, == '8', f);
	DO(rewind, f);
	at = 0;
	MOVE(1, fgetc, == '0', f);
	FAIL(fseek, != 0, f, -1, SEEK_SET);
	CHECK(DO(fclose, f) == 0);

	f = DO(fopen, make("scanf", "1 22  333 four 55\n"), "r");
	CHECK(f);
	int n;
	at = 0;
	MOVE_AS("fscanf", 1, plain_fscanf, == 1, f, "%d", &n);
	MOVE(3, __isoc99_fscanf, == 1, f, "%d", &n);
	MOVE_AS("vfscanf", 5, call_vfscanf, == 1, f, "%d", &n);
	/* Blanks are read, and then no number. */
	MOVE_AS("vfscanf", 1, call_vfscanf, == 0, f, "%d", &n);
	MOVE_AS("__isoc99_vfscanf", 7, call_vfscanf99, == 1, f, "four %d", &n);
	/* The same, and then the end. */
	MOVE(1, __isoc99_fscanf, == EOF, f, "%d", &n);
	CHECK(n == 55 && DO(fclose, f) == 0);
}

/* The streams that functions use without an argument. */
static void standard(void)
{
	char buf[64];
	int n;
	/* As the program was started, on a file. */
	at = 0;
	MOVE(6, puts, >= 0, "first");
	MOVE(5, fprintf, == 5, stdout, "again");
	/* The variable is the program's to change. */
	FILE *started = stdout;
	CHECK((stdout = DO(fopen, in_dir("own_stdout"), "w")));
	at = 0;
	MOVE(4, puts, >= 0, "own");
	CHECK(DO(fclose, stdout) == 0);
	stdout = started;
	CHECK(DO(freopen, in_dir("stdout"), "w", stdout) == stdout);
	at = 0;
	MOVE(1, putchar, == 'a', 'a');
	MOVE(1, putchar_unlocked, == 'b', 'b');
	MOVE(8, puts, >= 0, "written");
	MOVE(2, printf, == 2, "%d", 22);
	MOVE(3, __printf_chk, == 3, 1, "%d", 333);
	MOVE_AS("vprintf", 4, call_vprintf, == 4, NULL, "%d", 4444);
	MOVE_AS("__vprintf_chk", 5, call_vprintf_chk, == 5, NULL, "%d", 55555);
	MOVE(3, fputs, >= 0, "end", stdout);
	DO(_flushlbf);
	CHECK(DO(fflush, NULL) == 0);
	/* Without a path: the same file with another mode, which is allowed for what it was opened with. */
	CHECK(DO(freopen64, NULL, "a", stdout) == stdout);
	MOVE(3, fputs, >= 0, "app", stdout);
	DO(setlinebuf, stdout);

	CHECK(DO(freopen64, make("stdin", "ab\ngets\ngets_chk\n1 22 333 4444\n"), "r", stdin) == stdin);
	at = 0;
	MOVE(1, getchar, == 'a');
	MOVE(1, getchar_unlocked, == 'b');
	MOVE(1, getchar, == '\n');
	MOVE(5, gets, == buf, buf);
	MOVE(9, __gets_chk, == buf, buf, sizeof(buf));
	MOVE_AS("scanf", 1, plain_scanf, == 1, "%d", &n);
	MOVE(3, __isoc99_scanf, == 1, "%d", &n);
	MOVE_AS("vscanf", 4, call_vscanf, == 1, NULL, "%d", &n);
	MOVE_AS("__isoc99_vscanf", 5, call_vscanf99, == 1, NULL, "%d", &n);
	CHECK(n == 4444);
	MOVE(1, gets, == buf, buf);
	MOVE(0, gets, == NULL, buf);

	/* Messages. */
	CHECK(DO(freopen, in_dir("stderr"), "w", stderr) == stderr);
	siginfo_t info = {.si_signo = SIGTERM};
	errno = ENOENT;
	DO(perror, "perror");
	DO(psignal, SIGTERM, "psignal");
	DO(psiginfo, &info, "psiginfo");
}

/* Of wide characters the bytes are not known. */
static void wide(void)
{
	wchar_t buf[64];
	FILE *f = DO(fopen, in_dir("wide"), "w+");
	CHECK(f && DO(fputwc, L'a', f) == L'a' && DO(putwc, L'b', f) == L'b');
	CHECK(DO(fputwc_unlocked, L'c', f) == L'c' && DO(putwc_unlocked, L'd', f) == L'd');
	CHECK(DO(fputws, L"ef\ngh\nij\nkl\nmn\n", f) >= 0 && DO(fputws_unlocked, L"1 2 ", f) >= 0);
	CHECK(DO(fwprintf, f, L"%d ", 3) == 2 && DO(__fwprintf_chk, f, 1, L"%d ", 4) == 2);
	CHECK(DO_AS("vfwprintf", call_vfwprintf, f, L"%d ", 5) == 2);
	CHECK(DO_AS("__vfwprintf_chk", call_vfwprintf_chk, f, L"%d ", 6) == 2);
	DO(rewind, f);
	CHECK(DO(fgetwc, f) == L'a' && DO(getwc, f) == L'b' && DO(fgetwc_unlocked, f) == L'c');
	CHECK(DO(ungetwc, L'c', f) == L'c' && DO(fgetwc, f) == L'c' && DO(getwc_unlocked, f) == L'd');
	CHECK(DO(fgetws, buf, 64, f) && DO(fgetws_unlocked, buf, 64, f));
	CHECK(DO(__fgetws_chk, buf, 64, 60, f) && DO(__fgetws_unlocked_chk, buf, 64, 60, f) && DO(fgetws, buf, 64, f));
	int n;
	CHECK(DO_AS("fwscanf", plain_fwscanf, f, L"%d", &n) == 1 && DO(__isoc99_fwscanf, f, L"%d", &n) == 1);
	CHECK(DO_AS("vfwscanf", call_vfwscanf, f, L"%d", &n) == 1);
	CHECK(DO_AS("__isoc99_vfwscanf", call_vfwscanf99, f, L"%d", &n) == 1 && n == 4);
	CHECK(DO(fclose, f) == 0);

	CHECK(DO(freopen, in_dir("wide_stdout"), "w", stdout) == stdout);
	CHECK(DO(putwchar, L'a') == L'a' && DO(putwchar_unlocked, L'b') == L'b');
	CHECK(DO(wprintf, L"%d", 1) == 1 && DO(__wprintf_chk, 1, L"%d", 2) == 1);
	CHECK(DO_AS("vwprintf", call_vwprintf, NULL, L"%d", 3) == 1);
	CHECK(DO_AS("__vwprintf_chk", call_vwprintf_chk, NULL, L"%d", 4) == 1);
	CHECK(DO(freopen, make("wide_stdin", "ab1 2 3 4"), "r", stdin) == stdin);
	CHECK(DO(getwchar) == L'a' && DO(getwchar_unlocked) == L'b');
	CHECK(DO_AS("wscanf", plain_wscanf, L"%d", &n) == 1 && DO(__isoc99_wscanf, L"%d", &n) == 1);
	CHECK(DO_AS("vwscanf", call_vwscanf, NULL, L"%d", &n) == 1);
	CHECK(DO_AS("__isoc99_vwscanf", call_vwscanf99, NULL, L"%d", &n) == 1 && n == 4);
	CHECK(DO(getwchar) == WEOF);
	tally("bytes", "getwchar", 0);
}

static ssize_t to_nowhere(void *cookie, const char *buf, size_t size)
{
	(void)cookie, (void)buf;
	return (ssize_t)size;
}

/* Streams that are on no file, or on one without a name. */
static void others(void)
{
	char buf[64], *text;
	wchar_t *wtext;
	size_t size;
	FILE *f = DO(tmpfile);
	CHECK(f);
	at = 0;
	MOVE(4, fputs, >= 0, "temp", f);
	CHECK(DO(fclose, f) == 0);
	f = DO(tmpfile64);
	CHECK(f);
	DO(setbuf, f, NULL);
	at = 0;
	MOVE(4, fputs, >= 0, "temp", f);
	CHECK(DO(fclose, f) == 0);

	f = DO(fmemopen, buf, sizeof(buf), "w");
	CHECK(f && DO(fputs, "memory", f) >= 0 && DO(fclose, f) == 0);
	tally("bytes", "fputs", 6);
	f = DO(open_memstream, &text, &size);
	CHECK(f && DO(fputs, "stream", f) >= 0 && DO(fclose, f) == 0);
	tally("bytes", "fputs", 6);
	free(text);
	f = DO(open_wmemstream, &wtext, &size);
	CHECK(f && DO(fputws, L"stream", f) >= 0 && DO(fclose, f) == 0);
	free(wtext);
	f = DO(fopencookie, NULL, "w", ((cookie_io_functions_t){.write = to_nowhere}));
	CHECK(f);
	DO(setbuffer, f, buf, sizeof(buf));
	CHECK(DO(fputs, "cookie", f) >= 0 && DO(fclose, f) == 0);
	tally("bytes", "fputs", 6);

	f = DO(popen, "echo pipe", "r");
	CHECK(f && DO(fgets, buf, sizeof(buf), f) && DO(pclose, f) == 0);
	tally("bytes", "fgets", 5);
}

static void errors(void)
{
	char buf[8];
	FAIL(fopen, == NULL, "/no/such/directory/file", "r");
	FILE *f = DO(fopen, make("errors", "text"), "r");
	CHECK(f);
	FAIL(fputc, == EOF, 'x', f);
	FAIL(fputs, == EOF, "xxx", f);
	FAIL(fwrite, == 0, "x", 1, 1, f);
	FAIL(fprintf, < 0, f, "xxx");
	CHECK(DO(fclose, f) == 0);
	f = DO(fopen, in_dir("errors"), "w");
	CHECK(f);
	FAIL(fgetc, == EOF, f);
	FAIL(fgets, == NULL, buf, sizeof(buf), f);
	FAIL(fread, == 0, buf, 1, sizeof(buf), f);
	/* Nothing was asked for. */
	CHECK(DO(fread, buf, 1, 0, f) == 0);
	CHECK(DO(fclose, f) == 0);
	f = DO(fopen, "/dev/full", "w");
	CHECK(f && DO(fputs, "full", f) >= 0);
	tally("bytes", "fputs", 4);
	FAIL(fclose, == EOF, f);
	f = DO(fopen, in_dir("errors"), "r");
	FAIL(freopen, == NULL, "/no/such/directory/file", "r", f);
}

int main(int argc, char **argv)
{
	static char text[16384];
	if (argc != 2) {
		truth_write(2, "usage: stdio_all DIR\n");
		return 2;
	}
	snprintf(dir, sizeof(dir), "%s", argv[1]);
	writes();
	reads();
	standard();
	wide();
	others();
	errors();
	/* A stream that is flushed, but stays. */
	FILE *f = DO(fopen, in_dir("last"), "w");
	CHECK(f);
	at = 0;
	MOVE(4, fputs, >= 0, "last", f);
	CHECK(DO(fcloseall) == 0);

	const char *groups[] = {"calls", "bytes", "offset", "errors"};
	snprintf(text, sizeof(text), "{\"pid\":%d", getpid());
	for (int i = 0; i < 4; i++) {
		size_t end = strlen(text);
		snprintf(text + end, sizeof(text) - end, ",\"%s\":", groups[i]);
		truth_tallies(text, sizeof(text), groups[i], 1);
	}
	strcat(text, "}\n");
	make("truth.json", text);
	return 0;
}
