/*
 * Every way to move data with NetCDF-C, in one process: `netcdf_mix DIR`.
 *
 * Writes DIR/classic.nc, offset.nc, data.nc and four.nc (the four formats) with every function that writes, reads them back with
 * every function that reads, then reads them again without asking for anything but the ids of variables. Prints on stdout
 * what it called and how many bytes of its memory each function was to move.
 */
#include <errno.h>
#include <netcdf.h>
#include <netcdf_filter.h>
#include <netcdf_mem.h>

#include "truth.h"

/* Exported, for the interface of NetCDF 2; in no header. */
extern int nc_put_rec(int ncid, size_t record, void *const *data);
extern int nc_get_rec(int ncid, size_t record, void **data);

#define NC(f, ...) COUNT("netcdf", f, __VA_ARGS__)
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
	Y = 3,
	X = 4,
	RECORDS = 2,
	ALL = RECORDS * Y * X,
	RECORDS_OF_FOUR = 5,
};

static const char *dir;
static char path[4096];

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* A box of one record, of every other column, and the whole in memory order. */
static const size_t start[3] = {1, 1, 0}, count[3] = {1, 2, 3}, pair[3] = {2, 2, 2};
static const ptrdiff_t step[3] = {1, 2, 3}, map[3] = {4, 2, 1};
static const size_t zero[3] = {0, 0, 0}, whole[3] = {RECORDS, Y, X};

