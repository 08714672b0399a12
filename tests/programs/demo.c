/*
 * A small parallel program that does I/O in every way at once: `mpirun -np 4 demo DIR [ROUNDS]`.
 *
 * HDF5 datasets (contiguous and chunked, collective and independent), MPI-IO, POSIX and C standard I/O; everything that
 * was written is read back and compared. Each rank leaves what it called in DIR/truth.RANK.json. HDF5's own calls of
 * MPI-IO and POSIX are not in there: the program does not see them. Ends with a status other than 0 when anything fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <mpi.h>
#include <sys/stat.h>

#include "truth.h"

#define HDF5(f, ...)  COUNT("hdf5", f, __VA_ARGS__)
#define MPIIO(f, ...) COUNT("mpiio", f, __VA_ARGS__)
#define STDIO(f, ...) COUNT("stdio", f, __VA_ARGS__)
#define POSIX(f, ...) COUNT("posix", f, __VA_ARGS__)

/* Stays a function, so that it can be traced as a phase. */
#define PART __attribute__((noinline))

enum {
	STEPS = 4,
	ROWS_PER_STEP = 64, /* of each rank */
	COLUMNS = 256,
	MPI_BLOCK = 16384,  /* doubles of each rank */
	POSIX_BLOCK = 8192, /* bytes */
	POSIX_BLOCKS = 32,
	LINES = 500,
};

static int rank, ranks;
static const char *dir;
static char path[4096];

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static const char *own(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s.%d", dir, name, rank);
	return path;
}

/* The number in a row and column of a dataset. */
static double number(long row, long column)
{
	return (double)row * 1000.0 + (double)column;
}

/* One rank's part of a dataset in one step: a band of rows (contiguous dataset) or a column of chunks (chunked one). */
struct part {
	hsize_t start[2], count[2];
};

static struct part part_of(int chunked, int step, int of_rank)
{
	hsize_t band = (hsize_t)ROWS_PER_STEP * (hsize_t)ranks;
	if (chunked) {
		hsize_t width = COLUMNS / (hsize_t)ranks;
		return (struct part){{(hsize_t)step * band, (hsize_t)of_rank * width}, {band, width}};
	}
	return (struct part){{(hsize_t)step * band + (hsize_t)of_rank * ROWS_PER_STEP, 0}, {ROWS_PER_STEP, COLUMNS}};
}

static void fill(double *data, struct part part)
{
	for (hsize_t r = 0; r < part.count[0]; r++)
		for (hsize_t c = 0; c < part.count[1]; c++)
			*data++ = number((long)(part.start[0] + r), (long)(part.start[1] + c));
}

static void compare(const double *data, struct part part)
{
	for (hsize_t r = 0; r < part.count[0]; r++)
		for (hsize_t c = 0; c < part.count[1]; c++)
			CHECK(*data++ == number((long)(part.start[0] + r), (long)(part.start[1] + c)));
}

static hid_t transfer(H5FD_mpio_xfer_t mode)
{
	hid_t list = HDF5(H5Pcreate, H5P_DATASET_XFER);
	CHECK(list >= 0 && HDF5(H5Pset_dxpl_mpio, list, mode) >= 0);
	return list;
}

/* Every other step is collective, the others independent; each rank writes its own part and reads its neighbour's. */
static void steps(hid_t dataset, int chunked, int writing)
{
	hid_t lists[2] = {transfer(H5FD_MPIO_COLLECTIVE), transfer(H5FD_MPIO_INDEPENDENT)};
	hid_t space = HDF5(H5Dget_space, dataset);
	double *data = malloc((size_t)ROWS_PER_STEP * COLUMNS * sizeof(double));
	CHECK(data && space >= 0);
	for (int step = 0; step < STEPS; step++) {
		struct part part = part_of(chunked, step, writing ? rank : (rank + 1) % ranks);
		hid_t memory = HDF5(H5Screate_simple, 2, part.count, NULL);
		/* Not a call of the trace's: see --layers hdf5=all. */
		CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, part.start, NULL, part.count, NULL) >= 0);
		if (writing) {
			fill(data, part);
			CHECK(HDF5(H5Dwrite, dataset, H5T_NATIVE_DOUBLE, memory, space, lists[step % 2], data) >= 0);
			tally("hdf5", "_written", (long)(part.count[0] * part.count[1] * sizeof(double)));
		} else {
			CHECK(HDF5(H5Dread, dataset, H5T_NATIVE_DOUBLE, memory, space, lists[step % 2], data) >= 0);
			tally("hdf5", "_read", (long)(part.count[0] * part.count[1] * sizeof(double)));
			compare(data, part);
		}
		HDF5(H5Sclose, memory);
	}
	free(data);
	HDF5(H5Sclose, space);
	HDF5(H5Pclose, lists[0]);
	HDF5(H5Pclose, lists[1]);
}

