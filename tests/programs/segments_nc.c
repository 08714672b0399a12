/*
 * Rows of all ranks in turn in variables of one file: `segments_nc DIR`, by PnetCDF; segments_nc4.c is by NetCDF. What
 * a generated program (`replay-code`) is compared with.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef NETCDF
#include <netcdf.h>
#include <netcdf_par.h>
#define NC(function) nc_##function
#define PUT	     nc_put_vara_double
#define GET	     nc_get_vara_double
typedef size_t extent;
#else
#include <pnetcdf.h>
#define NC(function) ncmpi_##function
#define PUT	     ncmpi_put_vara_double_all
#define GET	     ncmpi_get_vara_double_all
typedef MPI_Offset extent;
#endif

enum {
	COLUMNS = 64,
	TURNS = 20
};

static double data[COLUMNS];

static void ok(int result, const char *what)
{
	if (result == NC_NOERR)
		return;
	fprintf(stderr, "%s: %s\n", what, NC(strerror)(result));
	MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	int rank, ranks, file, dims[2], field, words;
	char path[4096];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 2)
		return 2;
	snprintf(path, sizeof path, "%s/segments.nc", argv[1]);
#ifdef NETCDF
	ok(nc_create_par(path, NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "create");
#else
	ok(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
#endif
	ok(NC(def_dim)(file, "y", (extent)(TURNS * ranks), &dims[0]), "def_dim");
	ok(NC(def_dim)(file, "x", COLUMNS, &dims[1]), "def_dim");
	ok(NC(def_var)(file, "field", NC_DOUBLE, 2, dims, &field), "def_var");
	ok(NC(def_var)(file, "words", NC_CHAR, 1, &dims[1], &words), "def_var");
	ok(NC(put_att_text)(file, field, "units", 5, "metre"), "put_att");
	ok(NC(put_att_double)(file, NC_GLOBAL, "steps", NC_DOUBLE, 2, data), "put_att");
	ok(NC(enddef)(file), "enddef");
#ifdef NETCDF
	ok(nc_var_par_access(file, field, NC_COLLECTIVE), "var_par_access");
#endif
	for (int turn = 0; turn < TURNS; turn++) {
		extent start[2] = {(extent)(turn * ranks + rank), 0}, count[2] = {1, COLUMNS};

		ok(PUT(file, field, start, count, data), "put_vara");
	}
	for (int turn = 0; turn < TURNS; turn++) {
		extent start[2] = {(extent)(turn * ranks + rank), 0}, count[2] = {1, COLUMNS};

		ok(GET(file, field, start, count, data), "get_vara");
	}
	ok(NC(close)(file), "close");
	MPI_Finalize();
	return 0;
}
