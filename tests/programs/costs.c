/*
 * What one call costs: `costs DIR NAME...` makes each of the named calls many times and prints, a line each,
 * `NAME NANOSECONDS`: the time of one of them, by this program's own clock.
 *
 * cargo xtask bench runs it traced and untraced and compares.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	BLOCK = 4096,
	PAGES = 4096
};

static const char *dir;
static int cached;
static int direct;
static FILE *stream;
static char *map;
static char *page;

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

/* A byte that is in the page cache. */
static void call_pread(int i)
{
	char c;
	check(pread(cached, &c, 1, i % BLOCK) == 1, "pread");
}

/* A call that has nothing to do with files. */
static void call_getppid(int i)
{
	(void)i;
	syscall(SYS_getppid);
}

static void call_open(int i)
{
	(void)i;
	int fd = openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);
	check(fd >= 0, "openat");
	close(fd);
}

/* Eight bytes into the buffer of a stream. */
static void call_fwrite(int i)
{
	check(fwrite(&i, sizeof(i), 1, stream) == 1, "fwrite");
}

/* The first touch of a mapped page that is in the page cache. */
static void call_fault(int i)
{
	if (i % PAGES == 0)
		check(!madvise(map, (size_t)PAGES * BLOCK, MADV_DONTNEED), "madvise");
	*(volatile char *)&map[(size_t)(i % PAGES) * BLOCK];
}

/* A request to the device. */
static void call_direct(int i)
{
	check(pread(direct, page, BLOCK, (off_t)(i % PAGES) * BLOCK) == BLOCK, "pread O_DIRECT");
}

static const struct {
	const char *name;
	void (*call)(int);
	int times;
} CALLS[] = {
	{"pread", call_pread, 200000},	 {"getppid", call_getppid, 200000}, {"open", call_open, 50000},
	{"fwrite", call_fwrite, 200000}, {"fault", call_fault, 40960},	    {"direct", call_direct, 4000},
};

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void prepare(void)
{
	char path[4096];
	check(!chdir(dir), dir);
	snprintf(path, sizeof(path), "costs.data");
	check(!posix_memalign((void **)&page, BLOCK, BLOCK), "posix_memalign");
	memset(page, 1, BLOCK);
	cached = open(path, O_RDWR | O_CREAT, 0600);
	check(cached >= 0, path);
	struct stat st;
	check(!fstat(cached, &st), "fstat");
	for (off_t at = st.st_size; at < (off_t)PAGES * BLOCK; at += BLOCK)
		check(pwrite(cached, page, BLOCK, at) == BLOCK, "pwrite");
	check(!fsync(cached), "fsync");
	direct = open(path, O_RDONLY | O_DIRECT);
	check(direct >= 0, "open O_DIRECT");
	stream = fopen("/dev/null", "w");
	check(stream != NULL, "fopen");
	map = mmap(NULL, (size_t)PAGES * BLOCK, PROT_READ, MAP_SHARED, cached, 0);
	check(map != MAP_FAILED, "mmap");
	check(!madvise(map, (size_t)PAGES * BLOCK, MADV_RANDOM), "madvise");
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	dir = argv[1];
	prepare();
	for (int a = 2; a < argc; a++) {
		size_t c = 0;
		while (c < sizeof(CALLS) / sizeof(*CALLS) && strcmp(CALLS[c].name, argv[a]) != 0)
			c++;
		if (c == sizeof(CALLS) / sizeof(*CALLS))
			return 2;
		long long start = now();
		for (int i = 0; i < CALLS[c].times; i++)
			CALLS[c].call(i);
		printf("%s %lld\n", argv[a], (now() - start) / CALLS[c].times);
	}
	return 0;
}
