/*
 * `writes MODE FILE SIZE COUNT`: overwrites COUNT pieces of SIZE bytes of a file that is there, one in each 64 KiB; `direct`:
 * writes COUNT pieces past the page cache, one after the other; `plain`: the same through it; `appended`: at the end.
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
	bool apart = is(argv[1], "over"), direct = is(argv[1], "direct"), appended = is(argv[1], "appended");
	int flags = O_WRONLY | O_CREAT | (direct ? O_DIRECT : 0) | (appended ? O_APPEND : 0);
	int file = open(argv[2], flags, 0644);
	char *data;

	must(file >= 0, argv[2]);
	must(posix_memalign((void **)&data, PAGE, size) == 0, "posix_memalign");
	memset(data, 'w', size);
	for (long i = 0; i < count; i++)
		must(pwrite(file, data, size, i * (apart ? APART : size)) == size, "pwrite");
	close(file);
	return 0;
}
