/*
 * Maps a library for reading, makes the page of a function executable, and calls it: `late_exec LIBRARY OFFSET TIMES`, with a
 * pause before each. The function takes nothing, returns 3, and refers to nothing.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "truth.h"

int main(int argc, char **argv)
{
	struct stat st;
	char *map;
	long offset, page = sysconf(_SC_PAGESIZE);
	int fd;

	CHECK(argc == 4);
	fd = open(argv[1], O_RDONLY);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(map != MAP_FAILED);
	offset = atol(argv[2]);
	CHECK(mprotect(map + offset / page * page, (size_t)page, PROT_READ | PROT_EXEC) == 0);
	for (int i = atoi(argv[3]); i > 0; i--) {
		usleep(50 * 1000);
		CHECK(((int (*)(void))(map + offset))() == 3);
	}
	return 0;
}
