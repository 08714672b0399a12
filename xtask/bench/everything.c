/*
 * Maps every library of the catalog: `everything [wait]`. Prints when it begins and ends, in ns since 1970; between these it
 * waits for the end of its input, with `wait`.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void print_time(const char *what)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	printf("%s %lld\n", what, t.tv_sec * 1000000000LL + t.tv_nsec);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char byte;

	(void)argv;
	print_time("began");
	while (argc > 1 && read(0, &byte, 1) > 0)
		;
	print_time("ended");
	return 0;
}
