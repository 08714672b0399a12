/*
 * MPI that communicates all the time: `chatty FILE CALLS WRITES`. CALLS reductions outside of I/O, WRITES small collective
 * writes with a view each, as PnetCDF makes them, and at last some of which one rank comes late to each.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LATE 20

static void put(MPI_File file, int rank, long n)
{
	char bytes[16] = {0};
	MPI_Offset at = (2 * n + rank) * sizeof(bytes);

	if (MPI_File_set_view(file, at, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) != MPI_SUCCESS ||
	    MPI_File_write_at_all(file, 0, bytes, sizeof(bytes), MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	long calls, writes;
	double mine, sum;
	MPI_File file;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc != 4)
		MPI_Abort(MPI_COMM_WORLD, 2);
	calls = atol(argv[2]);
	writes = atol(argv[3]);
	if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) !=
	    MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 3);
	mine = rank;
	for (long n = 0; n < calls; n++)
		MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (long n = 0; n < writes; n++)
		put(file, rank, n);
	for (long n = 0; n < LATE; n++) {
		if (rank == 0)
			usleep(100000);
		put(file, rank, writes + n);
	}
	MPI_File_close(&file);
	MPI_Finalize();
	return 0;
}
