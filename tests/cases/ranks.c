/*
 * `ranks MODE FILE COUNT SIZE [KEY VALUE]`: every rank writes COUNT pieces of SIZE bytes with MPI-IO, with a hint.
 *
 * MODE: `strided`: a call for each piece, the ranks' pieces in turn; `view`: the same with one call through a view;
 * `view-all`: that call is collective; `blocks`: one after the other in a block of the rank's own; `block`: that in one call;
 * `block-all`: that call is collective; `gathered`: rank 0 writes what it gathers of all; `late`, `even`: collective, a block
 * for each piece, before which rank 0 or all compute the same sum of time; `overlapping`: every rank all pieces at the same
 * places; `files`: each piece to a file of its own.
 */
#include <mpi.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

enum {
	/* Of one rank and piece, in ms. */
	WORK = 20
};

static int rank, ranks;
static long count, size;
static char *data;
static MPI_File file;

static void done(int result)
{
	must(result == MPI_SUCCESS, "MPI");
}

static void viewed(void)
{
	MPI_Datatype pieces;

	done(MPI_Type_vector(count, size, size * ranks, MPI_BYTE, &pieces));
	done(MPI_Type_commit(&pieces));
	done(MPI_File_set_view(file, rank * size, MPI_BYTE, pieces, "native", MPI_INFO_NULL));
	done(MPI_Type_free(&pieces));
}

static void one_by_one(long first, long apart)
{
	for (long i = 0; i < count; i++)
		done(MPI_File_write_at(file, first + i * apart, data + i * size, size, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void gathered(void)
{
	long all = count * size;
	char *whole = rank == 0 ? memory(all * ranks) : NULL;

	done(MPI_Gather(data, all, MPI_BYTE, whole, all, MPI_BYTE, 0, MPI_COMM_WORLD));
	if (rank != 0)
		return;
	for (int of = 0; of < ranks; of++)
		done(MPI_File_write_at(file, of * all, whole + of * all, all, MPI_BYTE, MPI_STATUS_IGNORE));
	free(whole);
}

static void after_work(bool even)
{
	long ms = even ? WORK : rank == 0 ? (long)WORK * ranks : 0;
	const struct timespec work = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	for (long i = 0; i < count; i++) {
		nanosleep(&work, NULL);
		done(MPI_File_write_at_all(file, (i * ranks + rank) * size, data + i * size, size, MPI_BYTE,
					   MPI_STATUS_IGNORE));
	}
}

static void to_files(const char *path)
{
	for (long i = 0; i < count; i++) {
		char name[4096];
		int own;

		snprintf(name, sizeof(name), "%s.%d.%ld", path, rank, i);
		own = open(name, O_WRONLY | O_CREAT, 0644);
		must(own >= 0 && write(own, data + i * size, size) == size && close(own) == 0, name);
	}
}

static void write_as(const char *mode, const char *path)
{
	long all = count * size;

	if (is(mode, "strided")) {
		one_by_one(rank * size, size * ranks);
	} else if (is(mode, "view")) {
		viewed();
		done(MPI_File_write(file, data, all, MPI_BYTE, MPI_STATUS_IGNORE));
	} else if (is(mode, "view-all")) {
		viewed();
		done(MPI_File_write_all(file, data, all, MPI_BYTE, MPI_STATUS_IGNORE));
	} else if (is(mode, "blocks")) {
		one_by_one(rank * all, size);
	} else if (is(mode, "block")) {
		done(MPI_File_write_at(file, rank * all, data, all, MPI_BYTE, MPI_STATUS_IGNORE));
	} else if (is(mode, "block-all")) {
		done(MPI_File_write_at_all(file, rank * all, data, all, MPI_BYTE, MPI_STATUS_IGNORE));
	} else if (is(mode, "overlapping")) {
		one_by_one(0, size);
	} else if (is(mode, "files")) {
		to_files(path);
	} else if (is(mode, "gathered")) {
		gathered();
	} else {
		must(is(mode, "late") || is(mode, "even"), mode);
		after_work(is(mode, "even"));
	}
}

int main(int argc, char **argv)
{
	MPI_Info info = MPI_INFO_NULL;

	done(MPI_Init(&argc, &argv));
	done(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	done(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
	count = number(argc, argv, 3);
	size = number(argc, argv, 4);
	data = memory(count * size);
	memset(data, 'a' + rank, count * size);
	if (argc > 6) {
		done(MPI_Info_create(&info));
		done(MPI_Info_set(info, argv[5], argv[6]));
	}
	done(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
	write_as(argv[1], argv[2]);
	done(MPI_File_close(&file));
	free(data);
	return MPI_Finalize();
}
