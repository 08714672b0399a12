/* Waits in a write to a file (`write FILE`), or in a read of a pipe without a writer (`read FIFO`). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 65536

static char buffer[SIZE];

__attribute__((noinline)) int save_state(FILE *f)
{
	size_t n = fwrite(buffer, 1, SIZE, f);

	return n == SIZE ? 0 : 1;
}

__attribute__((noinline)) int load_state(FILE *f)
{
	size_t n = fread(buffer, 1, 100, f);

	return n == 100 ? 0 : 1;
}

__attribute__((noinline)) int time_step(FILE *f, int writes)
{
	int failed = writes ? save_state(f) : load_state(f);

	return failed ? 2 : 0;
}

int main(int argc, char **argv)
{
	int writes = argc > 2 && !strcmp(argv[1], "write");
	/* For reading and writing, or the open itself would wait. */
	int fd = argc > 2 ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r+");
	char go;

	if (!f)
		return 1;
	printf("ready\n");
	fflush(stdout);
	if (read(0, &go, 1) != 1)
		return 3;
	return time_step(f, writes);
}
