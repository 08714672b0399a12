/*
 * Calls that wait because another process lets them: DIR ROUNDS MS.
 *
 * ROUNDS times a lock on a file is taken that a child holds for MS ms, and a FIFO is opened by fopen() that a child opens MS ms
 * later. Between them a hundred locks that are free. It ends right after the last slow call. Prints the lines of the slow
 * calls and how long each took.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char lock[4096], fifo[4096];
static int lock_line, open_line;

__attribute__((noreturn)) static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

__attribute__((noinline)) static void wait_for_lock(int fd)
{
	lock_line = __LINE__ + 1;
	if (flock(fd, LOCK_EX))
		fail("flock");
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static FILE *open_fifo(void)
{
	open_line = __LINE__ + 1;
	FILE *f = fopen(fifo, "r");
	if (!f)
		fail(fifo);
	return f;
}

/* A child that holds the lock, or opens the FIFO, after MS ms; it writes a byte when it has begun. */
static void child(int holds, long ms)
{
	int ready[2];
	char byte = 0;

	if (pipe(ready))
		fail("pipe");
	switch (fork()) {
	case -1:
		fail("fork");
	case 0: {
		int fd = open(lock, O_RDWR);
		if (holds && flock(fd, LOCK_EX))
			fail("flock");
		if (write(ready[1], &byte, 1) != 1)
			fail("write");
		pause_ms(ms);
		if (!holds)
			open(fifo, O_WRONLY);
		_exit(0);
	}
	}
	if (read(ready[0], &byte, 1) != 1)
		fail("read");
	close(ready[0]);
	close(ready[1]);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	int rounds = atoi(argv[2]);
	long ms = atol(argv[3]);
	snprintf(lock, sizeof(lock), "%s/lock", argv[1]);
	snprintf(fifo, sizeof(fifo), "%s/fifo", argv[1]);
	int fd = open(lock, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || mkfifo(fifo, 0600))
		fail(lock);
	for (int n = 0; n < rounds; n++) {
		child(0, ms);
		long begun = now();
		FILE *f = open_fifo();
		printf("open %d %ld\n", open_line, now() - begun);
		fclose(f);
		for (int i = 0; i < 100; i++)
			if (flock(fd, LOCK_EX) || flock(fd, LOCK_UN))
				fail("flock");
		child(1, ms);
		begun = now();
		wait_for_lock(fd);
		printf("lock %d %ld\n", lock_line, now() - begun);
		fflush(stdout);
		if (n + 1 < rounds && flock(fd, LOCK_UN))
			fail("flock");
	}
	_exit(0);
}
