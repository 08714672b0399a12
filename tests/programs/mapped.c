/*
 * Touches every page of a file that it maps, and prints how many page faults the kernel counted for it meanwhile:
 * `mapped write FILE PAGES` makes the file and stores into it, `mapped read FILE` loads from it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PAGE = 4096
};

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int writes = argc == 4 && !strcmp(argv[1], "write");
	struct rusage before, after;
	volatile char *map;
	struct stat st;
	long sum = 0;
	int fd;

	check(writes || (argc == 3 && !strcmp(argv[1], "read")), "usage");
	fd = open(argv[2], writes ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY, 0644);
	check(fd >= 0, argv[2]);
	check(!writes || !ftruncate(fd, atol(argv[3]) * PAGE), "ftruncate");
	check(!fstat(fd, &st), "fstat");
	map = mmap(NULL, st.st_size, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
	check(map != MAP_FAILED, "mmap");
	check(!close(fd), "close");
	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	getrusage(RUSAGE_SELF, &after);
	getrusage(RUSAGE_SELF, &before);
	for (off_t at = 0; at < st.st_size; at += PAGE) {
		if (writes)
			map[at] = 1;
		else
			sum += map[at];
	}
	getrusage(RUSAGE_SELF, &after);
	printf("{\"pid\": %d, \"minor\": %ld, \"major\": %ld, \"pages\": %ld, \"sum\": %ld}\n", getpid(),
	       after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt, (long)st.st_size / PAGE, sum);
	return 0;
}
