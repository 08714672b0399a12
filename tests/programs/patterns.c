/*
 * Reads and writes files in a directory in known patterns, by system calls and by C standard I/O: `patterns DIR`.
 *
 * Prints {"FILE KIND":{"calls":n,"bytes":n,"consecutive":n,"sequential":n,"random":n,"switches":n},..}, as it counts
 * them itself.
 */
#include <fcntl.h>

#include "truth.h"

/* What was done to a file; [0]: read, [1]: write. */
struct track {
	const char *name;
	long calls[2], bytes[2], consecutive[2], sequential[2], random[2], switches[2], end[2];
	int last; /* kind of the last access, 2 at first */
};

static struct track tracks[16];
static struct track *now;
static char dir[4000];

static const char *begin(const char *name)
{
	static char path[4096];
	now = now ? now + 1 : tracks;
	*now = (struct track){.name = name, .last = 2};
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void did(int kind, long offset, long n)
{
	if (now->calls[kind]) {
		now->consecutive[kind] += offset == now->end[kind];
		now->sequential[kind] += offset >= now->end[kind];
		now->random[kind] += offset < now->end[kind];
	}
	now->switches[kind] += now->last == !kind;
	now->last = kind;
	now->calls[kind]++;
	now->bytes[kind] += n;
	now->end[kind] = offset + n;
}

static char data[1 << 20];

static void read_at(int fd, long offset, long n)
{
	CHECK(pread(fd, data, (size_t)n, offset) == n);
	did(0, offset, n);
}

static void write_at(int fd, long offset, long n)
{
	CHECK(pwrite(fd, data, (size_t)n, offset) == n);
	did(1, offset, n);
}

static int made(const char *name)
{
	int fd = open(begin(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, sizeof(data)));
	return fd;
}

static FILE *stream(const char *name)
{
	int fd = made(name);
	FILE *file = fdopen(fd, "r+");
	CHECK(file);
	return file;
}

static long dice(long n)
{
	static unsigned long state = 1;
	state = state * 6364136223846793005ul + 1442695040888963407ul;
	return (long)((state >> 33) % (unsigned long)n);
}

static void system_calls(void)
{
	int fd = made("sys_consecutive");
	for (long i = 0; i < 100; i++) {
		CHECK(write(fd, data, 4096) == 4096);
		did(1, i * 4096, 4096);
	}
	CHECK(!close(fd));

	/* A column of a matrix, with a gap of 2000 bytes; each tenth row begins 500 later. */
	fd = made("sys_strided");
	for (long i = 0, at = 0; i < 100; i++, at += 3000 + (i % 10 == 0) * 500)
		write_at(fd, at, 1000);
	CHECK(!close(fd));

	/* Forward, never by the same distance. */
	fd = made("sys_sequential");
	for (long i = 0; i < 50; i++)
		read_at(fd, 200 * i + 7 * i * i, 100);
	CHECK(!close(fd));

	fd = made("sys_random");
	for (int i = 0; i < 200; i++)
		read_at(fd, 512 * dice(2000), 512);
	CHECK(!close(fd));

	/* Each block is written and read back. */
	fd = made("sys_alternating");
	for (long i = 0; i < 30; i++) {
		write_at(fd, i * 64, 64);
		read_at(fd, i * 64, 64);
	}
	CHECK(!close(fd));

	fd = made("sys_single");
	read_at(fd, 77, 10);
	CHECK(!close(fd));
}

static void standard_io(void)
{
	FILE *file = stream("stdio_consecutive");
	for (long i = 0; i < 100; i++) {
		CHECK(fwrite(data, 8, 10, file) == 10);
		did(1, i * 80, 80);
	}
	CHECK(!fclose(file));

	file = stream("stdio_strided");
	for (long i = 0; i < 60; i++) {
		CHECK(fread(data, 1, 10, file) == 10 && !fseek(file, 90, SEEK_CUR));
		did(0, i * 100, 10);
	}
	CHECK(!fclose(file));

	file = stream("stdio_random");
	for (int i = 0; i < 100; i++) {
		long at = 16 * dice(20000);
		CHECK(!fseek(file, at, SEEK_SET) && fread(data, 1, 16, file) == 16);
		did(0, at, 16);
	}
	CHECK(!fclose(file));

	/* The same four blocks again and again. */
	file = stream("stdio_mixed");
	for (long i = 0; i < 40; i++) {
		if (i % 4 == 0)
			rewind(file);
		CHECK(fread(data, 1, 100, file) == 100);
		did(0, i % 4 * 100, 100);
	}
	CHECK(!fclose(file));
}

int main(int argc, char **argv)
{
	static char text[16384];
	if (argc != 2) {
		truth_write(2, "usage: patterns DIR\n");
		return 2;
	}
	snprintf(dir, sizeof(dir), "%s", argv[1]);
	system_calls();
	standard_io();
	const char *comma = "{";
	size_t at = 0;
	for (struct track *t = tracks; t <= now; t++)
		for (int k = 0; k < 2; k++) {
			if (!t->calls[k])
				continue;
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "%s\"%s %s\":{\"calls\":%ld,\"bytes\":%ld,\"consecutive\":%ld,"
					       "\"sequential\":%ld,\"random\":%ld,\"switches\":%ld}",
					       comma, t->name, k ? "write" : "read", t->calls[k], t->bytes[k],
					       t->consecutive[k], t->sequential[k], t->random[k], t->switches[k]);
			comma = ",";
		}
	snprintf(text + at, sizeof(text) - at, "}\n");
	return truth_write(1, text) ? 1 : 0;
}
