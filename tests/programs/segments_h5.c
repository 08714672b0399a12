/*
 * Rows of all ranks in turn in datasets of one file, in HDF5: `segments_h5 DIR`. What a generated program (`replay-code`) is
 * compared with.
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	COLUMNS = 64,
	TURNS = 40
};

#define OK(call) check((call) >= 0, #call)

static int rank, ranks;
static double data[COLUMNS];

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s failed\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void rows(hid_t set, hid_t transfer, int writes)
{
	hsize_t part[2] = {1, COLUMNS};
	hid_t memory = H5Screate_simple(2, part, NULL), space = H5Dget_space(set);

	for (int turn = 0; turn < TURNS; turn++) {
		hsize_t start[2] = {(hsize_t)(turn * ranks + rank), 0};

		OK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL));
		if (writes)
			OK(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, data));
		else
			OK(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, transfer, data));
	}
	OK(H5Sclose(memory));
	OK(H5Sclose(space));
}

static hid_t set(hid_t file, const char *name, int chunked)
{
	hsize_t dims[2] = {(hsize_t)(TURNS * ranks), COLUMNS}, chunk[2] = {(hsize_t)ranks, COLUMNS};
	hid_t space = H5Screate_simple(2, dims, NULL), storage = H5Pcreate(H5P_DATASET_CREATE);
	hid_t made;

	if (chunked)
		OK(H5Pset_chunk(storage, 2, chunk));
	made = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, storage, H5P_DEFAULT);
	check(made >= 0, "H5Dcreate2");
	OK(H5Pclose(storage));
	OK(H5Sclose(space));
	return made;
}

int main(int argc, char **argv)
{
	char path[4096];
	hid_t access, transfer, file, group, plain, chunked, attribute, scalar;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 2)
		return 2;
	snprintf(path, sizeof path, "%s/segments.h5", argv[1]);
	access = H5Pcreate(H5P_FILE_ACCESS);
	transfer = H5Pcreate(H5P_DATASET_XFER);
	OK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
	OK(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
	file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
	check(file >= 0, "H5Fcreate");
	group = H5Gcreate2(file, "run", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	check(group >= 0, "H5Gcreate2");
	plain = set(group, "plain", 0);
	chunked = set(group, "chunked", 1);
	rows(plain, H5P_DEFAULT, 1);
	rows(chunked, transfer, 1);
	rows(plain, H5P_DEFAULT, 0);
	scalar = H5Screate(H5S_SCALAR);
	attribute = H5Acreate2(plain, "step", H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT, H5P_DEFAULT);
	check(attribute >= 0, "H5Acreate2");
	OK(H5Awrite(attribute, H5T_NATIVE_DOUBLE, data));
	OK(H5Aclose(attribute));
	OK(H5Sclose(scalar));
	OK(H5Dclose(plain));
	OK(H5Dclose(chunked));
	OK(H5Gclose(group));
	OK(H5Fclose(file));
	OK(H5Pclose(access));
	OK(H5Pclose(transfer));
	MPI_Finalize();
	return 0;
}
