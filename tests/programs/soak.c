/*
 * A mix of I/O for a given time: `soak DIR SECONDS BUSY`. In rounds, with as long a sleep after each that it is busy for
 * BUSY percent of the time: C streams, reads and writes at places of a file, files of ever new names, children that write and
 * end, a mapped file, and fsync.
 *
 * Prints {"rounds":n,"names":n,"children":n,"calls":{"fwrite":n,"pread64":n,"pwrite64":n}}.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "truth.h"

#define BLOCK	4096L
#define BLOCKS	2048L
#define PLACES	100
#define RECORDS 100
#define NAMES	20
/* So many of the last files stay, as in a directory that is cleaned up. */
#define STAY	 1000L
#define CHILDREN 3

static char dir[3000], block[BLOCK];
static int data;
static long name, place;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static char *path(const char *what, long number)
{
	static char text[4096];

	snprintf(text, sizeof(text), "%s/%s.%ld", dir, what, number);
	return text;
}

static void streams(void)
{
	char record[100];
	FILE *f = fopen(path("stream", 0), "w");

	CHECK(f);
	for (int i = 0; i < RECORDS; i++)
		CHECK(COUNT("soak", fwrite, block, 1, sizeof(record), f) == sizeof(record));
	CHECK(fclose(f) == 0);
	f = fopen(path("stream", 0), "r");
	CHECK(f);
	while (fread(record, 1, sizeof(record), f) == sizeof(record)) {
	}
	CHECK(fclose(f) == 0);
}

static void places(void)
{
	for (int i = 0; i < PLACES; i++) {
		/* Far apart, and the same in each run. */
		place = (place * 1103515245 + 12345) % (1L << 31);
		CHECK(COUNT("soak", pwrite64, data, block, BLOCK, place % BLOCKS * BLOCK) == BLOCK);
		CHECK(COUNT("soak", pread64, data, block, BLOCK, (place >> 8) % BLOCKS * BLOCK) == BLOCK);
	}
	CHECK(fsync(data) == 0);
}

static void names(void)
{
	for (int i = 0; i < NAMES; i++) {
		int fd = open(path("name", ++name), O_CREAT | O_EXCL | O_WRONLY, 0600);

		CHECK(fd >= 0 && write(fd, block, 10) == 10 && close(fd) == 0);
		if (name > STAY)
			CHECK(unlink(path("name", name - STAY)) == 0);
	}
}

static void children(void)
{
	pid_t child[CHILDREN];

	for (int i = 0; i < CHILDREN; i++) {
		child[i] = fork();
		CHECK(child[i] >= 0);
		if (child[i] == 0) {
			int fd = open(path("child", i), O_CREAT | O_WRONLY, 0600);

			CHECK(fd >= 0 && write(fd, block, 10) == 10);
			_exit(0);
		}
	}
	for (int i = 0; i < CHILDREN; i++)
		CHECK(waitpid(child[i], NULL, 0) == child[i]);
}

static void mapped(void)
{
	char *map = mmap(NULL, 64 * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, data, 0);

	CHECK(map != MAP_FAILED);
	for (long at = 0; at < 64 * BLOCK; at += BLOCK)
		map[at]++;
	CHECK(msync(map, 64 * BLOCK, MS_SYNC) == 0 && munmap(map, 64 * BLOCK) == 0);
}

int main(int argc, char **argv)
{
	double end, busy;
	long rounds = 0;
	char text[1024];

	CHECK(argc == 4 && (busy = atof(argv[3]) / 100) > 0 && busy <= 1);
	end = now() + atof(argv[2]);
	snprintf(dir, sizeof(dir), "%s", argv[1]);
	data = open(path("data", 0), O_CREAT | O_RDWR, 0600);
	CHECK(data >= 0);
	for (long at = 0; at < BLOCKS; at++)
		CHECK(pwrite(data, block, BLOCK, at * BLOCK) == BLOCK);
	for (; now() < end; rounds++) {
		double start = now();

		streams();
		places();
		names();
		children();
		mapped();
		usleep((useconds_t)((now() - start) * (1 - busy) / busy * 1e6));
	}
	snprintf(text, sizeof(text), "{\"rounds\":%ld,\"names\":%ld,\"children\":%ld,\"calls\":", rounds, name,
		 rounds * CHILDREN);
	truth_calls(text, sizeof(text), "soak");
	CHECK(truth_write(1, strcat(text, "}\n")) == 0);
	return 0;
}
