/*
 * `writes MODE FILE SIZE COUNT`: overwrites COUNT pieces of SIZE bytes of a file that is there, one in each 64 KiB; `direct`:
 * writes COUNT pieces past the page cache, one after the other; `plain`: the same through it; `appended`: at the end; `crooked`: past the page
 * cache from memory that is not aligned, and through it when that fails; `spread`: one in each page, and to disk in the end;
 * `packed`: all of them together in one call, and the same.
 */
#include <fcntl.h>
#include <unistd.h>

#include "case.h"

enum {
	PAGE = 4096,
	APART = 64 << 10
};

int main(int argc, char **argv)
{
	long size = number(argc, argv, 3), count = number(argc, argv, 4);
	bool apart = is(argv[1], "over"), appended = is(argv[1], "appended"), crooked = is(argv[1], "crooked");
	bool spread = is(argv[1], "spread"), packed = is(argv[1], "packed"), direct = crooked || is(argv[1], "direct");
	long step = apart ? APART : spread ? PAGE : size;
	int flags = O_WRONLY | O_CREAT | (direct ? O_DIRECT : 0) | (appended ? O_APPEND : 0);
	int file = open(argv[2], flags, 0644);
	char *data;

	must(file >= 0, argv[2]);
	if (packed) {
		size *= count;
		count = 1;
	}
	must(posix_memalign((void **)&data, PAGE, size + 1) == 0, "posix_memalign");
	memset(data, 'w', size + 1);
	for (long i = 0; i < count; i++) {
		ssize_t done = pwrite(file, data + crooked, size, i * step);

		if (done < 0 && errno == EINVAL && crooked) {
			must(fcntl(file, F_SETFL, 0) == 0, "fcntl");
			done = pwrite(file, data + crooked, size, i * step);
		}
		must(done == size, "pwrite");
	}
	if (spread || packed)
		must(fsync(file) == 0, "fsync");
	close(file);
	return 0;
}
