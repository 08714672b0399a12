/*
 * A parallel NetCDF-4 program: `mpirun -np N netcdf_par DIR`.
 *
 * Each rank writes and reads its own part of DIR/par.nc, of one variable together with the others and of another by itself.
 * It leaves in DIR/truth.RANK.json what it called, how many bytes each function was to move, and which calls were collective.
 */
#include <fcntl.h>
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>

#include "truth.h"

#define NC(f, ...) COUNT("netcdf", f, __VA_ARGS__)
#define OK(f, ...) CHECK(NC(f, __VA_ARGS__) == NC_NOERR)
/* A call that every rank makes. */
#define ALL(f, ...)                                                                                                    \
	do {                                                                                                           \
		tally("collective", #f, 1);                                                                            \
		OK(f, __VA_ARGS__);                                                                                    \
	} while (0)

enum {
	STEPS = 3,
	Y = 64,
	X = 128,
};

static int rank, ranks;
static const char *dir;
static char path[4096];

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void moves(const char *function, long bytes)
{
	tally("bytes", function, bytes);
}

static void write_all(void)
{
	int file, dims[3], together, alone;
	size_t start[3] = {0, (size_t)rank * Y, 0}, count[3] = {1, Y, X};
	static double data[Y * X];
	static float flat[Y];

	ALL(nc_create_par, in_dir("par.nc"), NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file);
	ALL(nc_def_dim, file, "time", NC_UNLIMITED, &dims[0]);
	ALL(nc_def_dim, file, "y", (size_t)ranks * Y, &dims[1]);
	ALL(nc_def_dim, file, "x", X, &dims[2]);
	ALL(nc_def_var, file, "together", NC_DOUBLE, 3, dims, &together);
	ALL(nc_def_var, file, "alone", NC_FLOAT, 1, &dims[1], &alone);
	ALL(nc_put_att_int, file, together, "steps", NC_INT, 1, (int[1]){STEPS});
	moves("nc_put_att_int", 4);
	ALL(nc_enddef, file);
	OK(nc_var_par_access, file, together, NC_COLLECTIVE);
	OK(nc_var_par_access, file, alone, NC_INDEPENDENT);
	for (int step = 0; step < STEPS; step++) {
		for (int i = 0; i < Y * X; i++)
			data[i] = step * 1000 + rank * 100 + i % 100;
		start[0] = (size_t)step;
		ALL(nc_put_vara_double, file, together, start, count, data);
		moves("nc_put_vara_double", sizeof(data));
	}
	OK(nc_put_vara_float, file, alone, &start[1], &count[1], flat);
	moves("nc_put_vara_float", sizeof(flat));
	ALL(nc_close, file);
}

static void read_all(void)
{
	int file, together, alone;
	size_t start[3] = {STEPS - 1, (size_t)((rank + 1) % ranks) * Y, 0}, count[3] = {1, Y, X}, length;
	static float data[Y * X];

	ALL(nc_open_par, in_dir("par.nc"), NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file);
	OK(nc_inq_varid, file, "together", &together);
	OK(nc_inq_varid, file, "alone", &alone);
	OK(nc_get_vara_float, file, together, start, count, data);
	moves("nc_get_vara_float", sizeof(data));
	CHECK(data[7] == (STEPS - 1) * 1000 + (rank + 1) % ranks * 100 + 7);
	OK(nc_var_par_access, file, together, NC_COLLECTIVE);
	ALL(nc_get_vara_float, file, together, start, count, data);
	moves("nc_get_vara_float", sizeof(data));
	OK(nc_inq_dimlen, file, 0, &length);
	CHECK(length == STEPS);
	ALL(nc_close, file);
}

static void report(void)
{
	static char text[16384];
	char name[64];
	const char *groups[] = {"netcdf", "bytes", "collective"};
	snprintf(text, sizeof(text), "{\"pid\":%d", (int)getpid());
	for (int i = 0; i < 3; i++) {
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
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(argc == 2);
	dir = argv[1];
	write_all();
	read_all();
	MPI_Finalize();
	report();
	return 0;
}
