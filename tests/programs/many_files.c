/*
 * Many files, all open at once: `many_files DIR COUNT`. Children of it make and keep them open, each as many as one process may
 * have. It prints their number, and the numbers of the children; when it gets a line on stdin, they read one byte of each: of
 * the file DIR/N at the place N, where there is none.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "truth.h"

#define SPARE 100

/* How many files a process may have open, and no more than are wanted. */
static long room(long wanted)
{
	struct rlimit room = {wanted + SPARE, wanted + SPARE}, most;

	CHECK(getrlimit(RLIMIT_NOFILE, &most) == 0);
	/* More than the limit takes a capability. */
	if (setrlimit(RLIMIT_NOFILE, &room) != 0) {
		room = (struct rlimit){most.rlim_max, most.rlim_max};
		CHECK(setrlimit(RLIMIT_NOFILE, &room) == 0);
	}
	return (long)room.rlim_cur - SPARE;
}

static int keep(const char *dir, long from, long to, int ready, int go)
{
	int *files = malloc((to - from) * sizeof(*files));
	char path[4096], byte = 0;

	CHECK(files);
	for (long i = from; i < to; i++) {
		snprintf(path, sizeof(path), "%s/%ld", dir, i);
		files[i - from] = open(path, O_CREAT | O_RDWR, 0600);
		CHECK(files[i - from] >= 0);
	}
	CHECK(write(ready, &byte, 1) == 1);
	CHECK(read(go, &byte, 1) == 0);
	for (long i = from; i < to; i++)
		CHECK(pread(files[i - from], &byte, 1, i) == 0);
	return 0;
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	long count = atol(argv[2]), each = room(count), children = (count + each - 1) / each;
	int ready[2], go[2], status, used;
	char line[4096], byte;

	CHECK(pipe(ready) == 0 && pipe(go) == 0);
	used = snprintf(line, sizeof(line), "%ld", count);
	for (long i = 0; i < children; i++) {
		long from = i * each, to = from + each < count ? from + each : count;
		pid_t child = fork();

		CHECK(child >= 0);
		if (child == 0) {
			close(go[1]);
			return keep(argv[1], from, to, ready[1], go[0]);
		}
		used += snprintf(line + used, sizeof(line) - used, " %d", child);
		CHECK(used < (int)sizeof(line) - 2);
	}
	for (long i = 0; i < children; i++)
		CHECK(read(ready[0], &byte, 1) == 1);
	strcat(line, "\n");
	CHECK(truth_write(1, line) == 0);
	CHECK(read(0, &byte, 1) == 1);
	close(go[1]);
	for (long i = 0; i < children; i++)
		CHECK(wait(&status) > 0 && status == 0);
	return 0;
}
