/*
 * Known calls, a quarter of a second after the other, until DIR/end exists: `marks DIR`.
 *
 * Mark n is the file DIR/mark-n, which gets 50 + n writes of 100 + n bytes. A line on standard output has when it began and
 * ended (CLOCK_MONOTONIC): `n began ended`. Between two marks it looks for what it is to do: DIR/wait (take the lock on
 * DIR/lock, then let it go), DIR/fail (write to a file where there is no room: DIR/full/file), DIR/end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "truth.h"

static char record[4096], path[4096];
static const char *dir;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int requested(const char *name)
{
	return !unlink(in_dir(name));
}

static void take_lock(void)
{
	int fd = open(in_dir("lock"), O_RDWR | O_CREAT, 0600);

	CHECK(fd >= 0 && !flock(fd, LOCK_EX));
	close(fd);
}

static void fail(void)
{
	int fd = open(in_dir("full/file"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	while (write(fd, record, sizeof(record)) > 0)
		;
	CHECK(errno == ENOSPC);
	close(fd);
	unlink(path);
}

static void mark(int n)
{
	char name[64];
	int64_t began = now();

	snprintf(name, sizeof(name), "mark-%d", n);
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0);
	for (int i = 0; i < 50 + n; i++)
		CHECK(write(fd, record, 100 + n) == 100 + n);
	close(fd);
	printf("%d %lld %lld\n", n, (long long)began, (long long)now());
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const struct timespec pause = {0, 250 * 1000 * 1000};

	if (argc != 2)
		return 2;
	dir = argv[1];
	memset(record, 'm', sizeof(record));
	for (int n = 0; !requested("end"); n++) {
		mark(n);
		nanosleep(&pause, NULL);
		if (requested("wait"))
			take_lock();
		if (requested("fail"))
			fail();
	}
	return 0;
}
