/*
 * What the kernel counts of processes: `counted`. Three threads begin and wait for a line on stdin; then these, two new ones and
 * those of two children touch new pages, compute, and sleep; in the end it waits for a line again.
 *
 * Prints {"cpu":seconds,"minor":n,"major":n,"switches":n} of itself and its children, before the work and after it.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

#define PAGES  2000
#define SLEEPS 200

/* All early threads are there, and what their start took is reported; then they begin. */
static pthread_barrier_t there, begin;

static double seconds(struct timeval t)
{
	return t.tv_sec + t.tv_usec / 1e6;
}

static void report(void)
{
	struct rusage u[2];

	CHECK(getrusage(RUSAGE_SELF, &u[0]) == 0 && getrusage(RUSAGE_CHILDREN, &u[1]) == 0);
	printf("{\"cpu\":%.6f,\"minor\":%ld,\"major\":%ld,\"switches\":%ld}\n",
	       seconds(u[0].ru_utime) + seconds(u[0].ru_stime) + seconds(u[1].ru_utime) + seconds(u[1].ru_stime),
	       u[0].ru_minflt + u[1].ru_minflt, u[0].ru_majflt + u[1].ru_majflt,
	       u[0].ru_nvcsw + u[0].ru_nivcsw + u[1].ru_nvcsw + u[1].ru_nivcsw);
	fflush(stdout);
}

static void wait_for_line(void)
{
	char line[16];

	CHECK(fgets(line, sizeof(line), stdin));
}

static void *work(void *early)
{
	long size = PAGES * sysconf(_SC_PAGESIZE);
	volatile unsigned long sum = 0;
	volatile char *pages;

	if (early) {
		pthread_barrier_wait(&there);
		pthread_barrier_wait(&begin);
	}
	pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	/* A huge page is one fault. */
	madvise((void *)pages, size, MADV_NOHUGEPAGE);
	for (long at = 0; at < size; at += sysconf(_SC_PAGESIZE))
		pages[at] = 1;
	for (long i = 0; i < 30 * 1000 * 1000; i++)
		sum += i;
	for (int i = 0; i < SLEEPS; i++)
		usleep(10);
	/* To end is quick then: a process that ends has released its counters. */
	CHECK(munmap((void *)pages, size) == 0);
	return NULL;
}

int main(void)
{
	pthread_t threads[5];
	pid_t children[2];

	pthread_barrier_init(&there, NULL, 4);
	pthread_barrier_init(&begin, NULL, 4);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, work, &begin) == 0);
	pthread_barrier_wait(&there);
	report();
	wait_for_line();
	pthread_barrier_wait(&begin);
	for (int i = 3; i < 5; i++)
		CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			work(NULL);
			_exit(0);
		}
	}
	for (int i = 0; i < 5; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(waitpid(children[i], NULL, 0) == children[i]);
	report();
	wait_for_line();
	return 0;
}
