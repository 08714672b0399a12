/* `fgetc FILE TIMES` reads a file byte by byte so many times. Prints what a call took by its own clock: `fgetc NANOSECONDS`. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	int times = argc == 3 ? atoi(argv[2]) : 0;
	FILE *file = times > 0 ? fopen(argv[1], "r") : NULL;
	long long calls = 0, start = now();

	if (!file)
		return 2;
	for (int i = 0; i < times; i++) {
		rewind(file);
		do
			calls++;
		while (fgetc(file) != EOF);
	}
	printf("fgetc %.1f\n", (double)(now() - start) / calls);
	return fclose(file) != 0;
}
