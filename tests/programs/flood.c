/*
 * Makes many calls each time that it reads a byte: `flood WHAT FILE COUNT`.
 *
 *   fwrite  COUNT bytes to a stream without a buffer: a system call in each
 *   pread   COUNT pages of a file, which are not in the page cache
 *   fault   stores into COUNT pages of a file that is mapped
 *   direct  COUNT direct reads of a device, a page each
 *   hdf5    COUNT times a dataspace, and a write of one number (only when it is compiled with HDF5)
 *
 * Prints "ready", and after each flood how many calls it has made in all; of faults what the kernel counted of them.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#if __has_include(<hdf5.h>)
#include <hdf5.h>
#define FLOOD_HDF5
#endif

#include "truth.h"

enum {
	PAGE = 4096
};

static long count, made;
static const char *file;
static int fd = -1;
static FILE *stream;
static char *map, *page;

static void begin_fwrite(void)
{
	stream = fopen(file, "w");
	CHECK(stream && setvbuf(stream, NULL, _IONBF, 0) == 0);
}

static void flood_fwrite(void)
{
	for (long i = 0; i < count; i++)
		CHECK(fwrite("x", 1, 1, stream) == 1);
	made += count;
}

static void begin_pread(void)
{
	fd = open(file, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	for (long i = 0; i < count; i++)
		CHECK(pwrite(fd, page, PAGE, i * PAGE) == PAGE);
	CHECK(fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) == 0);
}

static void flood_pread(void)
{
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	for (long i = 0; i < count; i++)
		CHECK(pread(fd, page, PAGE, i * PAGE) == PAGE);
	made += count;
}

static void begin_fault(void)
{
	fd = open(file, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && ftruncate(fd, count * PAGE) == 0);
	map = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
}

static long faults(void)
{
	struct rusage usage;

	CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
	return usage.ru_minflt + usage.ru_majflt;
}

static void flood_fault(void)
{
	long before;

	CHECK(madvise(map, count * PAGE, MADV_DONTNEED) == 0);
	faults();
	before = faults();
	for (long i = 0; i < count; i++)
		*(volatile char *)&map[i * PAGE] = 1;
	made += faults() - before;
}

static void begin_direct(void)
{
	fd = open(file, O_RDONLY | O_DIRECT);
	CHECK(fd >= 0);
}

static void flood_direct(void)
{
	for (long i = 0; i < count; i++)
		CHECK(pread(fd, page, PAGE, i * PAGE) == PAGE);
	made += count;
}

#ifdef FLOOD_HDF5
static hid_t dataset;

static void begin_hdf5(void)
{
	const hsize_t one = 1;
	hid_t space = H5Screate_simple(1, &one, NULL);
	hid_t h5 = H5Fcreate(file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

	CHECK(space >= 0 && h5 >= 0);
	dataset = H5Dcreate2(h5, "numbers", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(dataset >= 0);
}

static void flood_hdf5(void)
{
	for (long i = 0; i < count; i++) {
		const hsize_t dims[2] = {1, 1};
		const int number = (int)i;
		hid_t space = H5Screate_simple(2, dims, NULL);

		CHECK(space >= 0);
		CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, space, H5S_ALL, H5P_DEFAULT, &number) >= 0);
		CHECK(H5Sclose(space) >= 0);
	}
	made += count;
}
#endif

static const struct {
	const char *name;
	void (*begin)(void), (*flood)(void);
} FLOODS[] = {
	{"fwrite", begin_fwrite, flood_fwrite}, {"pread", begin_pread, flood_pread},
	{"fault", begin_fault, flood_fault},	{"direct", begin_direct, flood_direct},
#ifdef FLOOD_HDF5
	{"hdf5", begin_hdf5, flood_hdf5},
#endif
};

int main(int argc, char **argv)
{
	char line[32], go;
	size_t f = 0;

	CHECK(argc == 4);
	while (f < sizeof(FLOODS) / sizeof(*FLOODS) && strcmp(FLOODS[f].name, argv[1]) != 0)
		f++;
	CHECK(f < sizeof(FLOODS) / sizeof(*FLOODS));
	file = argv[2];
	count = atol(argv[3]);
	CHECK(posix_memalign((void **)&page, PAGE, PAGE) == 0);
	memset(page, 1, PAGE);
	FLOODS[f].begin();
	CHECK(truth_write(1, "ready\n") == 0);
	while (read(0, &go, 1) == 1) {
		FLOODS[f].flood();
		snprintf(line, sizeof(line), "%ld\n", made);
		CHECK(truth_write(1, line) == 0);
	}
	return 0;
}
