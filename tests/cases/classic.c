/*
 * `classic MODE FILE`: NetCDF's classic format. `grown`, `roomy`: data, then attributes in several definitions, without and with
 * room in the header; `filled`, `unfilled`: writes a variable that is filled first, or not.
 */
#include <netcdf.h>

#include "case.h"

enum {
	LENGTH = 8 << 20,
	/* Of a variable that is filled. */
	ROWS = 16,
	DEFINITIONS = 16,
	ROOM = 1 << 20,
	TEXT = 8192
};

static void done(int result)
{
	must(result == NC_NOERR, nc_strerror(result));
}

static void put(int nc, int var, size_t rows)
{
	float *data = memory((size_t)LENGTH * sizeof(*data));

	for (long i = 0; i < LENGTH; i++)
		data[i] = i;
	for (size_t start[] = {0, 0}, row[] = {1, LENGTH}; start[0] < rows; start[0]++)
		done(nc_put_vara_float(nc, var, start, row, data));
	free(data);
}

static void redefine(int nc, bool roomy)
{
	static char text[TEXT];
	char name[32];

	memset(text, 't', TEXT);
	for (int i = 0; i < DEFINITIONS; i++) {
		snprintf(name, sizeof(name), "history-%d", i);
		done(nc_redef(nc));
		done(nc_put_att_text(nc, NC_GLOBAL, name, TEXT, text));
		done(roomy ? nc__enddef(nc, 0, 4, 0, 4) : nc_enddef(nc));
	}
}

int main(int argc, char **argv)
{
	bool roomy, fills;
	size_t rows;
	int nc, dims[2], var;

	must(argc == 3, "classic MODE FILE");
	roomy = is(argv[1], "roomy");
	fills = is(argv[1], "filled");
	rows = fills || is(argv[1], "unfilled") ? ROWS : 1;
	done(nc_create(argv[2], NC_CLOBBER | NC_64BIT_OFFSET, &nc));
	if (!fills)
		done(nc_set_fill(nc, NC_NOFILL, NULL));
	done(nc_def_dim(nc, "row", rows, &dims[0]));
	done(nc_def_dim(nc, "x", LENGTH, &dims[1]));
	done(nc_def_var(nc, "field", NC_FLOAT, 2, dims, &var));
	done(roomy ? nc__enddef(nc, ROOM, 4, 0, 4) : nc_enddef(nc));
	put(nc, var, rows);
	if (roomy || is(argv[1], "grown"))
		redefine(nc, roomy);
	done(nc_close(nc));
	return 0;
}
