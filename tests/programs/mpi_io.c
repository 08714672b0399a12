/* MPI-IO with any MPI library: `mpi_io FILE BLOCKS`. Each rank writes its blocks of 4 KiB, and reads them back. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK = 4096
};

int main(int argc, char **argv)
{
	char block[BLOCK];
	int rank, ranks, failed = 0;
	MPI_File file;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	memset(block, 'a' + rank, sizeof(block));
	failed |= MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
	for (long i = 0; !failed && i < atol(argv[2]); i++)
		failed |=
			MPI_File_write_at(file, (i * ranks + rank) * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
	for (long i = 0; !failed && i < atol(argv[2]); i++) {
		failed |= MPI_File_read_at(file, (i * ranks + rank) * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
		failed |= block[0] != 'a' + rank || block[BLOCK - 1] != 'a' + rank;
	}
	failed |= MPI_File_close(&file);
	if (failed)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	return 0;
}
