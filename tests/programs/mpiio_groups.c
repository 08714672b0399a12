/*
 * Files opened by communicators of all kinds: `mpirun -np 4 mpiio_groups DIR`.
 *
 * All ranks open DIR/all. The even and the odd ones, the last of them first, open DIR/halves at the same time, twice;
 * the first three DIR/most; each for itself DIR/own.RANK. Each leaves in DIR/truth.RANK.json for each of its opens, in
 * their order, the file, the ranks in MPI_COMM_WORLD, and whether it was ROMIO that called open().
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "truth.h"

static int rank, ranks;
static const char *dir;
static char path[4096], text_out[65536];

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void add(const char *text, int number)
{
	size_t at = strlen(text_out);
	snprintf(text_out + at, sizeof(text_out) - at, text, number);
}

/* The code that opened the last file in the directory: 1: ROMIO's; -1: none. */
static int by_romio = -1;

static int opens(const char *name, int flags, int mode, void *from)
{
	Dl_info at = {0};
	if (dir && !strncmp(name, dir, strlen(dir)) && dladdr(from, &at)) {
		const char *symbol = at.dli_sname ? at.dli_sname : "";
		by_romio = strstr(at.dli_fname, "romio") || strstr(symbol, "romio") || strstr(symbol, "ADIO");
	}
	return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

/* In the place of the C library's. */
#define OPEN(function)                                                                                                 \
	int function(const char *name, int flags, ...)                                                                 \
	{                                                                                                              \
		va_list rest;                                                                                          \
		va_start(rest, flags);                                                                                 \
		int mode = flags & O_CREAT ? va_arg(rest, int) : 0;                                                    \
		va_end(rest);                                                                                          \
		return opens(name, flags, mode, __builtin_return_address(0));                                          \
	}

OPEN(open)
OPEN(open64)

static void report(MPI_Comm comm, const char *name)
{
	MPI_Group own, world;
	int size;
	CHECK(!MPI_Comm_group(comm, &own) && !MPI_Comm_group(MPI_COMM_WORLD, &world) && !MPI_Group_size(own, &size));
	add(*text_out ? "," : "[", 0);
	add("{\"file\":\"", 0);
	strcat(text_out, name);
	add("\",\"ranks\":", 0);
	for (int i = 0; i < size; i++) {
		int in_world;
		CHECK(!MPI_Group_translate_ranks(own, 1, &i, world, &in_world));
		add(i ? ",%d" : "[%d", in_world);
	}
	add("],\"romio\":%d}", by_romio);
	CHECK(!MPI_Group_free(&own) && !MPI_Group_free(&world));
}

static void open_and_close(MPI_Comm comm, const char *name)
{
	MPI_File file;
	int number = rank;
	by_romio = -1;
	CHECK(!MPI_File_open(comm, in_dir(name), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
	report(comm, name);
	CHECK(!MPI_File_write_at_all(file, 4L * rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
	CHECK(!MPI_Barrier(MPI_COMM_WORLD)); /* all have it open */
	CHECK(!MPI_File_close(&file));
}

int main(int argc, char **argv)
{
	MPI_Comm half, most;
	char name[64];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(argc == 2 && ranks == 4);
	dir = argv[1];
	CHECK(!MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half));
	CHECK(!MPI_Comm_split(MPI_COMM_WORLD, rank < 3 ? 0 : MPI_UNDEFINED, rank, &most));
	open_and_close(MPI_COMM_WORLD, "all");
	open_and_close(half, "halves");
	open_and_close(half, "halves");
	if (most != MPI_COMM_NULL)
		open_and_close(most, "most");
	else
		CHECK(!MPI_Barrier(MPI_COMM_WORLD));
	snprintf(name, sizeof(name), "own.%d", rank);
	open_and_close(MPI_COMM_SELF, name);
	strcat(text_out, "]\n");
	snprintf(name, sizeof(name), "truth.%d.json", rank);
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && !truth_write(fd, text_out) && !close(fd));
	MPI_Finalize();
	return 0;
}
