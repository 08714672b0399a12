/*
 * Many small calls from several threads: `summed DIR THREADS CALLS FILES`. Each thread writes CALLS times to a C stream of its
 * own, and reads a file that all share; then FILES files are written, one after the other.
 *
 * Prints {"pid":n,"fwrite":[calls,bytes],"pread64":[calls,bytes],"failed":n,"write":[calls,bytes],"files":n}.
 */
#include <fcntl.h>
#include <pthread.h>

#include "truth.h"

static char dir[3000], data[1 << 16];
static long calls;
static int shared;

static void *work(void *number)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/stream.%ld", dir, (long)number);
	f = fopen(path, "w");
	CHECK(f);
	for (long i = 0; i < calls; i++)
		CHECK(fwrite(data, 1, 100, f) == 100);
	CHECK(fclose(f) == 0);
	for (long i = 0; i < calls; i++)
		CHECK(pread(shared, data, 512, i % 64 * 1024) == 512);
	for (long i = 0; i < 10; i++)
		CHECK(pread(shared, data, 512, -1) == -1);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 4 ? atol(argv[2]) : 0, files = argc > 4 ? atol(argv[4]) : 0;
	pthread_t all[64];
	char path[4096];

	CHECK(argc == 5 && threads > 0 && threads <= 64);
	calls = atol(argv[3]);
	snprintf(dir, sizeof(dir), "%s", argv[1]);
	snprintf(path, sizeof(path), "%s/shared", dir);
	shared = open(path, O_CREAT | O_RDWR, 0600);
	CHECK(shared >= 0 && write(shared, data, sizeof(data)) == sizeof(data));
	for (long i = 0; i < threads; i++)
		CHECK(pthread_create(&all[i], NULL, work, (void *)i) == 0);
	for (long i = 0; i < threads; i++)
		CHECK(pthread_join(all[i], NULL) == 0);
	for (long i = 0; i < files; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/file.%ld", dir, i);
		fd = open(path, O_CREAT | O_WRONLY, 0600);
		CHECK(fd >= 0 && write(fd, data, 10) == 10 && close(fd) == 0 && unlink(path) == 0);
	}
	printf("{\"pid\":%d,\"fwrite\":[%ld,%ld],\"pread64\":[%ld,%ld],\"failed\":%ld,\"files\":%ld}\n", getpid(),
	       threads * calls, threads * calls * 100, threads * (calls + 10), threads * calls * 512, threads * 10,
	       files);
	return 0;
}
