/*
 * One process, HDF5: `h5_loop FILE CALLS` writes so many blocks of 16 KiB into a contiguous dataset and reads them back, each
 * with a selection of its own. Prints what a call took by its own clock: `write NANOSECONDS`, `read NANOSECONDS`.
 */
#include "blocks.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	BLOCK = 2048
};

static void check(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
}

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	static double data[BLOCK];
	hsize_t calls = argc == 3 ? strtoull(argv[2], NULL, 10) : 0, all = calls * BLOCK, one = BLOCK;

	if (!calls)
		return 2;
	hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t space = H5Screate_simple(1, &all, NULL), memory = H5Screate_simple(1, &one, NULL);
	hid_t set = H5Dcreate2(file, "blocks", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	check(set >= 0, "H5Dcreate2");
	for (int writes = 1; writes >= 0; writes--) {
		long long start = now();

		for (hsize_t i = 0; i < calls; i++) {
			const char *failed = block(set, memory, space, i * BLOCK, one, data, writes);

			check(!failed, failed);
		}
		printf("%s %lld\n", writes ? "write" : "read", (now() - start) / (long long)calls);
	}
	check(H5Dclose(set) >= 0 && H5Fclose(file) >= 0, "H5Fclose");
	return 0;
}
