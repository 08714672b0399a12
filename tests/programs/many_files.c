/*
 * Many files, all open at once: `many_files DIR COUNT`. It makes them, as many of them as one process may have, and says how many
 * that are; it waits for a line on stdin, and reads one byte of each: of the file DIR/N at the place N, where there is none.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "truth.h"

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	long count = atol(argv[2]);
	struct rlimit room = {count + 100, count + 100}, most;
	int *files = malloc(count * sizeof(*files));
	char path[4096], byte;

	CHECK(files && getrlimit(RLIMIT_NOFILE, &most) == 0);
	/* More than the limit takes a capability. */
	if (setrlimit(RLIMIT_NOFILE, &room) != 0) {
		room = (struct rlimit){most.rlim_max, most.rlim_max};
		CHECK(setrlimit(RLIMIT_NOFILE, &room) == 0);
		count = (long)room.rlim_cur - 100;
	}
	for (long i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%ld", argv[1], i);
		files[i] = open(path, O_CREAT | O_RDWR, 0600);
		CHECK(files[i] >= 0);
	}
	snprintf(path, sizeof(path), "%ld\n", count);
	CHECK(truth_write(1, path) == 0);
	CHECK(read(0, &byte, 1) == 1);
	for (long i = 0; i < count; i++)
		CHECK(pread(files[i], &byte, 1, i) == 0);
	return 0;
}