static hid_t create_dataset(hid_t group, const char *name, int chunked)
{
	hsize_t size[2] = {(hsize_t)STEPS * ROWS_PER_STEP * (hsize_t)ranks, COLUMNS};
	hsize_t chunk[2] = {(hsize_t)ROWS_PER_STEP * (hsize_t)ranks, COLUMNS / (hsize_t)ranks};
	hid_t space = HDF5(H5Screate_simple, 2, size, NULL);
	hid_t how = HDF5(H5Pcreate, H5P_DATASET_CREATE);
	if (chunked)
		CHECK(HDF5(H5Pset_chunk, how, 2, chunk) >= 0);
	hid_t dataset = HDF5(H5Dcreate2, group, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT);
	CHECK(dataset >= 0);
	HDF5(H5Pclose, how);
	HDF5(H5Sclose, space);
	return dataset;
}

static void hdf5_write(hid_t access)
{
	int version = 7;
	hid_t file = HDF5(H5Fcreate, in_dir("demo.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, access);
	CHECK(file >= 0);
	hid_t group = HDF5(H5Gcreate2, file, "results", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(group >= 0);

	hid_t scalar = HDF5(H5Screate, H5S_SCALAR);
	hid_t attribute = HDF5(H5Acreate2, group, "version", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(attribute >= 0);
	CHECK(HDF5(H5Awrite, attribute, H5T_NATIVE_INT, &version) >= 0);
	tally("hdf5", "_written", sizeof(version));
	CHECK(HDF5(H5Aclose, attribute) >= 0);
	HDF5(H5Sclose, scalar);

	hid_t field = create_dataset(group, "field", 0);
	hid_t history = create_dataset(group, "history", 1);
	steps(field, 0, 1);
	CHECK(HDF5(H5Fflush, file, H5F_SCOPE_GLOBAL) >= 0);
	steps(history, 1, 1);
	CHECK(HDF5(H5Dclose, field) >= 0);
	CHECK(HDF5(H5Dclose, history) >= 0);
	CHECK(HDF5(H5Gclose, group) >= 0);
	CHECK(HDF5(H5Fclose, file) >= 0);
}

static void hdf5_read(hid_t access)
{
	int version = 0;
	hid_t file = HDF5(H5Fopen, in_dir("demo.h5"), H5F_ACC_RDONLY, access);
	CHECK(file >= 0);
	hid_t group = HDF5(H5Gopen2, file, "results", H5P_DEFAULT);
	CHECK(group >= 0);
	hid_t attribute = HDF5(H5Aopen, group, "version", H5P_DEFAULT);
	CHECK(attribute >= 0);
	CHECK(HDF5(H5Aread, attribute, H5T_NATIVE_INT, &version) >= 0 && version == 7);
	tally("hdf5", "_read", sizeof(version));
	CHECK(HDF5(H5Aclose, attribute) >= 0);

	hid_t field = HDF5(H5Dopen2, group, "field", H5P_DEFAULT);
	hid_t history = HDF5(H5Dopen2, group, "history", H5P_DEFAULT);
	CHECK(field >= 0 && history >= 0);
	steps(field, 0, 0);
	steps(history, 1, 0);
	CHECK(HDF5(H5Dclose, field) >= 0);
	CHECK(HDF5(H5Dclose, history) >= 0);
	CHECK(HDF5(H5Gclose, group) >= 0);
	CHECK(HDF5(H5Fclose, file) >= 0);
}

PART static void hdf5(void)
{
	hid_t access = HDF5(H5Pcreate, H5P_FILE_ACCESS);
	CHECK(access >= 0 && HDF5(H5Pset_fapl_mpio, access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
	hdf5_write(access);
	hdf5_read(access);
	HDF5(H5Pclose, access);
}

/* A status has how much was moved. */
static void moved(const char *what, MPI_Status *status, int wanted)
{
	int n;
	MPI_Get_count(status, MPI_DOUBLE, &n);
	CHECK(n == wanted);
	tally("mpiio", what, (long)n * (long)sizeof(double));
}

/* Through a view of doubles: half of the ranks' blocks lie in each half of the file. */
PART static void mpiio(void)
{
	const int half = MPI_BLOCK / 2;
	MPI_Offset first = (MPI_Offset)rank * half, second = (MPI_Offset)ranks * half + first;
	MPI_Offset size = (MPI_Offset)sizeof(double) * MPI_BLOCK * ranks, found;
	double *data = malloc(sizeof(double) * MPI_BLOCK);
	MPI_Status status;
	MPI_File file;
	CHECK(data);

	in_dir("shared.dat");
	if (rank == 0)
		(void)MPIIO(MPI_File_delete, path, MPI_INFO_NULL); /* fails where there is none yet */
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(!MPIIO(MPI_File_open, MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
	CHECK(!MPIIO(MPI_File_preallocate, file, size));
	CHECK(!MPIIO(MPI_File_set_view, file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));

	for (int i = 0; i < MPI_BLOCK; i++)
		data[i] = number(rank, i);
	CHECK(!MPIIO(MPI_File_write_at, file, first, data, half, MPI_DOUBLE, &status));
	moved("_written", &status, half);
	CHECK(!MPIIO(MPI_File_write_at_all, file, second, data + half, half, MPI_DOUBLE, &status));
	moved("_written", &status, half);
	/* Once more, at the file pointer. */
	CHECK(!MPIIO(MPI_File_seek, file, first, MPI_SEEK_SET));
	CHECK(!MPIIO(MPI_File_write, file, data, half, MPI_DOUBLE, &status));
	moved("_written", &status, half);

	CHECK(!MPIIO(MPI_File_sync, file));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(!MPIIO(MPI_File_sync, file));

	int neighbour = (rank + 1) % ranks;
	MPI_Offset there = (MPI_Offset)neighbour * half;
	CHECK(!MPIIO(MPI_File_read_at_all, file, there, data, half, MPI_DOUBLE, &status));
	moved("_read", &status, half);
	there += (MPI_Offset)ranks * half;
	CHECK(!MPIIO(MPI_File_read_at, file, there, data + half, half, MPI_DOUBLE, &status));
	moved("_read", &status, half);
	for (int i = 0; i < MPI_BLOCK; i++)
		CHECK(data[i] == number(neighbour, i));

	/* The second half is read by all before it is cut off: the call itself does not wait for that. */
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(!MPIIO(MPI_File_set_size, file, size / 2));
	CHECK(!MPIIO(MPI_File_get_size, file, &found) && found == size / 2);
	CHECK(!MPIIO(MPI_File_close, &file));
	free(data);
}

PART static void posix(void)
{
	char block[POSIX_BLOCK], old[4096];
	struct stat st;
	int fd = POSIX(open, own("posix"), O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	for (int i = 0; i < POSIX_BLOCKS; i++) {
		memset(block, 'a' + i % 26, sizeof(block));
		CHECK(POSIX(pwrite, fd, block, sizeof(block), (off_t)i * POSIX_BLOCK) == POSIX_BLOCK);
		tally("posix", "_written", POSIX_BLOCK);
	}
	CHECK(!POSIX(fsync, fd));
	int other = POSIX(dup, fd);
	CHECK(other >= 0);
	CHECK(POSIX(lseek, other, POSIX_BLOCK, SEEK_SET) == POSIX_BLOCK);
	for (int i = 1; i < POSIX_BLOCKS; i++) {
		CHECK(POSIX(read, fd, block, sizeof(block)) == POSIX_BLOCK);
		tally("posix", "_read", POSIX_BLOCK);
		CHECK(block[0] == 'a' + i % 26 && block[POSIX_BLOCK - 1] == block[0]);
	}
	CHECK(!POSIX(fstat, fd, &st) && st.st_size == (off_t)POSIX_BLOCKS * POSIX_BLOCK);
	CHECK(!POSIX(close, other));
	CHECK(!POSIX(close, fd));
	strcpy(old, path);
	CHECK(!POSIX(rename, old, own("renamed")));
	CHECK(!POSIX(unlink, path));
}

PART static void standard_io(void)
{
	char line[64], block[1000];
	FILE *file = STDIO(fopen, own("log"), "w+");
	CHECK(file);
	for (int i = 0; i < LINES; i++) {
		int n = STDIO(fprintf, file, "rank %d line %d\n", rank, i);
		CHECK(n > 0);
		tally("stdio", "_written", n);
	}
	memset(block, 'x', sizeof(block));
	CHECK(STDIO(fwrite, block, 10, sizeof(block) / 10, file) == sizeof(block) / 10);
	tally("stdio", "_written", sizeof(block));
	CHECK(!STDIO(fflush, file));
	CHECK(!STDIO(fseek, file, 0, SEEK_SET));
	for (int i = 0; i < LINES; i++) {
		char wanted[64];
		CHECK(STDIO(fgets, line, sizeof(line), file));
		snprintf(wanted, sizeof(wanted), "rank %d line %d\n", rank, i);
		CHECK(!strcmp(line, wanted));
		tally("stdio", "_read", (long)strlen(line));
	}
	memset(block, 0, sizeof(block));
	CHECK(STDIO(fread, block, 1, sizeof(block), file) == sizeof(block) && block[999] == 'x');
	tally("stdio", "_read", sizeof(block));
	CHECK(!STDIO(fclose, file));
}

static void sync_file(const char *name)
{
	int fd = POSIX(open, name, O_RDONLY);
	CHECK(fd >= 0);
	CHECK(!POSIX(fsync, fd));
	CHECK(!POSIX(close, fd));
}

static void report(void)
{
	char text[8192], name[64];
	int pid = getpid();
	snprintf(text, sizeof(text), "{\"rank\":%d,\"pid\":%d", rank, pid);
	const char *groups[] = {"hdf5", "mpiio", "stdio", "posix"};
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		size_t at = strlen(text);
		snprintf(text + at, sizeof(text) - at, ",\"%s\":", groups[i]);
		truth_calls(text, sizeof(text), groups[i]);
		at = strlen(text);
		snprintf(text + at, sizeof(text) - at, ",\"%s_bytes_read\":%ld,\"%s_bytes_written\":%ld", groups[i],
			 truth_bytes(groups[i], "_read"), groups[i], truth_bytes(groups[i], "_written"));
	}
	strcat(text, "}\n");
	snprintf(name, sizeof(name), "truth.%d.json", rank);
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && !truth_write(fd, text) && !close(fd));
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(argc == 2 || argc == 3);
	dir = argv[1];
	CHECK(COLUMNS % ranks == 0);
	if (rank == 0)
		CHECK(!mkdir(dir, 0755) || errno == EEXIST);
	MPI_Barrier(MPI_COMM_WORLD);

	for (long round = argc > 2 ? atol(argv[2]) : 1; round > 0; round--) {
		hdf5();
		mpiio();
		posix();
		standard_io();
		MPI_Barrier(MPI_COMM_WORLD);
	}
	sync_file(own("log"));
	if (rank == 0) {
		sync_file(in_dir("demo.h5"));
		sync_file(in_dir("shared.dat"));
	}
	MPI_Finalize();
	/* After the last call of a library, so that the report disturbs nothing. */
	report();
	return 0;
}
