/*
 * Blocks of all ranks in turn in one file, as IOR writes segments, and a file of each rank: `segments posix|mpiio DIR`. What a
 * generated program (`replay-code`) is compared with.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	BLOCK = 4096,
	SEGMENTS = 100,
	ROWS = 10,
	PART = 300
};

static int rank, ranks;
static char data[BLOCK];
static char path[4096];

static const char *in(const char *dir, const char *name)
{
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static off_t at(int segment)
{
	return ((off_t)segment * ranks + rank) * BLOCK;
}

static void posix(const char *dir)
{
	char name[32];
	int fd = open(in(dir, "shared.dat"), O_RDWR | O_CREAT, 0644);

	check(fd >= 0, path);
	for (int i = 0; i < SEGMENTS; i++)
		check(pwrite(fd, data, BLOCK, at(i)) == BLOCK, "pwrite");
	check(!fsync(fd), "fsync");
	for (int i = 0; i < SEGMENTS; i++)
		check(pread(fd, data, BLOCK, at(i)) == BLOCK, "pread");
	check(!close(fd), "close");

	snprintf(name, sizeof name, "own/%d.dat", rank);
	fd = open(in(dir, name), O_RDWR | O_CREAT | O_TRUNC, 0644);
	check(fd >= 0, path);
	for (int row = 0; row < ROWS; row++) {
		check(lseek(fd, row * 65536 + rank, SEEK_SET) >= 0, "lseek");
		for (int i = 0; i < 7; i++)
			check(write(fd, data, PART) == PART, "write");
	}
	/* Up to the end of the file, where less is left, and past it. */
	check(lseek(fd, -100, SEEK_END) >= 0, "lseek");
	check(read(fd, data, PART) == 100, "read");
	check(read(fd, data, PART) == 0, "read");
	check(!ftruncate(fd, 12345), "ftruncate");
	check(!close(fd), "close");

	/* A file that was there before. */
	fd = open(in(dir, "input.dat"), O_RDONLY);
	check(fd >= 0, path);
	for (int i = 0; i < 5; i++)
		check(read(fd, data, 1000 * (i + 1)) == 1000 * (i + 1), "read");
	check(!close(fd), "close");
}

static void mpi(int error, const char *what)
{
	check(error == MPI_SUCCESS, what);
}

static void mpiio(const char *dir)
{
	MPI_File file;
	MPI_Info info;
	MPI_Request request;
	MPI_Status status;

	mpi(MPI_Info_create(&info), "MPI_Info_create");
	mpi(MPI_Info_set(info, "romio_cb_write", "enable"), "MPI_Info_set");
	mpi(MPI_File_open(MPI_COMM_WORLD, in(dir, "shared.mpi"), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), path);
	mpi(MPI_Info_free(&info), "MPI_Info_free");
	for (int i = 0; i < SEGMENTS; i++)
		mpi(MPI_File_write_at(file, at(i), data, BLOCK, MPI_BYTE, &status), "MPI_File_write_at");
	for (int i = SEGMENTS; i < SEGMENTS + 10; i++)
		mpi(MPI_File_write_at_all(file, at(i), data, BLOCK, MPI_BYTE, &status), "MPI_File_write_at_all");
	mpi(MPI_File_sync(file), "MPI_File_sync");
	for (int i = 0; i < 10; i++) {
		mpi(MPI_File_iwrite_at(file, at(i), data, BLOCK / 2, MPI_BYTE, &request), "MPI_File_iwrite_at");
		mpi(MPI_Wait(&request, &status), "MPI_Wait");
	}
	for (int i = 0; i < SEGMENTS; i++)
		mpi(MPI_File_read_at(file, at(i), data, BLOCK, MPI_BYTE, &status), "MPI_File_read_at");
	mpi(MPI_File_seek(file, 5 * rank, MPI_SEEK_SET), "MPI_File_seek");
	mpi(MPI_File_read_all(file, data, PART, MPI_BYTE, &status), "MPI_File_read_all");
	mpi(MPI_File_close(&file), "MPI_File_close");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 3)
		return 2;
	memset(data, 'a' + rank, sizeof data);
	(strcmp(argv[1], "posix") ? mpiio : posix)(argv[2]);
	MPI_Finalize();
	return 0;
}
