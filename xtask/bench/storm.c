/*
 * Reads of one byte that is in the page cache, so many in a second by all threads together, or as many as there can be:
 * `storm FILE THREADS PER_SECOND|0 SECONDS`. Prints `calls NUMBER` and `ns NUMBER`.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	AT_ONCE = 100,
	MOST = 64
};

static int fd;
static long long until, each, made[MOST];

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *work(void *of)
{
	long long *calls = of, begun = now(), at;
	char byte;

	while ((at = now()) < until) {
		if (each && (at - begun) / each * AT_ONCE < *calls)
			continue;
		for (int i = 0; i < AT_ONCE; i++)
			if (pread(fd, &byte, 1, i) != 1)
				exit(1);
		*calls += AT_ONCE;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[MOST];
	char page[4096] = "";
	long long begun, all = 0;
	int threads = argc == 5 ? atoi(argv[2]) : 0;

	if (threads < 1 || threads > MOST)
		return 2;
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || write(fd, page, sizeof(page)) != sizeof(page))
		return 1;
	begun = now();
	until = begun + atoll(argv[4]) * 1000000000LL;
	if (atoll(argv[3]))
		each = 1000000000LL * AT_ONCE * threads / atoll(argv[3]);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, &made[i]))
			return 1;
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < threads; i++)
		all += made[i];
	printf("calls %lld\nns %lld\n", all, now() - begun);
	return 0;
}
