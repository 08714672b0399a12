/*
 * `locks MODE FILE`: four processes each change parts of a file of their own, under a lock of `whole`: the file, or `ranges`: the
 * part, for as long as a change takes.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

enum {
	PROCESSES = 4,
	CHANGES = 50,
	PART = 1 << 20
};

static void lock(int file, short type, long start, long length)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};

	must(fcntl(file, F_SETLKW, &lock) == 0, "fcntl");
}

static void change(int process, const char *path, bool whole)
{
	const struct timespec worked = {.tv_nsec = 4000000};
	long start = whole ? 0 : (long)process * PART, length = whole ? 0 : PART;
	char data[4096] = {};
	int file = open(path, O_RDWR);

	must(file >= 0, path);
	for (int i = 0; i < CHANGES; i++) {
		lock(file, F_WRLCK, start, length);
		must(pread(file, data, sizeof(data), (long)process * PART) == sizeof(data), "pread");
		nanosleep(&worked, NULL);
		data[i]++;
		must(pwrite(file, data, sizeof(data), (long)process * PART) == sizeof(data), "pwrite");
		lock(file, F_UNLCK, start, length);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int file, status;

	must(argc == 3, "locks MODE FILE");
	file = open(argv[2], O_RDWR | O_CREAT, 0644);
	must(file >= 0 && ftruncate(file, (long)PROCESSES * PART) == 0, argv[2]);
	close(file);
	for (int process = 0; process < PROCESSES; process++) {
		pid_t child = fork();

		must(child >= 0, "fork");
		if (child == 0)
			change(process, argv[2], is(argv[1], "whole"));
	}
	for (int process = 0; process < PROCESSES; process++)
		must(wait(&status) > 0 && status == 0, "a process");
	return 0;
}
