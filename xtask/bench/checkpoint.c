/*
 * A parallel program that writes checkpoints: `checkpoint FILE STEPS`. In each step the ranks write their parts of a dataset
 * of HDF5 together, 4 MiB each, and wait until all of it is on the device.
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdlib.h>

enum {
	NUMBERS = 512 * 1024
};

#define CHECK(ok)                                                                                                      \
	if (!(ok)) {                                                                                                   \
		fprintf(stderr, "checkpoint.c:%d: failed\n", __LINE__);                                                \
		MPI_Abort(MPI_COMM_WORLD, 1);                                                                          \
	}

int main(int argc, char **argv)
{
	int rank, ranks;
	long steps;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(argc == 3);
	steps = atol(argv[2]);
	hid_t access = H5Pcreate(H5P_FILE_ACCESS), together = H5Pcreate(H5P_DATASET_XFER);
	CHECK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
	CHECK(H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE) >= 0);
	hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
	hsize_t size[2] = {(hsize_t)steps, (hsize_t)ranks * NUMBERS}, part[2] = {1, NUMBERS};
	hid_t space = H5Screate_simple(2, size, NULL), memory = H5Screate_simple(2, part, NULL);
	hid_t data = H5Dcreate2(file, "data", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	double *numbers = malloc(NUMBERS * sizeof(*numbers));
	CHECK(data >= 0 && numbers);
	for (long step = 0; step < steps; step++) {
		hsize_t at[2] = {(hsize_t)step, (hsize_t)rank * NUMBERS};

		for (long i = 0; i < NUMBERS; i++)
			numbers[i] = (double)(step * i + rank);
		CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, part, NULL) >= 0);
		CHECK(H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, space, together, numbers) >= 0);
		CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
	}
	free(numbers);
	H5Dclose(data);
	H5Sclose(memory);
	H5Sclose(space);
	H5Pclose(together);
	H5Pclose(access);
	H5Fclose(file);
	MPI_Finalize();
	return 0;
}
