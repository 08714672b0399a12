/*
 * Calls of PnetCDF on long lists of boxes: `mpirun -np N pnetcdf_lists DIR`.
 *
 * Each rank writes its own part of the variables of DIR/lists.nc, which are filled before, no element twice, and reads
 * some of it. Pointers of a list lead all over memory. Each rank leaves in DIR/truth.RANK.json what it called, and how
 * many bytes of its memory each function was to move.
 */
#include <fcntl.h>
#include <mpi.h>
#include <pnetcdf.h>

#include "truth.h"

#define NC(f, ...) COUNT("pnetcdf", f, __VA_ARGS__)
#define OK(f, ...) CHECK(NC(f, __VA_ARGS__) == NC_NOERR)
#define MOVE(bytes, f, ...)                                                                                            \
	do {                                                                                                           \
		tally("bytes", #f, (long)(bytes));                                                                     \
		OK(f, __VA_ARGS__);                                                                                    \
	} while (0)

enum {
	BOXES = 6000,
	TOO_MANY = (1 << 20) + 1, /* more than are looked at */
	STEPS = 3,
	WIDE = 2,
};

static int rank, ranks;
static const char *dir;
static char path[4096];
/* Of each box a block of its own, in another order than the boxes. */
static MPI_Offset *starts[BOXES], *counts[BOXES];

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static MPI_Offset *block(void)
{
	MPI_Offset *at = malloc(3 * sizeof(*at));
	CHECK(at);
	return at;
}

static void places(void)
{
	for (int i = 0; i < BOXES; i++) {
		int at = (int)(i * 7919L % BOXES); /* a prime: each once */
		counts[at] = block();
		starts[at] = block();
	}
}

/* Boxes of one or two of the own 2 * BOXES elements; returns how many elements they are. */
static long in_line(void)
{
	long elements = 0;
	for (int i = 0; i < BOXES; i++) {
		starts[i][0] = 2L * (rank * BOXES + i);
		counts[i][0] = i % 3 == 2 ? 2 : 1;
		elements += counts[i][0];
	}
	return elements;
}

/* Boxes of (time, rank, x), the whole width of every second place. */
static long in_records(void)
{
	for (int i = 0; i < BOXES; i++) {
		starts[i][0] = i % STEPS;
		starts[i][1] = rank;
		starts[i][2] = i / STEPS * 2 * WIDE;
		counts[i][0] = counts[i][1] = 1;
		counts[i][2] = WIDE;
	}
	return (long)BOXES * WIDE;
}

static int define(int *variables)
{
	int file, dims[3], line;
	OK(ncmpi_create, MPI_COMM_WORLD, in_dir("lists.nc"), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file);
	OK(ncmpi_set_fill, file, NC_FILL, NULL);
	OK(ncmpi_def_dim, file, "time", NC_UNLIMITED, &dims[0]);
	OK(ncmpi_def_dim, file, "rank", ranks, &dims[1]);
	OK(ncmpi_def_dim, file, "x", 2L * WIDE * BOXES / STEPS, &dims[2]);
	OK(ncmpi_def_dim, file, "line", 2L * ranks * BOXES, &line);
	OK(ncmpi_def_var, file, "together", NC_FLOAT, 1, &line, &variables[0]);
	OK(ncmpi_def_var, file, "alone", NC_FLOAT, 1, &line, &variables[1]);
	OK(ncmpi_def_var, file, "queued", NC_INT, 1, &line, &variables[2]);
	OK(ncmpi_def_var, file, "buffered", NC_INT, 1, &line, &variables[3]);
	OK(ncmpi_def_var, file, "records", NC_DOUBLE, 3, dims, &variables[4]);
	OK(ncmpi_def_var, file, "mixed", NC_DOUBLE, 3, dims, &variables[5]);
	OK(ncmpi_enddef, file);
	for (int step = 0; step < STEPS; step++) {
		OK(ncmpi_fill_var_rec, file, variables[4], step);
		OK(ncmpi_fill_var_rec, file, variables[5], step);
	}
	return file;
}

static void wait_for_all(int file)
{
	OK(ncmpi_wait_all, file, NC_REQ_ALL, NULL, NULL);
}

static void write_lists(int file, const int *variables)
{
	static float floats[2 * BOXES];
	static int ints[2 * BOXES];
	static short shorts[2 * BOXES];
	static double doubles[BOXES * WIDE];
	long n = in_line();
	int request;

	for (int i = 0; i < 2 * BOXES; i++) {
		floats[i] = ints[i] = shorts[i] = 1;
		doubles[i % (BOXES * WIDE)] = 1;
	}
	MOVE(n * 4, ncmpi_put_varn_float_all, file, variables[0], BOXES, starts, counts, floats);
	OK(ncmpi_begin_indep_data, file);
	MOVE(n * 4, ncmpi_put_varn_float, file, variables[1], BOXES, starts, counts, floats);
	OK(ncmpi_end_indep_data, file);
	MOVE(n * 4, ncmpi_iput_varn_int, file, variables[2], BOXES, starts, counts, ints, &request);
	wait_for_all(file);
	OK(ncmpi_buffer_attach, file, n * 4);
	MOVE(n * 2, ncmpi_bput_varn_short, file, variables[3], BOXES, starts, counts, shorts, &request);
	wait_for_all(file);
	OK(ncmpi_buffer_detach, file);
	n = in_records();
	MOVE(n * 8, ncmpi_put_varn_all, file, variables[4], BOXES, starts, counts, doubles, n, MPI_DOUBLE);
	/* Of some boxes one element. */
	for (int i = 0; i < BOXES; i += 5) {
		free(counts[i]);
		counts[i] = NULL;
		n -= WIDE - 1;
	}
	MOVE(n * 8, ncmpi_put_varn_double_all, file, variables[5], BOXES, starts, counts, doubles);
}

static void read_lists(int file, const int *variables)
{
	static float floats[2 * BOXES];
	static double doubles[BOXES];
	int request;

	MOVE(BOXES * 8, ncmpi_get_varn_double_all, file, variables[5], BOXES, starts, NULL, doubles);
	for (int i = 0; i < BOXES; i++)
		counts[i] = counts[i] ? counts[i] : block();
	long n = in_line();
	MOVE(n * 4, ncmpi_get_varn_float_all, file, variables[0], BOXES, starts, counts, floats);
	MOVE(n * 4, ncmpi_iget_varn_float, file, variables[1], BOXES, starts, counts, floats, &request);
	wait_for_all(file);
}

/* The first element, and again and again. */
static void read_too_many(int file, int variable)
{
	MPI_Offset first = 0, **same = malloc(TOO_MANY * sizeof(*same));
	float *data = malloc(TOO_MANY * sizeof(*data));
	int request;

	CHECK(same && data);
	for (int i = 0; i < TOO_MANY; i++)
		same[i] = &first;
	OK(ncmpi_begin_indep_data, file);
	OK(ncmpi_iget_varn_uint, file, variable, TOO_MANY, same, NULL, (unsigned *)data, &request);
	OK(ncmpi_wait, file, 1, &request, NULL);
	OK(ncmpi_end_indep_data, file);
}

static void report(void)
{
	static char text[65536];
	char name[64];
	const char *groups[] = {"pnetcdf", "bytes"};
	snprintf(text, sizeof(text), "{\"pid\":%d", (int)getpid());
	for (int i = 0; i < 2; i++) {
		size_t at = strlen(text);
		snprintf(text + at, sizeof(text) - at, ",\"%s\":", groups[i]);
		truth_calls(text, sizeof(text), groups[i]);
	}
	strcat(text, "}\n");
	snprintf(name, sizeof(name), "truth.%d.json", rank);
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && !truth_write(fd, text) && !close(fd));
}

int main(int argc, char **argv)
{
	int variables[6];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(argc == 2);
	dir = argv[1];
	places();
	int file = define(variables);
	write_lists(file, variables);
	read_lists(file, variables);
	read_too_many(file, variables[2]);
	OK(ncmpi_close, file);
	MPI_Finalize();
	report();
	return 0;
}
