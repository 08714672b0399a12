/*
 * `reads MODE FILE SIZE`: reads a file in pieces of SIZE bytes.
 *
 * MODE: `make`: writes the file, SIZE MiB; `forward`: from begin to end; `shuffled`: each piece once, in no order;
 * `no-ahead`: forward, after the advice that access is random; `direct`: forward past the page cache; `passes`: forward,
 * four times; `first-cold`, `all-cold`: the same, after the first or each pass was dropped from the page cache; `mapped`, `advised`: one byte of every 16th piece of a mapping in no order, without and with advice; `mapped-forward`: of
 * every page of the mapping.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"

enum {
	MIB = 1 << 20,
	PAGE = 4096,
	PASSES = 4,
	APART = 16
};

static int file;
static long size, pieces;
static char *piece;

static void make(const char *path)
{
	char *data = memory(MIB);

	file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	must(file >= 0, path);
	for (long i = 0; i < size; i++) {
		memset(data, 'a' + i % 26, MIB);
		must(write(file, data, MIB) == MIB, "write");
	}
	must(fsync(file) == 0, "fsync");
	close(file);
	free(data);
}

/* The numbers below `length` in an order that is the same in each run. */
static long *shuffled(long length)
{
	long *order = memory(length * sizeof(*order));
	unsigned long state = 88172645463325252UL;

	for (long i = 0; i < length; i++)
		order[i] = i;
	for (long i = length - 1; i > 0; i--) {
		long other, kept = order[i];

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		other = state % (i + 1);
		order[i] = order[other];
		order[other] = kept;
	}
	return order;
}

static void dropped(void)
{
	int failed = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);

	errno = failed;
	must(failed == 0, "posix_fadvise");
}

static void forward(void)
{
	must(lseek(file, 0, SEEK_SET) == 0, "lseek");
	for (long i = 0; i < pieces; i++)
		must(read(file, piece, size) == size, "read");
}

static void in_no_order(void)
{
	long *order = shuffled(pieces);

	for (long i = 0; i < pieces; i++)
		must(pread(file, piece, size, order[i] * size) == size, "pread");
	free(order);
}

static long touched_in_turn(void)
{
	long sum = 0;
	char *map = mmap(NULL, pieces * size, PROT_READ, MAP_SHARED, file, 0);

	must(map != MAP_FAILED, "mmap");
	for (long at = 0; at < pieces * size; at += PAGE)
		sum += map[at];
	munmap(map, pieces * size);
	return sum;
}

static long touched(bool advised)
{
	long few = pieces / APART, sum = 0, *order = shuffled(few);
	char *map = mmap(NULL, pieces * size, PROT_READ, MAP_SHARED, file, 0);

	must(map != MAP_FAILED, "mmap");
	if (advised)
		must(madvise(map, pieces * size, MADV_RANDOM) == 0, "madvise");
	for (long i = 0; i < few; i++)
		sum += map[order[i] * APART * size];
	munmap(map, pieces * size);
	free(order);
	return sum;
}

int main(int argc, char **argv)
{
	const char *mode;
	struct stat stat;
	bool cold;

	size = number(argc, argv, 3);
	mode = argv[1];
	if (is(mode, "make")) {
		make(argv[2]);
		return 0;
	}
	file = open(argv[2], O_RDONLY | (is(mode, "direct") ? O_DIRECT : 0));
	must(file >= 0 && fstat(file, &stat) == 0, argv[2]);
	pieces = stat.st_size / size;
	cold = is(mode, "first-cold") || is(mode, "all-cold");
	must(posix_memalign((void **)&piece, PAGE, size) == 0, "posix_memalign");
	if (is(mode, "no-ahead"))
		must(posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM) == 0, "posix_fadvise");
	if (is(mode, "shuffled"))
		in_no_order();
	else if (is(mode, "mapped-forward"))
		printf("%ld\n", touched_in_turn());
	else if (is(mode, "mapped") || is(mode, "advised"))
		printf("%ld\n", touched(is(mode, "advised")));
	else
		for (int i = 0; i < (is(mode, "passes") || cold ? PASSES : 1); i++) {
			if (is(mode, "all-cold") || (is(mode, "first-cold") && i == 0))
				dropped();
			forward();
		}
	return 0;
}
