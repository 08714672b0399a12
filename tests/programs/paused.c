/*
 * Does what it reads, a byte each: `paused FILE`. 'l' waits for a lock on FILE and gives it back, 'w' writes 4 KiB to its end.
 * Prints "ready", and "done" after each.
 */
#include <fcntl.h>
#include <sys/file.h>

#include "truth.h"

int main(int argc, char **argv)
{
	static char data[4096];
	char what;
	int fd;

	CHECK(argc == 2);
	fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
	CHECK(fd >= 0 && truth_write(1, "ready\n") == 0);
	while (read(0, &what, 1) == 1) {
		if (what == 'l')
			CHECK(flock(fd, LOCK_EX) == 0 && flock(fd, LOCK_UN) == 0);
		else
			CHECK(write(fd, data, sizeof(data)) == sizeof(data));
		CHECK(truth_write(1, "done\n") == 0);
	}
	return 0;
}
