/*
 * Many threads that call at the same time: `crowd FILE THREADS CALLS`. They all begin; it prints that and waits for a line.
 * Then thread N writes CALLS times 10 bytes of FILE at the place 10 N.
 */
#include <fcntl.h>
#include <pthread.h>

#include "truth.h"

static pthread_barrier_t there, begin;
static int file;
static long calls;

static void *work(void *number)
{
	pthread_barrier_wait(&there);
	pthread_barrier_wait(&begin);
	for (long i = 0; i < calls; i++)
		CHECK(pwrite(file, "ten bytes\n", 10, (long)number * 10) == 10);
	return NULL;
}

int main(int argc, char **argv)
{
	CHECK(argc == 4);
	long threads = atol(argv[2]);
	pthread_t *all = malloc(threads * sizeof(*all));
	pthread_attr_t small;
	char byte;

	calls = atol(argv[3]);
	file = open(argv[1], O_CREAT | O_WRONLY, 0600);
	CHECK(file >= 0 && all);
	CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 64 << 10) == 0);
	CHECK(pthread_barrier_init(&there, NULL, threads + 1) == 0 &&
	      pthread_barrier_init(&begin, NULL, threads + 1) == 0);
	for (long i = 0; i < threads; i++)
		CHECK(pthread_create(&all[i], &small, work, (void *)i) == 0);
	pthread_barrier_wait(&there);
	CHECK(truth_write(1, "ready\n") == 0);
	CHECK(read(0, &byte, 1) == 1);
	pthread_barrier_wait(&begin);
	for (long i = 0; i < threads; i++)
		CHECK(pthread_join(all[i], NULL) == 0);
	return 0;
}