/* Each function of a type in memory on a variable of the file; all numbers fit into all types. */
#define WRITE_AND_READ(type, c_type)                                                                                   \
	static void all_##type(int file, int variable)                                                                 \
	{                                                                                                              \
		c_type data[ALL], back[ALL];                                                                           \
		for (int i = 0; i < ALL; i++)                                                                          \
			data[i] = (c_type)(i + 1);                                                                     \
		MOVE(sizeof(data), nc_put_vara_##type, file, variable, zero, whole, data);                             \
		MOVE(sizeof(data), nc_put_var_##type, file, variable, data);                                           \
		MOVE(sizeof(c_type), nc_put_var1_##type, file, variable, start, data + 16);                            \
		MOVE(8 * sizeof(c_type), nc_put_vars_##type, file, variable, zero, pair, step, data);                  \
		MOVE(8 * sizeof(c_type), nc_put_varm_##type, file, variable, zero, pair, step, map, data);             \
		MOVE(sizeof(data), nc_put_var_##type, file, variable, data);                                           \
		MOVE(sizeof(back), nc_get_var_##type, file, variable, back);                                           \
		CHECK(!memcmp(data, back, sizeof(data)));                                                              \
		MOVE(sizeof(c_type), nc_get_var1_##type, file, variable, start, back);                                 \
		CHECK(back[0] == data[16]);                                                                            \
		MOVE(6 * sizeof(c_type), nc_get_vara_##type, file, variable, start, count, back);                      \
		CHECK(back[5] == data[22]);                                                                            \
		MOVE(8 * sizeof(c_type), nc_get_vars_##type, file, variable, zero, pair, step, back);                  \
		CHECK(back[7] == data[23]);                                                                            \
		MOVE(8 * sizeof(c_type), nc_get_varm_##type, file, variable, zero, pair, step, map, back);             \
		CHECK(back[7] == data[23]);                                                                            \
		MOVE(3 * sizeof(c_type), nc_put_att_##type, file, variable, #type, NC_DOUBLE, 3, data);                \
		MOVE(3 * sizeof(c_type), nc_get_att_##type, file, variable, #type, back);                              \
		CHECK(back[2] == data[2]);                                                                             \
	}

WRITE_AND_READ(schar, signed char)
WRITE_AND_READ(uchar, unsigned char)
WRITE_AND_READ(ubyte, unsigned char)
WRITE_AND_READ(short, short)
WRITE_AND_READ(ushort, unsigned short)
WRITE_AND_READ(int, int)
WRITE_AND_READ(uint, unsigned int)
WRITE_AND_READ(long, long)
WRITE_AND_READ(longlong, long long)
WRITE_AND_READ(ulonglong, unsigned long long)
WRITE_AND_READ(float, float)
WRITE_AND_READ(double, double)

static void all_text(int file, int variable)
{
	char data[ALL + 1] = "abcdefghijklmnopqrstuvwx", back[ALL];
	MOVE(ALL, nc_put_vara_text, file, variable, zero, whole, data);
	MOVE(ALL, nc_put_var_text, file, variable, data);
	MOVE(1, nc_put_var1_text, file, variable, start, data + 16);
	MOVE(8, nc_put_vars_text, file, variable, zero, pair, step, data);
	MOVE(8, nc_put_varm_text, file, variable, zero, pair, step, map, data);
	MOVE(ALL, nc_get_var_text, file, variable, back);
	MOVE(1, nc_get_var1_text, file, variable, start, back);
	CHECK(back[0] == 'q');
	MOVE(6, nc_get_vara_text, file, variable, start, count, back);
	MOVE(8, nc_get_vars_text, file, variable, zero, pair, step, back);
	MOVE(8, nc_get_varm_text, file, variable, zero, pair, step, map, back);
	MOVE(5, nc_put_att_text, file, variable, "text", 5, "hello");
	MOVE(5, nc_get_att_text, file, variable, "text", back);
	CHECK(!memcmp(back, "hello", 5));
}

static void all_string(int file, int variable)
{
	const char *data[ALL], *words[3] = {"one", "two", "three"};
	char *back[ALL];
	for (int i = 0; i < ALL; i++)
		data[i] = words[i % 3];
	MOVE(sizeof(data), nc_put_vara_string, file, variable, zero, whole, data);
	MOVE(sizeof(data), nc_put_var_string, file, variable, data);
	MOVE(8, nc_put_var1_string, file, variable, start, data);
	MOVE(64, nc_put_vars_string, file, variable, zero, pair, step, data);
	MOVE(sizeof(back), nc_get_var_string, file, variable, back);
	CHECK(!strcmp(back[22], "two"));
	nc_free_string(ALL, back);
	MOVE(8, nc_get_var1_string, file, variable, start, back);
	nc_free_string(1, back);
	MOVE(48, nc_get_vara_string, file, variable, start, count, back);
	nc_free_string(6, back);
	MOVE(64, nc_get_vars_string, file, variable, zero, pair, step, back);
	nc_free_string(8, back);
	MOVE(16, nc_put_att_string, file, variable, "string", 2, data);
	MOVE(16, nc_get_att_string, file, variable, "string", back);
	nc_free_string(2, back);
}

/* The functions that take the type of the variable. */
static void all_generic(int file, int variable, int scalar)
{
	double data[ALL], back[ALL], one = 42;
	for (int i = 0; i < ALL; i++)
		data[i] = i;
	MOVE(sizeof(data), nc_put_vara, file, variable, zero, whole, data);
	MOVE(sizeof(data), nc_put_var, file, variable, data);
	MOVE(8, nc_put_var1, file, variable, start, data + 16);
	MOVE(64, nc_put_vars, file, variable, zero, pair, step, data);
	MOVE(64, nc_put_varm, file, variable, zero, pair, step, map, data);
	MOVE(sizeof(back), nc_get_var, file, variable, back);
	MOVE(8, nc_get_var1, file, variable, start, back);
	MOVE(48, nc_get_vara, file, variable, start, count, back);
	MOVE(64, nc_get_vars, file, variable, zero, pair, step, back);
	MOVE(64, nc_get_varm, file, variable, zero, pair, step, map, back);
	MOVE(24, nc_put_att, file, variable, "numbers", NC_DOUBLE, 3, data);
	MOVE(24, nc_get_att, file, variable, "numbers", back);
	/* Without counts: all there is. */
	MOVE(sizeof(back), nc_get_vara_double, file, variable, zero, NULL, back);
	/* A variable without dimensions. */
	MOVE(8, nc_put_var_double, file, scalar, &one);
	MOVE(8, nc_put_vara_double, file, scalar, zero, whole, &one);
	MOVE(8, nc_get_vara_double, file, scalar, zero, whole, &one);
	MOVE(8, nc_get_var1_double, file, scalar, zero, &one);
	CHECK(one == 42);
}

struct ids {
	int numbers, letters, scalar;
};

static struct ids define(int file)
{
	struct ids ids;
	int dims[3];
	OK(nc_def_dim, file, "time", NC_UNLIMITED, &dims[0]);
	OK(nc_def_dim, file, "y", Y, &dims[1]);
	OK(nc_def_dim, file, "x", X, &dims[2]);
	OK(nc_def_var, file, "numbers", NC_DOUBLE, 3, dims, &ids.numbers);
	OK(nc_def_var, file, "letters", NC_CHAR, 3, dims, &ids.letters);
	OK(nc_def_var, file, "scalar", NC_DOUBLE, 0, NULL, &ids.scalar);
	return ids;
}

static void data(int file, struct ids ids)
{
	all_schar(file, ids.numbers);
	all_uchar(file, ids.numbers);
	all_ubyte(file, ids.numbers);
	all_short(file, ids.numbers);
	all_ushort(file, ids.numbers);
	all_int(file, ids.numbers);
	all_uint(file, ids.numbers);
	all_long(file, ids.numbers);
	all_longlong(file, ids.numbers);
	all_ulonglong(file, ids.numbers);
	all_float(file, ids.numbers);
	all_double(file, ids.numbers);
	all_text(file, ids.letters);
	all_generic(file, ids.numbers, ids.scalar);
}

/* Attributes need space in the header of classic formats, so they are made in define mode. */
static void room(int file, struct ids ids)
{
	const char *names[] = {"schar", "uchar",    "ubyte",	 "short", "ushort", "int",    "uint",
			       "long",	"longlong", "ulonglong", "float", "double", "numbers"};
	double three[3] = {0, 0, 0};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		MOVE(24, nc_put_att_double, file, ids.numbers, names[i], NC_DOUBLE, 3, three);
	MOVE(5, nc_put_att_text, file, ids.letters, "text", 5, "-----");
	MOVE(16, nc_put_att_text, file, NC_GLOBAL, "title", 16, "netcdf_mix title");
}

/* As programs do that know their files: no call has the dimensions. */
static void read_unasked(const char *name, int records)
{
	int file, numbers, old;
	float back[8 * Y * X];
	char title[16];
	double three[3];
	OK(nc_open, in_dir(name), NC_NOWRITE, &file);
	OK(nc_inq_varid, file, "numbers", &numbers);
	MOVE(24, nc_get_vara_float, file, numbers, start, count, back);
	MOVE(32, nc_get_vars_float, file, numbers, zero, pair, step, back);
	MOVE(4, nc_get_var1_float, file, numbers, start, back);
	MOVE(records * Y * X * 4, nc_get_var_float, file, numbers, back);
	MOVE(16, nc_get_att_text, file, NC_GLOBAL, "title", title);
	MOVE(24, nc_get_att_double, file, numbers, "numbers", three);
	FAILS(NC_EINVALCOORDS, nc_get_vara_float, file, numbers, whole, count, back);
	FAILS(records == RECORDS_OF_FOUR ? NC_EHDFERR : NC_EPERM, nc_put_vara_float, file, numbers, zero, whole, back);
	FAILS(NC_ENOTVAR, nc_inq_varid, file, "nothing", &old);
	OK(nc_close, file);
}

static void classic(const char *name, int mode)
{
	int file, other, old;
	size_t chunk = 0;
	void *records[2];
	double record[Y * X] = {7};
	char letters[Y * X] = "recordrecord";
	struct ids ids;

	OK(nc_create, in_dir(name), NC_CLOBBER | mode, &file);
	OK(nc_set_fill, file, NC_NOFILL, &old);
	ids = define(file);
	room(file, ids);
	OK(nc__enddef, file, 1024, 4, 0, 4);
	data(file, ids);
	records[0] = record;
	records[1] = letters;
	MOVE(sizeof(record) + sizeof(letters), nc_put_rec, file, RECORDS, records);
	MOVE(sizeof(record) + sizeof(letters), nc_get_rec, file, 0, records);
	OK(nc_sync, file);
	OK(nc_redef, file);
	OK(nc_rename_att, file, ids.letters, "text", "word");
	OK(nc_del_att, file, ids.letters, "word");
	OK(nc_rename_var, file, ids.scalar, "single");
	OK(nc_rename_dim, file, 2, "column");
	OK(nc_enddef, file);
	OK(nc_close, file);

	/* A new file that is given up is gone. */
	OK(nc__create, in_dir("given_up.nc"), NC_CLOBBER | mode, 0, &chunk, &file);
	OK(nc_abort, file);
	CHECK(access(in_dir("given_up.nc"), F_OK));
	OK(nc_create, in_dir("copy.nc"), NC_CLOBBER | mode, &other);
	OK(nc_def_dim, other, "time", NC_UNLIMITED, &old);
	OK(nc_def_dim, other, "y", Y, &old);
	OK(nc_def_dim, other, "column", X, &old);
	OK(nc__open, in_dir(name), NC_NOWRITE, &chunk, &file);
	MOVE(16, nc_copy_att, file, NC_GLOBAL, "title", other, NC_GLOBAL);
	/* Its attributes, and then itself. */
	MOVE(13 * 24 + (RECORDS + 1) * Y * X * 8, nc_copy_var, file, ids.numbers, other);
	OK(nc_close, file);
	OK(nc_close, other);
	OK(nc_delete, in_dir("copy.nc"));
}

struct point {
	int id;
	double at[2];
};

static void own_types(int file)
{
	struct point points[X], back[X];
	signed char moods[X] = {0, 1, 1, 0}, happy = 1, sad = 0;
	char opaque[X][5];
	int compound, list, mood, bytes, dim, dims[1] = {2}, id[4];
	nc_vlen_t lists[X], lists_back[X];
	int numbers[3] = {1, 2, 3};
	size_t from = 0, n = X;

	OK(nc_def_compound, file, sizeof(struct point), "point", &compound);
	OK(nc_insert_compound, file, compound, "id", NC_COMPOUND_OFFSET(struct point, id), NC_INT);
	OK(nc_insert_array_compound, file, compound, "at", NC_COMPOUND_OFFSET(struct point, at), NC_DOUBLE, 1, dims);
	OK(nc_def_vlen, file, "list", NC_INT, &list);
	OK(nc_def_enum, file, NC_BYTE, "mood", &mood);
	OK(nc_insert_enum, file, mood, "sad", &sad);
	OK(nc_insert_enum, file, mood, "happy", &happy);
	OK(nc_def_opaque, file, 5, "five", &bytes);
	OK(nc_def_dim, file, "n", X, &dim);
	OK(nc_def_var, file, "points", compound, 1, &dim, &id[0]);
	OK(nc_def_var, file, "lists", list, 1, &dim, &id[1]);
	OK(nc_def_var, file, "moods", mood, 1, &dim, &id[2]);
	OK(nc_def_var, file, "opaque", bytes, 1, &dim, &id[3]);
	for (int i = 0; i < X; i++) {
		points[i] = (struct point){i, {i, -i}};
		lists[i] = (nc_vlen_t){3, numbers};
		memset(opaque[i], 'a' + i, 5);
	}
	MOVE(sizeof(points), nc_put_var, file, id[0], points);
	MOVE(sizeof(lists), nc_put_vara, file, id[1], &from, &n, lists);
	MOVE(sizeof(moods), nc_put_var, file, id[2], moods);
	MOVE(sizeof(opaque), nc_put_var, file, id[3], opaque);
	MOVE(sizeof(back), nc_get_vara, file, id[0], &from, &n, back);
	CHECK(back[3].at[1] == -3);
	MOVE(sizeof(lists_back), nc_get_var, file, id[1], lists_back);
	CHECK(lists_back[0].len == 3);
	nc_free_vlens(X, lists_back);
	MOVE(sizeof(points), nc_put_att, file, id[0], "points", compound, X, points);
	MOVE(sizeof(back), nc_get_att, file, id[0], "points", back);
}

static void four(void)
{
	int file, group, inner, strings, packed, found, n, list[4], storage, on, level, dims[3] = {0, 1, 2};
	size_t chunks[3] = {1, Y, 2}, chunked[3], length, index[3] = {3, 0, 0}, box[3] = {2, Y, X};
	unsigned int parameters[1] = {3}, ids[4];
	float block[2 * Y * X] = {0};
	char name[NC_MAX_NAME + 1];
	struct ids own;

	OK(nc_create, in_dir("four.nc"), NC_CLOBBER | NC_NETCDF4, &file);
	own = define(file);
	OK(nc_def_var_chunking, file, own.numbers, NC_CHUNKED, chunks);
	OK(nc_def_var_deflate, file, own.numbers, 1, 1, 2);
	OK(nc_def_var_fletcher32, file, own.numbers, NC_FLETCHER32);
	OK(nc_def_var_fill, file, own.letters, NC_NOFILL, NULL);
	OK(nc_def_var_endian, file, own.scalar, NC_ENDIAN_BIG);
	room(file, own);
	OK(nc_def_var, file, "strings", NC_STRING, 3, dims, &strings);
	OK(nc_enddef, file);
	data(file, own);
	all_string(file, strings);
	own_types(file);

	OK(nc_def_grp, file, "results", &group);
	OK(nc_def_grp, group, "deep", &inner);
	OK(nc_def_var, inner, "packed", NC_SHORT, 3, dims, &packed);
	OK(nc_def_var_filter, inner, packed, 1, 1, parameters);
	MOVE(sizeof(block), nc_put_vara_float, inner, packed, index, box, block);
	MOVE(4, nc_put_att_text, inner, packed, "unit", 4, "mm/h");
	MOVE(3, nc_put_att_text, group, NC_GLOBAL, "run", 3, "one");
	OK(nc_close, file);

	OK(nc_open, in_dir("four.nc"), NC_NOWRITE, &file);
	OK(nc_inq_grps, file, &n, list);
	CHECK(n == 1);
	OK(nc_inq_grpname, list[0], name);
	CHECK(!strcmp(name, "results"));
	OK(nc_inq_grp_ncid, list[0], "deep", &inner);
	OK(nc_inq_grp_full_ncid, file, "/results/deep", &found);
	CHECK(found == inner);
	OK(nc_inq_varid, inner, "packed", &packed);
	OK(nc_inq_var_chunking, inner, packed, &storage, chunked);
	OK(nc_inq_var_deflate, inner, packed, &n, &on, &level);
	CHECK(n == 0 && on == 1 && level == 3);
	OK(nc_inq_var_filter_ids, inner, packed, &length, ids);
	OK(nc_inq_var_fletcher32, inner, packed, &on);
	/* All of it, fill values too. */
	MOVE(RECORDS_OF_FOUR * Y * X * 2, nc_get_var_short, inner, packed, (short[RECORDS_OF_FOUR * Y * X]){0});
	OK(nc_inq_var, file, own.numbers, name, &found, &n, dims, &on);
	OK(nc_inq_dimlen, file, dims[0], &length);
	CHECK(n == 3 && length == RECORDS_OF_FOUR);
	OK(nc_inq_varid, file, "points", &found);
	MOVE(sizeof(struct point), nc_get_var1, file, found, zero, (struct point[1]){{0, {0, 0}}});
	MOVE(X * sizeof(struct point), nc_get_var, file, found, (struct point[X]){{0, {0, 0}}});
	OK(nc_close, file);
}

/* A file in memory. */
static void memory(void)
{
	int file;
	NC_memio image;
	struct ids ids;
	double one = 1;
	OK(nc_create_mem, "memory.nc", 0, 4096, &file);
	ids = define(file);
	OK(nc_enddef, file);
	MOVE(8, nc_put_var1_double, file, ids.numbers, zero, &one);
	OK(nc_close_memio, file, &image);
	OK(nc_open_mem, "memory.nc", NC_NOWRITE, image.size, image.memory, &file);
	MOVE(8, nc_get_var1_double, file, 0, zero, &one);
	OK(nc_close, file);
	free(image.memory);
}

static void failures(void)
{
	int file;
	FAILS(ENOENT, nc_open, in_dir("missing.nc"), NC_NOWRITE, &file);
	FAILS(NC_EBADID, nc_close, 7 << 16);
	FAILS(NC_EBADID, nc_sync, 7 << 16);
}

int main(int argc, char **argv)
{
	static char text[65536];
	const char *groups[] = {"netcdf", "bytes", "errors"};
	CHECK(argc == 2);
	dir = argv[1];
	classic("classic.nc", 0);
	classic("offset.nc", NC_64BIT_OFFSET);
	classic("data.nc", NC_64BIT_DATA);
	four();
	memory();
	read_unasked("classic.nc", RECORDS + 1);
	read_unasked("offset.nc", RECORDS + 1);
	read_unasked("data.nc", RECORDS + 1);
	read_unasked("four.nc", RECORDS_OF_FOUR);
	failures();
	for (int i = 0; i < 3; i++) {
		size_t at = strlen(text);
		snprintf(text + at, sizeof(text) - at, "%s\"%s\":", i ? "," : "{", groups[i]);
		truth_calls(text, sizeof(text), groups[i]);
	}
	strcat(text, "}\n");
	return truth_write(1, text);
}
