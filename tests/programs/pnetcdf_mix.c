/*
 * Every way to move data with PnetCDF: `mpirun -np 3 pnetcdf_mix DIR`.
 *
 * Writes and reads DIR/five.nc (and two.nc, in the older format) with every function: independent, collective and non-blocking ones,
 * for each type in memory and for MPI datatypes; then reads it again asking for nothing but the id of a variable. Each
 * rank leaves in DIR/truth.RANK.json what it called, and how many bytes of its memory each function was to move.
 */
#include <fcntl.h>
#include <mpi.h>
#include <pnetcdf.h>
#include <sys/stat.h>

#include "truth.h"

#define NC(f, ...) COUNT("pnetcdf", f, __VA_ARGS__)
#define OK(f, ...) CHECK(NC(f, __VA_ARGS__) == NC_NOERR)
/* A call that is to move so many bytes. */
#define MOVE(bytes, f, ...)                                                                                            \
	do {                                                                                                           \
		tally("bytes", #f, (long)(bytes));                                                                     \
		OK(f, __VA_ARGS__);                                                                                    \
	} while (0)
/* A call that fails. */
#define FAILS(why, f, ...)                                                                                             \
	do {                                                                                                           \
		tally("errors", #f, 1);                                                                                \
		CHECK(NC(f, __VA_ARGS__) == (why));                                                                    \
	} while (0)

enum {
	RECORDS = 2,
	Y = 3,
	X = 4,
	OWN = RECORDS * Y * X, /* elements of one rank */
	MOST = 8 * OWN,
	QUEUE = 12,
	QUEUED = 8 * QUEUE * Y * X,
};

static int rank, ranks;
static const char *dir;
static char path[4096];

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* Dimensions are time, rank, y, x; a rank's part, every other element of it, and both with one element. */
static MPI_Offset start[4], whole[4] = {RECORDS, 1, Y, X}, pair[4] = {RECORDS, 1, 2, 2};
static const MPI_Offset step[4] = {1, 1, 2, 3}, map[4] = {4, 4, 2, 1};
static MPI_Offset *starts[2], *wholes[2];
/* A part in two boxes: the records. */
static MPI_Offset second[4], record[4] = {1, 1, Y, X};
/* Records of a queue. */
static MPI_Offset queue[6][4], *at[6];
static MPI_Offset *boxes[2] = {start, second}, *records[2] = {record, record}, *mixed[2] = {record, NULL};

/* Each function of a type in memory. All elements of the variable are those of all ranks; where
 * these are not in step, what is read may be what another has just written. */
#define BLOCKING(type, c_type, all)                                                                                    \
	static void blocking_##type##all(int file, int variable)                                                       \
	{                                                                                                              \
		c_type data[MOST], back[MOST];                                                                         \
		size_t size = sizeof(c_type);                                                                          \
		for (int i = 0; i < MOST; i++)                                                                         \
			data[i] = (c_type)(i % 100 + 1);                                                               \
		MOVE(OWN *size, ncmpi_put_vara_##type##all, file, variable, start, whole, data);                       \
		MOVE(OWN *ranks *size, ncmpi_put_var_##type##all, file, variable, data);                               \
		MOVE(size, ncmpi_put_var1_##type##all, file, variable, start, data);                                   \
		MOVE(8 * size, ncmpi_put_vars_##type##all, file, variable, start, pair, step, data);                   \
		MOVE(8 * size, ncmpi_put_varm_##type##all, file, variable, start, pair, step, map, data);              \
		MOVE(OWN *size, ncmpi_put_varn_##type##all, file, variable, 2, boxes, records, data);                  \
		MOVE(OWN *size, ncmpi_put_vara_##type##all, file, variable, start, whole, data);                       \
		MOVE(OWN *size, ncmpi_get_vara_##type##all, file, variable, start, whole, back);                       \
		CHECK(sizeof(#all) == 1 || !memcmp(back, data, OWN * size));                                           \
		MOVE(OWN *ranks *size, ncmpi_get_var_##type##all, file, variable, back);                               \
		MOVE(size, ncmpi_get_var1_##type##all, file, variable, start, back);                                   \
		CHECK(sizeof(#all) == 1 || back[0] == data[0]);                                                        \
		MOVE(8 * size, ncmpi_get_vars_##type##all, file, variable, start, pair, step, back);                   \
		MOVE(8 * size, ncmpi_get_varm_##type##all, file, variable, start, pair, step, map, back);              \
		MOVE(OWN *size, ncmpi_get_varn_##type##all, file, variable, 2, boxes, records, back);                  \
		CHECK(sizeof(#all) == 1 || !memcmp(back, data, OWN * size));                                           \
		/* Without counts one element; a list in which one has none. */                                        \
		MOVE(2 * size, ncmpi_get_varn_##type##all, file, variable, 2, boxes, NULL, back);                      \
		MOVE((Y * X + 1) * size, ncmpi_get_varn_##type##all, file, variable, 2, boxes, mixed, back);           \
	}

/* Two variables at once. */
#define SEVERAL(type, c_type, all)                                                                                     \
	static void several_##type##all(int file, const int *variables)                                                \
	{                                                                                                              \
		c_type data[2][MOST], *buffers[2] = {data[0], data[1]};                                                \
		size_t size = sizeof(c_type);                                                                          \
		int ids[2] = {variables[0], variables[1]};                                                             \
		MPI_Offset *steps[2] = {(MPI_Offset *)step, (MPI_Offset *)step};                                       \
		MPI_Offset *maps[2] = {(MPI_Offset *)map, (MPI_Offset *)map}, *pairs[2] = {pair, pair};                \
		memset(data, 0, sizeof(data));                                                                         \
		MOVE(2 * OWN * ranks * size, ncmpi_mput_var_##type##all, file, 2, ids, buffers);                       \
		MOVE(2 * size, ncmpi_mput_var1_##type##all, file, 2, ids, starts, buffers);                            \
		MOVE(2 * OWN * size, ncmpi_mput_vara_##type##all, file, 2, ids, starts, wholes, buffers);              \
		MOVE(16 * size, ncmpi_mput_vars_##type##all, file, 2, ids, starts, pairs, steps, buffers);             \
		MOVE(16 * size, ncmpi_mput_varm_##type##all, file, 2, ids, starts, pairs, steps, maps, buffers);       \
		MOVE(2 * OWN * ranks * size, ncmpi_mget_var_##type##all, file, 2, ids, buffers);                       \
		MOVE(2 * size, ncmpi_mget_var1_##type##all, file, 2, ids, starts, buffers);                            \
		MOVE(2 * OWN * size, ncmpi_mget_vara_##type##all, file, 2, ids, starts, wholes, buffers);              \
		MOVE(16 * size, ncmpi_mget_vars_##type##all, file, 2, ids, starts, pairs, steps, buffers);             \
		MOVE(16 * size, ncmpi_mget_varm_##type##all, file, 2, ids, starts, pairs, steps, maps, buffers);       \
	}

/* Submitted here, done by the wait. What is moved together must not overlap: each request has records of its own. */
#define SUBMIT(type, c_type)                                                                                           \
	static void submit_##type(int file, int variable)                                                              \
	{                                                                                                              \
		static c_type data[QUEUED], back[6][QUEUED];                                                           \
		size_t size = sizeof(c_type);                                                                          \
		int all = QUEUE * ranks * Y * X, request[6], status[6];                                                \
		for (int i = 0; i < QUEUED; i++)                                                                       \
			data[i] = (c_type)(i % 100 + 1);                                                               \
		MOVE(OWN *size, ncmpi_iput_vara_##type, file, variable, at[0], whole, data, &request[0]);              \
		MOVE(size, ncmpi_iput_var1_##type, file, variable, at[1], data, &request[1]);                          \
		MOVE(8 * size, ncmpi_iput_vars_##type, file, variable, at[2], pair, step, data, &request[2]);          \
		MOVE(8 * size, ncmpi_iput_varm_##type, file, variable, at[3], pair, step, map, data, &request[3]);     \
		MOVE(OWN *size, ncmpi_iput_varn_##type, file, variable, 2, at + 4, records, data, &request[4]);        \
		OK(ncmpi_wait_all, file, 5, request, status);                                                          \
		MOVE(all *size, ncmpi_iput_var_##type, file, variable, data, &request[5]);                             \
		OK(ncmpi_wait_all, file, 1, request + 5, NULL);                                                        \
		MOVE(OWN *size, ncmpi_bput_vara_##type, file, variable, at[0], whole, data, &request[0]);              \
		MOVE(size, ncmpi_bput_var1_##type, file, variable, at[1], data, &request[1]);                          \
		MOVE(8 * size, ncmpi_bput_vars_##type, file, variable, at[2], pair, step, data, &request[2]);          \
		MOVE(8 * size, ncmpi_bput_varm_##type, file, variable, at[3], pair, step, map, data, &request[3]);     \
		MOVE(OWN *size, ncmpi_bput_varn_##type, file, variable, 2, at + 4, records, data, &request[4]);        \
		OK(ncmpi_wait_all, file, NC_PUT_REQ_ALL, NULL, NULL);                                                  \
		MOVE(all *size, ncmpi_bput_var_##type, file, variable, data, &request[5]);                             \
		OK(ncmpi_wait_all, file, NC_REQ_ALL, NULL, NULL);                                                      \
		MOVE(OWN *size, ncmpi_iget_vara_##type, file, variable, at[0], whole, back[0], &request[0]);           \
		MOVE(size, ncmpi_iget_var1_##type, file, variable, at[1], back[1], &request[1]);                       \
		MOVE(8 * size, ncmpi_iget_vars_##type, file, variable, at[2], pair, step, back[2], &request[2]);       \
		MOVE(8 * size, ncmpi_iget_varm_##type, file, variable, at[3], pair, step, map, back[3], &request[3]);  \
		MOVE(OWN *size, ncmpi_iget_varn_##type, file, variable, 2, at + 4, records, back[4], &request[4]);     \
		OK(ncmpi_wait_all, file, 5, request, status);                                                          \
		MOVE(all *size, ncmpi_iget_var_##type, file, variable, back[5], &request[5]);                          \
		OK(ncmpi_wait_all, file, NC_GET_REQ_ALL, NULL, NULL);                                                  \
		CHECK(!memcmp(back[0], back[5] + rank * Y * X, Y * X * size));                                         \
	}

#define EVERY(type, c_type)                                                                                            \
	BLOCKING(type, c_type, )                                                                                       \
	BLOCKING(type, c_type, _all)                                                                                   \
	SEVERAL(type, c_type, )                                                                                        \
	SEVERAL(type, c_type, _all)                                                                                    \
	SUBMIT(type, c_type)
#define NUMBERS(each)                                                                                                  \
	each(schar, signed char) each(uchar, unsigned char) each(short, short) each(ushort, unsigned short)            \
		each(int, int) each(uint, unsigned int) each(long, long) each(longlong, long long)                     \
			each(ulonglong, unsigned long long) each(float, float) each(double, double)
NUMBERS(EVERY)
EVERY(text, char)

#define ATTRIBUTE(type, c_type)                                                                                        \
	do {                                                                                                           \
		c_type data[3] = {1, 2, 3}, back[3];                                                                   \
		MOVE(sizeof(data), ncmpi_put_att_##type, file, variable, #type, NC_DOUBLE, 3, data);                   \
		OK(ncmpi_inq_attlen, file, variable, #type, &length);                                                  \
		MOVE(sizeof(back), ncmpi_get_att_##type, file, variable, #type, back);                                 \
		CHECK(length == 3 && back[2] == 3);                                                                    \
	} while (0);

static void attributes(int file, int variable)
{
	double numbers[2] = {1, 2};
	MPI_Offset length;
	NUMBERS(ATTRIBUTE)
	MOVE(5, ncmpi_put_att_text, file, NC_GLOBAL, "title", 5, "hello");
	MOVE(16, ncmpi_put_att, file, variable, "numbers", NC_DOUBLE, 2, numbers);
	MOVE(16, ncmpi_get_att, file, variable, "numbers", numbers);
	OK(ncmpi_rename_att, file, variable, "numbers", "values");
	OK(ncmpi_del_att, file, variable, "values");
}

#define COLLECTIVE(type, c_type)    blocking_##type##_all(file, variables[0]);
#define COLLECTIVE_2(type, c_type)  several_##type##_all(file, variables);
#define INDEPENDENT(type, c_type)   blocking_##type(file, variables[0]);
#define INDEPENDENT_2(type, c_type) several_##type(file, variables);
#define SUBMITTED(type, c_type)	    submit_##type(file, variables[3]);

/* The functions that take an MPI datatype. */
static void flexible(int file, int variable, int queued)
{
	double data[MOST] = {0};
	float narrow[MOST] = {0};
	int request[3];
	MPI_Datatype column, part;
	int sizes[4] = {RECORDS, ranks, Y, X}, own[4] = {RECORDS, 1, Y, X}, from[4] = {0, rank, 0, 0};
	MPI_Type_vector(OWN, 1, 2, MPI_DOUBLE, &column);
	MPI_Type_commit(&column);
	MPI_Type_create_subarray(4, sizes, own, from, MPI_ORDER_C, MPI_DOUBLE, &part);
	MPI_Type_commit(&part);

	MOVE(OWN * 8, ncmpi_put_vara_all, file, variable, start, whole, data, OWN, MPI_DOUBLE);
	MOVE(OWN * 8, ncmpi_put_vara_all, file, variable, start, whole, data, 1, column);
	MOVE(OWN * 4, ncmpi_put_vara_all, file, variable, start, whole, narrow, OWN, MPI_FLOAT);
	MOVE(OWN * 8, ncmpi_put_vara_all, file, variable, start, whole, data, 0, MPI_DATATYPE_NULL);
	MOVE(OWN * ranks * 8, ncmpi_put_var_all, file, variable, data, OWN * ranks, MPI_DOUBLE);
	MOVE(8, ncmpi_put_var1_all, file, variable, start, data, 1, MPI_DOUBLE);
	MOVE(8 * 8, ncmpi_put_vars_all, file, variable, start, pair, step, data, 8, MPI_DOUBLE);
	MOVE(8 * 8, ncmpi_put_varm_all, file, variable, start, pair, step, map, data, 8, MPI_DOUBLE);
	MOVE(OWN * 8, ncmpi_put_varn_all, file, variable, 2, boxes, records, data, OWN, MPI_DOUBLE);
	MOVE(OWN * 8, ncmpi_put_vard_all, file, variable, part, data, OWN, MPI_DOUBLE);
	MOVE(OWN * 8, ncmpi_put_vard_all, file, variable, part, data, 0, MPI_DATATYPE_NULL);
	MOVE(OWN * 8, ncmpi_get_vara_all, file, variable, start, whole, data, 1, column);
	MOVE(OWN * 4, ncmpi_get_vara_all, file, variable, start, whole, narrow, OWN, MPI_FLOAT);
	MOVE(OWN * ranks * 8, ncmpi_get_var_all, file, variable, data, OWN * ranks, MPI_DOUBLE);
	MOVE(8, ncmpi_get_var1_all, file, variable, start, data, 1, MPI_DOUBLE);
	MOVE(8 * 8, ncmpi_get_vars_all, file, variable, start, pair, step, data, 8, MPI_DOUBLE);
	MOVE(8 * 8, ncmpi_get_varm_all, file, variable, start, pair, step, map, data, 8, MPI_DOUBLE);
	MOVE(OWN * 8, ncmpi_get_varn_all, file, variable, 2, boxes, records, data, OWN, MPI_DOUBLE);
	MOVE(OWN * 8, ncmpi_get_vard_all, file, variable, part, data, 1, column);

	MOVE(OWN * 4, ncmpi_iput_vara, file, queued, at[0], whole, narrow, OWN, MPI_FLOAT, &request[0]);
	MOVE(OWN * 8, ncmpi_iput_varn, file, queued, 2, at + 4, records, data, OWN, MPI_DOUBLE, &request[1]);
	MOVE(OWN * 8, ncmpi_bput_vara, file, queued, at[1], whole, data, 0, MPI_DATATYPE_NULL, &request[2]);
	OK(ncmpi_wait_all, file, NC_REQ_ALL, NULL, NULL);
	MOVE(OWN * 8, ncmpi_iget_vara, file, variable, start, whole, data, 1, column, &request[0]);
	OK(ncmpi_wait_all, file, NC_GET_REQ_ALL, NULL, NULL);

	OK(ncmpi_begin_indep_data, file);
	MOVE(OWN * 8, ncmpi_put_vara, file, variable, start, whole, data, OWN, MPI_DOUBLE);
	MOVE(0, ncmpi_put_vara, file, variable, start, whole, data, 0, MPI_DOUBLE);
	MOVE(OWN * 8, ncmpi_get_vara, file, variable, start, whole, data, OWN, MPI_DOUBLE);
	MOVE(OWN * 8, ncmpi_put_vard, file, variable, part, data, OWN, MPI_DOUBLE);
	MOVE(OWN * 8, ncmpi_get_vard, file, variable, part, data, OWN, MPI_DOUBLE);
	OK(ncmpi_end_indep_data, file);
	MPI_Type_free(&column);
	MPI_Type_free(&part);
}

/* Requests that are not waited for, or wait for nothing. */
static void requests(int file, int variable)
{
	float data[OWN] = {0};
	MPI_Offset none[4] = {0, 0, 0, 0};
	int request[3], status[3], open;
	MOVE(0, ncmpi_iput_vara_float, file, variable, start, none, data, &request[0]);
	CHECK(request[0] == NC_REQ_NULL);
	tally("cancelled", "ncmpi_iput_vara_float", 1);
	OK(ncmpi_iput_vara_float, file, variable, start, whole, data, &request[1]);
	OK(ncmpi_cancel, file, 1, &request[1], status);
	MOVE(4, ncmpi_iput_var1_float, file, variable, start, data, &request[0]);
	MOVE(8, ncmpi_iget_var1_double, file, variable, start, (double[1]){0}, &request[1]);
	CHECK(ncmpi_inq_nreqs(file, &open) == NC_NOERR && open == 2);
	OK(ncmpi_begin_indep_data, file);
	OK(ncmpi_wait, file, 2, request, status);
	OK(ncmpi_end_indep_data, file);
	/* One whose request nobody wants to know. */
	MOVE(4, ncmpi_iput_var1_float, file, variable, start, data, NULL);
	OK(ncmpi_wait_all, file, NC_REQ_ALL, NULL, NULL);
	FAILS(NC_EINVALCOORDS, ncmpi_iput_vara_float, file, variable, (MPI_Offset[4]){-1, 0, 0, 0}, whole, data,
	      &request[0]);
}

static void define(int file, int *variables)
{
	int dims[4];
	OK(ncmpi_def_dim, file, "time", NC_UNLIMITED, &dims[0]);
	OK(ncmpi_def_dim, file, "rank", ranks, &dims[1]);
	OK(ncmpi_def_dim, file, "y", Y, &dims[2]);
	OK(ncmpi_def_dim, file, "x", X, &dims[3]);
	OK(ncmpi_def_var, file, "numbers", NC_DOUBLE, 4, dims, &variables[0]);
	OK(ncmpi_def_var, file, "others", NC_FLOAT, 4, dims, &variables[1]);
	OK(ncmpi_def_var, file, "letters", NC_CHAR, 4, dims, &variables[2]);
	OK(ncmpi_def_dim, file, "queue", QUEUE, &dims[0]);
	OK(ncmpi_def_var, file, "queue", NC_DOUBLE, 4, dims, &variables[3]);
	OK(ncmpi_def_var, file, "words", NC_CHAR, 4, dims, &variables[4]);
}

static void five(void)
{
	int file, variables[5], old;
	OK(ncmpi_create, MPI_COMM_WORLD, in_dir("five.nc"), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file);
	define(file, variables);
	attributes(file, variables[0]);
	OK(ncmpi_enddef, file);
	OK(ncmpi_buffer_attach, file, 1 << 20);
	NUMBERS(COLLECTIVE)
	NUMBERS(COLLECTIVE_2)
	NUMBERS(SUBMITTED)
	blocking_text_all(file, variables[2]);
	submit_text(file, variables[4]);
	several_text_all(file, (int[2]){variables[2], variables[2]});
	flexible(file, variables[0], variables[3]);
	requests(file, variables[1]);
	OK(ncmpi_buffer_detach, file);
	OK(ncmpi_begin_indep_data, file);
	NUMBERS(INDEPENDENT)
	NUMBERS(INDEPENDENT_2)
	blocking_text(file, variables[2]);
	several_text(file, (int[2]){variables[2], variables[2]});
	OK(ncmpi_end_indep_data, file);
	OK(ncmpi_sync, file);
	OK(ncmpi_redef, file);
	OK(ncmpi_set_fill, file, NC_NOFILL, &old);
	OK(ncmpi_rename_var, file, variables[1], "second");
	OK(ncmpi__enddef, file, 0, 4, 0, 4);
	/* A record more. */
	start[0] = RECORDS;
	MOVE(Y * X * 4, ncmpi_put_vara_float_all, file, variables[1], start, record, (float[Y * X]){0});
	start[0] = 0;
	OK(ncmpi_close, file);
}

/* As programs do that know their files: no call has the dimensions. */
static void read_unasked(void)
{
	int file, variable, request;
	float back[MOST];
	OK(ncmpi_open, MPI_COMM_WORLD, in_dir("five.nc"), NC_NOWRITE, MPI_INFO_NULL, &file);
	OK(ncmpi_inq_varid, file, "numbers", &variable);
	MOVE(OWN * 4, ncmpi_get_vara_float_all, file, variable, start, whole, back);
	MOVE(32, ncmpi_get_vars_float_all, file, variable, start, pair, step, back);
	MOVE((RECORDS + 1) * Y * X * ranks * 4, ncmpi_get_var_float_all, file, variable, back);
	MOVE(OWN * 4, ncmpi_get_varn_float_all, file, variable, 2, boxes, records, back);
	MOVE(OWN * 4, ncmpi_iget_vara_float, file, variable, start, whole, back, &request);
	OK(ncmpi_wait_all, file, 1, &request, NULL);
	FAILS(NC_EPERM, ncmpi_put_vara_float_all, file, variable, start, whole, back);
	FAILS(NC_ENOTINDEP, ncmpi_get_vara_float, file, variable, start, whole, back);
	OK(ncmpi_close, file);
}

/* The lists alone, before any other call had the dimensions. */
static void lists_unasked(void)
{
	int file, variable;
	float back[MOST];
	OK(ncmpi_open, MPI_COMM_WORLD, in_dir("five.nc"), NC_WRITE, MPI_INFO_NULL, &file);
	OK(ncmpi_inq_varid, file, "second", &variable);
	MOVE(OWN * 4, ncmpi_get_varn_float_all, file, variable, 2, boxes, records, back);
	MOVE(OWN * 4, ncmpi_put_varn_float_all, file, variable, 2, boxes, records, back);
	OK(ncmpi_close, file);
}

static void two(void)
{
	int file, variables[5], request;
	double data[OWN] = {0};
	OK(ncmpi_create, MPI_COMM_WORLD, in_dir("two.nc"), NC_CLOBBER | NC_64BIT_OFFSET, MPI_INFO_NULL, &file);
	define(file, variables);
	OK(ncmpi_enddef, file);
	MOVE(OWN * 8, ncmpi_put_vara_double_all, file, variables[0], start, whole, data);
	/* Never waited for: closing cancels it, and returns that. */
	tally("cancelled", "ncmpi_iput_vara_double", 1);
	OK(ncmpi_iput_vara_double, file, variables[0], start, whole, data, &request);
	FAILS(NC_EPENDING, ncmpi_close, file);
	if (rank == 0)
		OK(ncmpi_delete, in_dir("two.nc"), MPI_INFO_NULL);
}

static void report(void)
{
	static char text[131072];
	char name[64];
	const char *groups[] = {"pnetcdf", "bytes", "errors", "cancelled"};
	snprintf(text, sizeof(text), "{\"pid\":%d", (int)getpid());
	for (int i = 0; i < 4; i++) {
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
	CHECK(argc == 2 && ranks <= 8);
	dir = argv[1];
	start[1] = second[1] = rank;
	second[0] = 1;
	starts[0] = starts[1] = start;
	wholes[0] = wholes[1] = whole;
	for (int i = 0; i < 6; i++) {
		queue[i][0] = 2 * i;
		queue[i][1] = rank;
		at[i] = queue[i];
	}
	five();
	read_unasked();
	lists_unasked();
	two();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	report();
	return 0;
}
