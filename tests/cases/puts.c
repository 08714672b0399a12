/* `puts MODE FILE ROWS LENGTH`: each rank writes ROWS rows with PnetCDF, `blocking`: each in one call; `combined`: all in one. */
#include <mpi.h>
#include <pnetcdf.h>

#include "case.h"

static void done(int result)
{
	must(result == NC_NOERR, ncmpi_strerror(result));
}

int main(int argc, char **argv)
{
	int rank, ranks, nc, dims[2], var;
	MPI_Offset rows, length;
	float *row;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	rows = number(argc, argv, 3);
	length = number(argc, argv, 4);
	row = memory(length * sizeof(*row));
	for (MPI_Offset i = 0; i < length; i++)
		row[i] = rank + i;
	done(ncmpi_create(MPI_COMM_WORLD, argv[2], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &nc));
	done(ncmpi_def_dim(nc, "row", rows * ranks, &dims[0]));
	done(ncmpi_def_dim(nc, "x", length, &dims[1]));
	done(ncmpi_def_var(nc, "field", NC_FLOAT, 2, dims, &var));
	done(ncmpi_enddef(nc));
	for (MPI_Offset i = 0; i < rows; i++) {
		MPI_Offset start[2] = {i * ranks + rank, 0}, counts[2] = {1, length};

		if (is(argv[1], "blocking"))
			done(ncmpi_put_vara_float_all(nc, var, start, counts, row));
		else
			done(ncmpi_iput_vara_float(nc, var, start, counts, row, NULL));
	}
	if (!is(argv[1], "blocking"))
		done(ncmpi_wait_all(nc, NC_REQ_ALL, NULL, NULL));
	done(ncmpi_close(nc));
	free(row);
	return MPI_Finalize();
}
