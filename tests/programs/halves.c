/*
 * A job that waits for ever: `halves DIR FIFO`. Each rank writes a block of the file DIR/shared with MPI_File_write_at, and
 * DIR/rank.N with its process id. Then the even ranks write the file together, which takes all of them, and the odd ones
 * read FIFO, which nobody writes to.
 */
#include <fcntl.h>
#include <mpi.h>

#include "truth.h"

enum {
	BLOCK = 4096
};

static void report(const char *dir, int rank)
{
	char path[4096], text[32];
	int fd;

	snprintf(path, sizeof(path), "%s/rank.%d", dir, rank);
	snprintf(text, sizeof(text), "%d\n", getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && truth_write(fd, text) == 0 && close(fd) == 0);
}

int main(int argc, char **argv)
{
	char path[4096], block[BLOCK] = "";
	int rank;
	MPI_File shared;

	CHECK(argc == 3);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	snprintf(path, sizeof(path), "%s/shared", argv[1]);
	CHECK(!MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &shared));
	CHECK(!MPI_File_write_at(shared, rank * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
	/* For reading and writing, or the open itself would wait. */
	int fd = open(argv[2], O_RDWR);
	FILE *fifo = fdopen(fd, "r+");
	CHECK(fd >= 0 && fifo);
	report(argv[1], rank);
	if (rank % 2)
		CHECK(fread(block, 1, BLOCK, fifo) == BLOCK);
	else
		CHECK(!MPI_File_write_at_all(shared, rank * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
	return 1;
}
