/*
 * What calls take by the program's own clock: `net FILE BYTES CALLS` writes and reads blocks through each of the interfaces and
 * prints, a line each, `FUNCTION NANOSECONDS`: the median time of one call.
 */
#include <fcntl.h>
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	BLOCKS = 16
};

static const char *path;
static size_t bytes;
static int calls;
static char *block;
static long *times;

static void check(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "net: %s failed\n", what);
		exit(1);
	}
}

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

static void print(const char *function)
{
	qsort(times, calls, sizeof(*times), by_value);
	printf("%s %ld\n", function, times[calls / 2]);
}

#define TIMED(function, before, call, ok)                                                                              \
	do {                                                                                                           \
		for (int i = 0; i < calls; i++) {                                                                      \
			long begun;                                                                                    \
                                                                                                                       \
			before;                                                                                        \
			begun = now();                                                                                 \
			check((call)ok, function);                                                                     \
			times[i] = now() - begun;                                                                      \
		}                                                                                                      \
		print(function);                                                                                       \
	} while (0)

static void system_calls(void)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	check(fd >= 0, "open");
	TIMED("pwrite64", , pwrite(fd, block, bytes, i % BLOCKS * bytes), == (ssize_t)bytes);
	TIMED("pread64", , pread(fd, block, bytes, i % BLOCKS * bytes), == (ssize_t)bytes);
	close(fd);
}

static void streams(void)
{
	FILE *f = fopen(path, "r+");

	check(!!f, "fopen");
	TIMED("fwrite", if (i % BLOCKS == 0) rewind(f), fwrite(block, 1, bytes, f), == bytes);
	TIMED("fread", if (i % (BLOCKS - 1) == 0) rewind(f), fread(block, 1, bytes, f), == bytes);
	fclose(f);
}

static void mpi_io(void)
{
	MPI_File f;

	check(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &f) == MPI_SUCCESS, "MPI_File_open");
	TIMED("MPI_File_write_at", ,
	      MPI_File_write_at(f, i % BLOCKS * bytes, block, bytes, MPI_BYTE, MPI_STATUS_IGNORE), == MPI_SUCCESS);
	TIMED("MPI_File_read_at", , MPI_File_read_at(f, i % BLOCKS * bytes, block, bytes, MPI_BYTE, MPI_STATUS_IGNORE),
	      == MPI_SUCCESS);
	MPI_File_close(&f);
}

static void hdf5(void)
{
	hsize_t size = bytes * BLOCKS, count = bytes;
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t space = H5Screate_simple(1, &size, NULL), memory = H5Screate_simple(1, &count, NULL);
	hid_t data = H5Dcreate2(file, "data", H5T_NATIVE_CHAR, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

	check(data >= 0, "H5Dcreate2");
#define SELECT                                                                                                         \
	hsize_t start = i % BLOCKS * bytes;                                                                            \
	H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL)
	TIMED("H5Dwrite", SELECT, H5Dwrite(data, H5T_NATIVE_CHAR, memory, space, H5P_DEFAULT, block), >= 0);
	TIMED("H5Dread", SELECT, H5Dread(data, H5T_NATIVE_CHAR, memory, space, H5P_DEFAULT, block), >= 0);
	H5Dclose(data);
	H5Sclose(memory);
	H5Sclose(space);
	H5Fclose(file);
}

int main(int argc, char **argv)
{
	check(argc == 4, "net FILE BYTES CALLS");
	path = argv[1];
	bytes = strtoul(argv[2], NULL, 10);
	calls = atoi(argv[3]);
	block = malloc(bytes);
	times = malloc(calls * sizeof(*times));
	check(block && times, "malloc");
	memset(block, 1, bytes);
	MPI_Init(&argc, &argv);
	system_calls();
	streams();
	mpi_io();
	hdf5();
	MPI_Finalize();
	return 0;
}
