/*
 * Every MPI-IO function in an exactly known way: `mpirun -np 4 mpiio_mix DIR [no-iall]`.
 *
 * `no-iall` leaves out the non-blocking collective functions, which Open MPI's build of ROMIO crashes in.
 * Each rank leaves in DIR/truth.RANK.json what it called, and by function the bytes that it asked for and that moved.
 */
#include <mpi.h>

#include "truth.h"

#define MPIIO(f, ...) COUNT("mpiio", f, __VA_ARGS__)
#define OK(call)      CHECK((call) == MPI_SUCCESS)

enum {
	N = 1000, /* elements of most calls */
	ROOM = 1 << 16,
};

static int rank, ranks;
static const char *dir;
static int with_iall;
static char path[4096];
static char buffer[ROOM];
static MPI_Status status;
static MPI_Request request;

static char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static long size_of(MPI_Datatype type)
{
	int size;
	OK(MPI_Type_size(type, &size));
	return size;
}

static void asked(const char *f, long count, MPI_Datatype type)
{
	tally("asked", f, count * size_of(type));
}

/* What the status has; without one a write moved what was asked for, and a read is not known. */
static void moved(const char *f, long count, MPI_Datatype type, const MPI_Status *from)
{
	int n;
	if (from) {
		OK(MPI_Get_elements(from, MPI_BYTE, &n));
		tally("moved", f, n);
	} else if (strstr(f, "write")) {
		tally("moved", f, count * size_of(type));
	}
}

