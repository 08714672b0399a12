/*
 * MPI that does no I/O: `reduce CALLS` makes so many reductions of a number. Prints what one took by its own clock:
 * `reduce NANOSECONDS`.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int rank, calls = argc == 2 ? atoi(argv[1]) : 0;
	double mine, sum, start, end;

	if (calls <= 0)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	mine = rank;
	start = MPI_Wtime();
	for (int i = 0; i < calls; i++)
		MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	end = MPI_Wtime();
	if (!rank)
		printf("reduce %.0f\n", (end - start) / calls * 1e9);
	MPI_Finalize();
	return 0;
}
