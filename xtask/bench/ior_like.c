/*
 * What IOR does, under mpirun: `ior_like mpiio|hdf5 FILE CALLS` writes so many blocks from each rank into a part of the file of its
 * own, one after the other, and reads them back: 4 KiB by MPI-IO, or 16 KiB by HDF5 on MPI-IO, independent of other ranks.
 * Prints what a call of the first rank took by its own clock: `write NANOSECONDS`, `read NANOSECONDS`.
 */
#include "blocks.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MPIIO_BLOCK = 4096,
	HDF5_BLOCK = 2048 /* doubles */
};

static int rank, ranks;
static long long calls;

static void check(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s failed\n", what);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static void print_rate(int writes, double start)
{
	double end = MPI_Wtime();

	if (!rank)
		printf("%s %.0f\n", writes ? "write" : "read", (end - start) / calls * 1e9);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void mpiio(const char *path)
{
	static char data[MPIIO_BLOCK];
	MPI_File file;

	check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS,
	      "MPI_File_open");
	for (int writes = 1; writes >= 0; writes--) {
		double start = MPI_Wtime();

		for (long long i = 0; i < calls; i++) {
			MPI_Offset at = (rank * calls + i) * MPIIO_BLOCK;
			int done = writes ? MPI_File_write_at(file, at, data, MPIIO_BLOCK, MPI_BYTE, MPI_STATUS_IGNORE)
					  : MPI_File_read_at(file, at, data, MPIIO_BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);

			check(done == MPI_SUCCESS, "MPI_File_write_at or MPI_File_read_at");
		}
		print_rate(writes, start);
	}
	MPI_File_close(&file);
}

static void hdf5(const char *path)
{
	static double data[HDF5_BLOCK];
	hsize_t all = (hsize_t)calls * ranks * HDF5_BLOCK, one = HDF5_BLOCK;
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);

	check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "H5Pset_fapl_mpio");
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
	hid_t space = H5Screate_simple(1, &all, NULL), memory = H5Screate_simple(1, &one, NULL);
	hid_t set = H5Dcreate2(file, "blocks", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	check(set >= 0, "H5Dcreate2");
	for (int writes = 1; writes >= 0; writes--) {
		double start = MPI_Wtime();

		for (long long i = 0; i < calls; i++) {
			hsize_t at = (rank * calls + i) * HDF5_BLOCK;
			const char *failed = block(set, memory, space, at, one, data, writes);

			check(!failed, failed);
		}
		print_rate(writes, start);
	}
	check(H5Dclose(set) >= 0 && H5Fclose(file) >= 0, "H5Fclose");
}

int main(int argc, char **argv)
{
	calls = argc == 4 ? atoll(argv[3]) : 0;
	if (calls <= 0)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (!strcmp(argv[1], "mpiio"))
		mpiio(argv[2]);
	else
		hdf5(argv[2]);
	MPI_Finalize();
	return 0;
}