#define CALL(f, n, type, from, ...)                                                                                    \
	do {                                                                                                           \
		OK(MPIIO(f, __VA_ARGS__));                                                                             \
		asked(#f, n, type);                                                                                    \
		moved(#f, n, type, from);                                                                              \
	} while (0)
#define BEGIN(f, n, type, ...)                                                                                         \
	do {                                                                                                           \
		OK(MPIIO(f, __VA_ARGS__));                                                                             \
		asked(#f, n, type);                                                                                    \
	} while (0)
/* The bytes of an operation in two parts are those of the part that began it. */
#define END(begin, f)                                                                                                  \
	do {                                                                                                           \
		OK(MPIIO(f, fh, buffer, &status));                                                                     \
		moved(#begin, 0, MPI_BYTE, &status);                                                                   \
	} while (0)
#define WAIT(f, n, type, ...)                                                                                          \
	do {                                                                                                           \
		BEGIN(f, n, type, __VA_ARGS__);                                                                        \
		OK(MPI_Wait(&request, &status));                                                                       \
		moved(#f, n, type, &status);                                                                           \
	} while (0)

#define PLAIN(f, n, type)	   CALL(f, n, type, &status, fh, buffer, n, type, &status)
#define WITHOUT_STATUS(f, n, type) CALL(f, n, type, NULL, fh, buffer, n, type, MPI_STATUS_IGNORE)
#define AT(f, off, n, type)	   CALL(f, n, type, &status, fh, off, buffer, n, type, &status)
#define SPLIT(f, n, type)                                                                                              \
	(void)0;                                                                                                       \
	BEGIN(f##_begin, n, type, fh, buffer, n, type);                                                                \
	END(f##_begin, f##_end)
#define SPLIT_AT(f, off, n, type)                                                                                      \
	(void)0;                                                                                                       \
	BEGIN(f##_begin, n, type, fh, off, buffer, n, type);                                                           \
	END(f##_begin, f##_end)
#define START(f, n, type)	  WAIT(f, n, type, fh, buffer, n, type, &request)
#define START_AT(f, off, n, type) WAIT(f, n, type, fh, off, buffer, n, type, &request)

/* 24 bytes in a row; 2 x 8 bytes with a hole of 8 between them. */
static MPI_Datatype triple, holes;

static void types(void)
{
	OK(MPI_Type_contiguous(3, MPI_DOUBLE, &triple));
	OK(MPI_Type_commit(&triple));
	OK(MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &holes));
	OK(MPI_Type_commit(&holes));
}

static void independent(MPI_File fh)
{
	MPI_Offset at = (MPI_Offset)rank * ROOM;
	OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
	PLAIN(MPI_File_write, N, MPI_INT);
	WITHOUT_STATUS(MPI_File_write, 10, triple);
	PLAIN(MPI_File_write, 5, holes);
	AT(MPI_File_write_at, at, N, MPI_BYTE);
	OK(MPIIO(MPI_File_sync, fh));
	OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
	PLAIN(MPI_File_read, N, MPI_INT);
	WITHOUT_STATUS(MPI_File_read, 10, triple);
	AT(MPI_File_read_at, at, 5, holes);
	/* Nothing is asked for. */
	PLAIN(MPI_File_read, 0, MPI_INT);
	/* Ends behind the last byte of the file: some of it comes. */
	MPI_Offset size, position;
	MPI_Barrier(MPI_COMM_WORLD);
	OK(MPIIO(MPI_File_get_size, fh, &size));
	AT(MPI_File_read_at, size - 100, N, MPI_BYTE);
	AT(MPI_File_read_at, size, N, MPI_BYTE);
	OK(MPIIO(MPI_File_get_position, fh, &position));
	OK(MPIIO(MPI_File_get_byte_offset, fh, position, &position));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void collective(MPI_File fh)
{
	MPI_Offset at = (MPI_Offset)rank * N * 4;
	OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
	PLAIN(MPI_File_write_all, N, MPI_INT);
	AT(MPI_File_write_at_all, at, N, MPI_INT);
	OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
	PLAIN(MPI_File_read_all, N, MPI_INT);
	AT(MPI_File_read_at_all, at, N, MPI_INT);
	SPLIT(MPI_File_write_all, N, MPI_INT);
	SPLIT_AT(MPI_File_write_at_all, at, N, MPI_INT);
	OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
	SPLIT(MPI_File_read_all, N, MPI_INT);
	SPLIT_AT(MPI_File_read_at_all, at, N, MPI_INT);
	/* One rank has nothing to write. */
	AT(MPI_File_write_at_all, at, rank == 1 ? 0 : N, MPI_INT);
}

static void shared(MPI_File fh)
{
	MPI_Offset position;
	OK(MPIIO(MPI_File_seek_shared, fh, 0, MPI_SEEK_SET));
	PLAIN(MPI_File_write_shared, N, MPI_INT);
	PLAIN(MPI_File_write_ordered, N, MPI_INT);
	SPLIT(MPI_File_write_ordered, N, MPI_INT);
	OK(MPIIO(MPI_File_sync, fh));
	MPI_Barrier(MPI_COMM_WORLD);
	OK(MPIIO(MPI_File_seek_shared, fh, 0, MPI_SEEK_SET));
	PLAIN(MPI_File_read_shared, N, MPI_INT);
	PLAIN(MPI_File_read_ordered, N, MPI_INT);
	SPLIT(MPI_File_read_ordered, N, MPI_INT);
	OK(MPIIO(MPI_File_get_position_shared, fh, &position));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void nonblocking(MPI_File fh)
{
	MPI_Offset at = (MPI_Offset)rank * N * 4;
	OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
	START(MPI_File_iwrite, N, MPI_INT);
	START_AT(MPI_File_iwrite_at, at, N, MPI_INT);
	OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
	START(MPI_File_iread, N, MPI_INT);
	START_AT(MPI_File_iread_at, at, N, MPI_INT);
	if (with_iall) {
		OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
		START(MPI_File_iwrite_all, N, MPI_INT);
		START_AT(MPI_File_iwrite_at_all, at, N, MPI_INT);
		OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
		START(MPI_File_iread_all, N, MPI_INT);
		START_AT(MPI_File_iread_at_all, at, N, MPI_INT);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	OK(MPIIO(MPI_File_seek_shared, fh, 0, MPI_SEEK_SET));
	START(MPI_File_iwrite_shared, N, MPI_INT);
	MPI_Barrier(MPI_COMM_WORLD);
	OK(MPIIO(MPI_File_seek_shared, fh, 0, MPI_SEEK_SET));
	START(MPI_File_iread_shared, N, MPI_INT);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The functions of MPI 4.0 with 64-bit counts. */
static void large_counts(MPI_File fh)
{
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
	MPI_Offset at = (MPI_Offset)rank * N * 4;
	MPI_Count extent;
	OK(MPIIO(MPI_File_get_type_extent_c, fh, MPI_INT, &extent));
	OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
	OK(MPIIO(MPI_File_seek_shared, fh, 0, MPI_SEEK_SET));
	PLAIN(MPI_File_write_c, N, MPI_INT);
	AT(MPI_File_write_at_c, at, N, triple);
	PLAIN(MPI_File_write_all_c, N, MPI_INT);
	AT(MPI_File_write_at_all_c, at, N, MPI_INT);
	PLAIN(MPI_File_write_shared_c, N, MPI_INT);
	PLAIN(MPI_File_write_ordered_c, N, MPI_INT);
	START(MPI_File_iwrite_c, N, MPI_INT);
	START_AT(MPI_File_iwrite_at_c, at, N, MPI_INT);
	START(MPI_File_iwrite_all_c, N, MPI_INT);
	START_AT(MPI_File_iwrite_at_all_c, at, N, MPI_INT);
	START(MPI_File_iwrite_shared_c, N, MPI_INT);
	BEGIN(MPI_File_write_all_begin_c, N, MPI_INT, fh, buffer, N, MPI_INT);
	END(MPI_File_write_all_begin_c, MPI_File_write_all_end);
	BEGIN(MPI_File_write_at_all_begin_c, N, MPI_INT, fh, at, buffer, N, MPI_INT);
	END(MPI_File_write_at_all_begin_c, MPI_File_write_at_all_end);
	BEGIN(MPI_File_write_ordered_begin_c, N, MPI_INT, fh, buffer, N, MPI_INT);
	END(MPI_File_write_ordered_begin_c, MPI_File_write_ordered_end);
	MPI_Barrier(MPI_COMM_WORLD);
	OK(MPIIO(MPI_File_seek, fh, at, MPI_SEEK_SET));
	OK(MPIIO(MPI_File_seek_shared, fh, 0, MPI_SEEK_SET));
	PLAIN(MPI_File_read_c, N, MPI_INT);
	AT(MPI_File_read_at_c, at, N, MPI_INT);
	PLAIN(MPI_File_read_all_c, N, MPI_INT);
	AT(MPI_File_read_at_all_c, at, N, MPI_INT);
	PLAIN(MPI_File_read_shared_c, N, MPI_INT);
	PLAIN(MPI_File_read_ordered_c, N, MPI_INT);
	START(MPI_File_iread_c, N, MPI_INT);
	START_AT(MPI_File_iread_at_c, at, N, MPI_INT);
	START(MPI_File_iread_all_c, N, MPI_INT);
	START_AT(MPI_File_iread_at_all_c, at, N, MPI_INT);
	START(MPI_File_iread_shared_c, N, MPI_INT);
	BEGIN(MPI_File_read_all_begin_c, N, MPI_INT, fh, buffer, N, MPI_INT);
	END(MPI_File_read_all_begin_c, MPI_File_read_all_end);
	BEGIN(MPI_File_read_at_all_begin_c, N, MPI_INT, fh, at, buffer, N, MPI_INT);
	END(MPI_File_read_at_all_begin_c, MPI_File_read_at_all_end);
	BEGIN(MPI_File_read_ordered_begin_c, N, MPI_INT, fh, buffer, N, MPI_INT);
	END(MPI_File_read_ordered_begin_c, MPI_File_read_ordered_end);
#else
	(void)fh;
#endif
}

/* Each rank sees every fourth block of the file: what a collective call rearranges. */
static void views(MPI_File fh, MPI_Info info)
{
	MPI_Datatype strided, got_etype, got_type;
	MPI_Offset displacement;
	char representation[MPI_MAX_DATAREP_STRING];
	OK(MPI_Type_vector(N, 1, ranks, MPI_INT, &strided));
	OK(MPI_Type_commit(&strided));
	OK(MPIIO(MPI_File_set_view, fh, 64 + rank * 4, MPI_INT, strided, "native", info));
	PLAIN(MPI_File_write_all, N, MPI_INT);
	AT(MPI_File_read_at_all, 0, N, MPI_INT);
	AT(MPI_File_write_at, 10, 20, MPI_INT);
	AT(MPI_File_read_at, 10, 20, MPI_INT);
	OK(MPIIO(MPI_File_get_view, fh, &displacement, &got_etype, &got_type, representation));
	CHECK(displacement == 64 + rank * 4);
	OK(MPIIO(MPI_File_set_view, fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	OK(MPI_Type_free(&strided));
}

static void facts(MPI_File fh, MPI_Info info)
{
	MPI_Group group;
	MPI_Info used;
	MPI_Errhandler handler;
	MPI_Aint extent;
	int amode, atomic;
	OK(MPIIO(MPI_File_get_group, fh, &group));
	OK(MPI_Group_free(&group));
	OK(MPIIO(MPI_File_get_amode, fh, &amode));
	CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
	OK(MPIIO(MPI_File_set_info, fh, info));
	OK(MPIIO(MPI_File_get_info, fh, &used));
	OK(MPIIO(MPI_Info_free, &used));
	OK(MPIIO(MPI_File_set_atomicity, fh, 0));
	OK(MPIIO(MPI_File_get_atomicity, fh, &atomic));
	OK(MPIIO(MPI_File_get_type_extent, fh, MPI_INT, &extent));
	OK(MPIIO(MPI_File_get_errhandler, fh, &handler));
	OK(MPIIO(MPI_File_set_errhandler, fh, handler));
	OK(MPI_Errhandler_free(&handler));
	OK(MPIIO(MPI_File_call_errhandler, fh, MPI_ERR_OTHER));
	OK(MPIIO(MPI_File_preallocate, fh, 1 << 20));
	OK(MPIIO(MPI_File_set_size, fh, 1 << 19));
}

static MPI_File open_in(MPI_Comm comm, const char *name, int amode, MPI_Info info)
{
	MPI_File fh;
	OK(MPIIO(MPI_File_open, comm, in_dir(name), amode, info, &fh));
	return fh;
}

static void close_file(MPI_File fh)
{
	OK(MPIIO(MPI_File_close, &fh));
}

static void errors(int *no_file, int *no_delete)
{
	MPI_File fh;
	*no_file = MPIIO(MPI_File_open, MPI_COMM_WORLD, in_dir("missing"), MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);
	CHECK(*no_file != MPI_SUCCESS);
	*no_delete = MPIIO(MPI_File_delete, in_dir("missing"), MPI_INFO_NULL);
	CHECK(*no_delete != MPI_SUCCESS);
}

/* The same file, opened again and by smaller communicators. */
static void communicators(void)
{
	int amode = MPI_MODE_CREATE | MPI_MODE_RDWR;
	MPI_Comm half;
	MPI_File fh;
	OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
	fh = open_in(half, rank % 2 ? "odd.dat" : "even.dat", amode, MPI_INFO_NULL);
	AT(MPI_File_write_at_all, rank / 2 * 4 * N, N, MPI_INT);
	close_file(fh);
	OK(MPI_Comm_free(&half));
	fh = open_in(MPI_COMM_SELF, "self.dat", amode, MPI_INFO_NULL);
	AT(MPI_File_write_at_all, rank * 4 * N, N, MPI_INT);
	close_file(fh);
	MPI_Barrier(MPI_COMM_WORLD);
	fh = open_in(MPI_COMM_WORLD, "self.dat", amode, MPI_INFO_NULL);
	AT(MPI_File_read_at_all, rank * 4 * N, N, MPI_INT);
	close_file(fh);
	fh = open_in(MPI_COMM_SELF, "own.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE,
		     MPI_INFO_NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	close_file(fh);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void report(int no_file, int no_delete)
{
	static char text[1 << 16];
	char name[64];
	snprintf(text, sizeof(text),
		 "{\"rank\":%d,\"pid\":%d,\"missing\":%d,\"undeleted\":%d,\"amode\":%d,\"calls\":", rank, getpid(),
		 no_file, no_delete, MPI_MODE_CREATE | MPI_MODE_RDWR);
	const char *groups[] = {"mpiio", "asked", "moved"};
	for (int i = 0; i < 3; i++) {
		truth_calls(text, sizeof(text), groups[i]);
		strcat(text, (const char *[]){",\"asked\":", ",\"moved\":", "}\n"}[i]);
	}
	snprintf(name, sizeof(name), "truth.%d.json", rank);
	FILE *out = fopen(in_dir(name), "w");
	CHECK(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

int main(int argc, char **argv)
{
	MPI_Info info, copy;
	MPI_File fh;
	int no_file, no_delete;
	OK(MPI_Init(&argc, &argv));
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
	CHECK(argc >= 2);
	dir = argv[1];
	with_iall = argc == 2;
	for (int i = 0; i < ROOM; i++)
		buffer[i] = (char)i;
	types();
	OK(MPIIO(MPI_Info_create, &info));
	OK(MPIIO(MPI_Info_set, info, "cb_nodes", "2"));
	OK(MPIIO(MPI_Info_set, info, "romio_ds_write", "disable"));
	OK(MPIIO(MPI_Info_dup, info, &copy));
	OK(MPIIO(MPI_Info_set, info, "romio_ds_write", "enable"));

	fh = open_in(MPI_COMM_WORLD, "mix.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, copy);
	OK(MPIIO(MPI_Info_free, &copy));
	independent(fh);
	collective(fh);
	shared(fh);
	nonblocking(fh);
	large_counts(fh);
	views(fh, info);
	facts(fh, info);
	close_file(fh);
	OK(MPIIO(MPI_Info_free, &info));
	communicators();
	if (rank == 0)
		OK(MPIIO(MPI_File_delete, in_dir("even.dat"), MPI_INFO_NULL));
	MPI_Barrier(MPI_COMM_WORLD);
	errors(&no_file, &no_delete);

	OK(MPI_Type_free(&triple));
	OK(MPI_Type_free(&holes));
	report(no_file, no_delete);
	OK(MPI_Finalize());
	return 0;
}
