/*
 * An exactly known mix of C standard I/O on files in a directory: `stdio_mix DIR`.
 *
 * Prints {"pid":..,"calls":{"fopen":n,..},"read":bytes,"written":bytes,"failed":calls} without using stdio.
 */
#include <fcntl.h>
#include <stdarg.h>

#include "truth.h"

#define STDIO(f, ...) COUNT("stdio", f, __VA_ARGS__)

enum {
	LINES = 100,
	BLOCK = 4096,
	BLOCKS = 64
};

static void wrote(long n)
{
	CHECK(n >= 0);
	tally("stdio", "_written", n);
}

static void got(long n)
{
	tally("stdio", "_read", n);
}

__attribute__((format(printf, 2, 3))) static int print(FILE *file, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = STDIO(vfprintf, file, format, args);
	va_end(args);
	return n;
}

static void lines(const char *path)
{
	char line[256];
	FILE *file = STDIO(fopen, path, "w+");
	CHECK(file);
	for (int i = 0; i < LINES; i++) {
		wrote(STDIO(fprintf, file, "line %d\n", i));
		wrote(print(file, "value %s\n", "x"));
		CHECK(STDIO(fputs, "a fixed line\n", file) >= 0);
		wrote(13);
	}
	CHECK(STDIO(fflush, file) == 0);
	STDIO(rewind, file);
	for (int i = 0; i < 3 * LINES; i++) {
		CHECK(STDIO(fgets, line, sizeof(line), file));
		got((long)strlen(line));
	}
	/* At the end of the file: fails. */
	CHECK(!STDIO(fgets, line, sizeof(line), file));
	tally("stdio", "_failed", 1);
	CHECK(STDIO(fclose, file) == 0);
}

static void blocks(const char *path)
{
	char block[BLOCK];
	memset(block, 'b', sizeof(block));
	FILE *file = STDIO(fopen64, path, "w+");
	CHECK(file);
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(STDIO(fwrite, block, 8, BLOCK / 8, file) == BLOCK / 8);
		wrote(BLOCK);
	}
	CHECK(STDIO(fseek, file, 0, SEEK_SET) == 0);
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(STDIO(fread, block, 1, BLOCK, file) == BLOCK);
		got(BLOCK);
	}
	/* The last four bytes: a short read. */
	CHECK(STDIO(fseeko, file, -4, SEEK_END) == 0);
	CHECK(STDIO(fread, block, 1, BLOCK, file) == 4);
	got(4);
	CHECK(STDIO(fseeko64, file, 100, SEEK_SET) == 0);
	/* 1 byte at a time, from the buffer. */
	for (int i = 0; i < LINES; i++) {
		CHECK(STDIO(fread, block, 1, 1, file) == 1);
		got(1);
	}
	CHECK(STDIO(fseek, file, -1, SEEK_SET) != 0);
	tally("stdio", "_failed", 1);
	CHECK(STDIO(fclose, file) == 0);
}

static void other_opens(const char *lines_path, const char *blocks_path)
{
	char byte;
	FILE *file = STDIO(fopen, lines_path, "r");
	CHECK(file);
	file = STDIO(freopen, blocks_path, "r", file);
	CHECK(file);
	CHECK(STDIO(fread, &byte, 1, 1, file) == 1 && byte == 'b');
	got(1);
	file = STDIO(freopen64, lines_path, "r", file);
	CHECK(file);
	CHECK(STDIO(fread, &byte, 1, 1, file) == 1 && byte == 'l');
	got(1);
	CHECK(STDIO(fclose, file) == 0);

	int fd = open(lines_path, O_WRONLY | O_APPEND);
	CHECK(fd >= 0);
	file = STDIO(fdopen, fd, "a");
	CHECK(file);
	CHECK(STDIO(fputs, "end\n", file) >= 0);
	wrote(4);
	CHECK(STDIO(fclose, file) == 0);

	CHECK(!STDIO(fopen, "/no/such/directory/file", "r"));
	tally("stdio", "_failed", 1);
}

int main(int argc, char **argv)
{
	char lines_path[4096], blocks_path[4096], text[4096];
	if (argc != 2) {
		truth_write(2, "usage: stdio_mix DIR\n");
		return 2;
	}
	snprintf(lines_path, sizeof(lines_path), "%s/lines.txt", argv[1]);
	snprintf(blocks_path, sizeof(blocks_path), "%s/blocks.dat", argv[1]);
	lines(lines_path);
	blocks(blocks_path);
	other_opens(lines_path, blocks_path);

	snprintf(text, sizeof(text), "{\"pid\":%d,\"calls\":", getpid());
	truth_calls(text, sizeof(text), "stdio");
	size_t at = strlen(text);
	snprintf(text + at, sizeof(text) - at, ",\"read\":%ld,\"written\":%ld,\"failed\":%ld}\n",
		 truth_bytes("stdio", "_read"), truth_bytes("stdio", "_written"), truth_bytes("stdio", "_failed"));
	return truth_write(1, text) ? 1 : 0;
}
