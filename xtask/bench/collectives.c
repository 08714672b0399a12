/*
 * PnetCDF under mpirun: `collectives FILE CALLS` writes 512 bytes of each rank in each of so many collective calls, in 256 records
 * over and over. Prints what a call took by its own clock: `put NANOSECONDS`.
 */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	RECORDS = 256,
	VALUES = 64
};

static void check(int status)
{
	if (status != NC_NOERR) {
		fprintf(stderr, "%s\n", ncmpi_strerror(status));
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	int rank, ranks, file, dims[2], variable, calls = argc == 3 ? atoi(argv[2]) : 0;
	double values[VALUES] = {0}, start, end;

	if (calls <= 0)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	check(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &file));
	check(ncmpi_def_dim(file, "record", RECORDS, &dims[0]));
	check(ncmpi_def_dim(file, "value", (MPI_Offset)VALUES * ranks, &dims[1]));
	check(ncmpi_def_var(file, "values", NC_DOUBLE, 2, dims, &variable));
	check(ncmpi_enddef(file));
	start = MPI_Wtime();
	for (int i = 0; i < calls; i++) {
		MPI_Offset at[2] = {i % RECORDS, (MPI_Offset)VALUES * rank}, count[2] = {1, VALUES};

		check(ncmpi_put_vara_double_all(file, variable, at, count, values));
	}
	end = MPI_Wtime();
	check(ncmpi_close(file));
	if (!rank)
		printf("put %.0f\n", (end - start) / calls * 1e9);
	MPI_Finalize();
	return 0;
}
