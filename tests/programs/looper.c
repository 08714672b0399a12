/*
 * Writes until its time is over, it is asked to stop or it is killed, for attaching to: `looper DIR TRUTH SECONDS`.
 *
 * Every 10 ms: record n of 4 KiB to DIR/looper.txt with fwrite, then to DIR/looper.dat with pwrite at offset n * 4096.
 * TRUTH is a file of native 64-bit integers (struct truth), always current. Both files are open before `ready` is set. To stop
 * it, write another value than 0 where `stop` is.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	RECORD = 4096
};

struct truth {
	int64_t pid;
	int64_t ready;
	int64_t fwrites; /* completed calls */
	int64_t pwrites;
	int64_t fwrite_bytes;
	int64_t pwrite_bytes;
	int64_t stop;
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	char path[4096], record[RECORD];
	const struct timespec pause = {0, 10 * 1000 * 1000};

	if (argc != 4)
		return 2;
	double end = now() + atof(argv[3]);
	memset(record, 'r', sizeof(record));

	int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || ftruncate(fd, sizeof(struct truth)))
		return 1;
	volatile struct truth *truth = mmap(NULL, sizeof(struct truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED)
		return 1;
	close(fd);

	snprintf(path, sizeof(path), "%s/looper.txt", argv[1]);
	FILE *text = fopen(path, "w");
	snprintf(path, sizeof(path), "%s/looper.dat", argv[1]);
	int data = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (!text || data < 0)
		return 1;
	truth->pid = getpid();
	truth->ready = 1;

	for (int64_t n = 0; now() < end && !truth->stop; n++) {
		if (fwrite(record, 1, RECORD, text) != RECORD)
			return 1;
		truth->fwrite_bytes += RECORD;
		truth->fwrites++;
		if (pwrite(data, record, RECORD, n * RECORD) != RECORD)
			return 1;
		truth->pwrite_bytes += RECORD;
		truth->pwrites++;
		nanosleep(&pause, NULL);
	}
	return fclose(text) || close(data);
}
