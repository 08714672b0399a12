/*
 * Ranges of lines around known I/O: `ranges DIR`. Comments name the first and the last line of each; a test looks them up.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

static char block[4096];
static jmp_buf out;

static int loops(int fd, int rounds)
{
	int moved = 0;

	pwrite(fd, block, 1, 0);
	for (int i = 0; i < rounds; i++) {		  /* around */
		moved += pwrite(fd, block, 100, i * 100); /* body */
		if (i == 2)
			continue;
		if (i == 5)
			break;
		moved += pread(fd, block, 10, i * 100); /* /body */
	}						/* /around */
	pwrite(fd, block, 2, 0);
	return moved;
}

static int returns(int fd, int n)
{
	pwrite(fd, block, 3, 0);
	switch (n) { /* chosen */
	case 0:
		return pwrite(fd, block, 20, 0);
	case 1:
		pwrite(fd, block, 21, 0);
		break;
	case 2:
	case 3:
		pwrite(fd, block, 22, 0);
		goto after;
	default:
		pwrite(fd, block, 23, 0);
	} /* /chosen */
	pwrite(fd, block, 4, 0);
after:
	pwrite(fd, block, 5, 0);
	return 0;
}

/* Not a part of the function that it jumps to. */
__attribute__((noinline)) static void jumps(int fd, int n)
{
	pwrite(fd, block, 6, 0);
	pwrite(fd, block, 30, 0); /* left */
	if (n)
		longjmp(out, n);
	pwrite(fd, block, 31, 0); /* /left */
}

__attribute__((noinline)) static void again(int fd, int depth)
{
	pwrite(fd, block, 40, 0); /* deep */
	if (depth)
		again(fd, depth - 1);
	pwrite(fd, block, 41, 0); /* /deep */
}

int main(int argc, char **argv)
{
	int fd = -1;
	volatile int n;

	if (argc != 2 || chdir(argv[1]) || (fd = open("ranges.dat", O_CREAT | O_RDWR, 0600)) < 0)
		return 1;
	loops(fd, 10);
	loops(fd, 4);
	for (int i = 0; i < 6; i++)
		returns(fd, i);
	for (n = 3; n >= 0; n--)
		if (!setjmp(out))
			jumps(fd, n);
	again(fd, 3);
	return close(fd);
}
