/*
 * `fgetc FILE SECONDS` reads a file byte by byte, again and again for so long. Prints what a call took by its own clock in the
 * first second, and after it: `first NANOSECONDS`, `after NANOSECONDS`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* What a call takes until `end`. Between two looks at the clock there are few enough of them also where each takes 5 us. */
static double bytes(FILE *file, long long end)
{
	long long calls = 0, start = now(), t;

	do {
		for (int i = 0; i < 10000; i++)
			if (fgetc(file) == EOF)
				rewind(file);
		calls += 10000;
		t = now();
	} while (t < end);
	return (double)(t - start) / calls;
}

int main(int argc, char **argv)
{
	int seconds = argc == 3 ? atoi(argv[2]) : 0;
	FILE *file = seconds > 1 ? fopen(argv[1], "r") : NULL;
	long long start = now();

	if (!file)
		return 2;
	printf("first %.2f\n", bytes(file, start + 1000000000LL));
	printf("after %.2f\n", bytes(file, start + seconds * 1000000000LL));
	return fclose(file) != 0;
}
