/*
 * `records MODE FILE COUNT SIZE`: writes COUNT records of SIZE bytes as a log would be written.
 *
 * MODE: `plain`; `sync`, `datasync`: and to disk, each; `once`: and to disk, in the end; `o-sync`, `o-dsync`: opened so;
 * `buffered`: in blocks of 1 MiB; `reopened`: opens and closes the file for each; `stdio`, `flushed`, `unbuffered`: with
 * fwrite; `mapped`, `mapped-once`, `mapped-plain`: through a mapping, and to disk, each, in the end, not at all.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case.h"

enum {
	BLOCK = 1 << 20
};

static const char *path;
static long count;
static size_t size;

static int opened(int flags)
{
	int file = open(path, O_WRONLY | O_CREAT | flags, 0644);

	must(file >= 0, path);
	return file;
}

static void put(int file, const char *data, size_t length)
{
	must(write(file, data, length) == (ssize_t)length, "write");
}

static void by_calls(const char *mode, const char *record)
{
	int file = opened(O_TRUNC | (is(mode, "o-sync") ? O_SYNC : is(mode, "o-dsync") ? O_DSYNC : 0));

	for (long i = 0; i < count; i++) {
		put(file, record, size);
		if (is(mode, "sync"))
			must(fsync(file) == 0, "fsync");
		if (is(mode, "datasync"))
			must(fdatasync(file) == 0, "fdatasync");
	}
	if (is(mode, "once"))
		must(fsync(file) == 0, "fsync");
	close(file);
}

static void by_blocks(const char *record)
{
	char *block = memory(BLOCK + size);
	size_t used = 0;
	int file = opened(O_TRUNC);

	for (long i = 0; i < count; i++) {
		memcpy(block + used, record, size);
		used += size;
		if (used >= BLOCK) {
			put(file, block, used);
			used = 0;
		}
	}
	put(file, block, used);
	close(file);
	free(block);
}

static void reopened(const char *record)
{
	close(opened(O_TRUNC));
	for (long i = 0; i < count; i++) {
		int file = opened(O_APPEND);

		put(file, record, size);
		close(file);
	}
}

static void by_stdio(const char *mode, const char *record)
{
	FILE *file = fopen(path, "w");

	must(file != NULL, path);
	if (is(mode, "unbuffered"))
		setvbuf(file, NULL, _IONBF, 0);
	for (long i = 0; i < count; i++) {
		must(fwrite(record, size, 1, file) == 1, "fwrite");
		if (is(mode, "flushed"))
			must(fflush(file) == 0, "fflush");
	}
	must(fclose(file) == 0, "fclose");
}

static void by_mapping(const char *mode, const char *record)
{
	size_t page = sysconf(_SC_PAGESIZE), length = count * size;
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	char *map;

	must(file >= 0 && ftruncate(file, length) == 0, path);
	map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	must(map != MAP_FAILED, "mmap");
	for (long i = 0; i < count; i++) {
		size_t at = i * size, from = at / page * page;

		memcpy(map + at, record, size);
		if (is(mode, "mapped"))
			must(msync(map + from, at + size - from, MS_SYNC) == 0, "msync");
	}
	if (!is(mode, "mapped-plain"))
		must(msync(map, length, MS_SYNC) == 0, "msync");
	munmap(map, length);
	close(file);
}

int main(int argc, char **argv)
{
	const char *mode;
	char *record;

	count = number(argc, argv, 3);
	size = number(argc, argv, 4);
	mode = argv[1];
	path = argv[2];
	record = memory(size);
	memset(record, 'r', size);
	record[size - 1] = '\n';
	if (is(mode, "buffered"))
		by_blocks(record);
	else if (is(mode, "reopened"))
		reopened(record);
	else if (is(mode, "stdio") || is(mode, "flushed") || is(mode, "unbuffered"))
		by_stdio(mode, record);
	else if (is(mode, "mapped") || is(mode, "mapped-once") || is(mode, "mapped-plain"))
		by_mapping(mode, record);
	else
		by_calls(mode, record);
	return 0;
}
