/*
 * `chunks MODE FILE`: HDF5 without MPI.
 *
 * MODE: `make`: writes a dataset of compressed chunks; `rows`, `rows-cached`: reads it by 16 rows, with the chunk cache as it is
 * and with one that a row of chunks fits into; `attribute`, `attribute-once`: writes an attribute 20000 times, once;
 * `flushed`, `flushed-once`: appends, and flushes after each row, in the end; `converted`, `native`: writes
 * doubles as floats of the other byte order, as doubles; `filled`, `unfilled`: writes a dataset that is filled first, or not.
 */
#include <hdf5.h>

#include "case.h"

enum {
	ROWS = 1024,
	COLUMNS = 1024,
	CHUNK_ROWS = 512,
	READ_ROWS = 16,
	ATTRIBUTES = 20000,
	FLUSHES = 10000,
	/* Bytes of a row, and rows. */
	LARGE = 1 << 20,
	CONVERTED = 64,
	FILLED = 96
};

static hid_t id(hid_t result)
{
	must(result >= 0, "HDF5");
	return result;
}

static void done(herr_t result)
{
	must(result >= 0, "HDF5");
}

static hid_t created(const char *path)
{
	return id(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
}

static void make(const char *path)
{
	hsize_t dims[] = {ROWS, COLUMNS}, chunk[] = {CHUNK_ROWS, COLUMNS};
	hid_t file = created(path), space = id(H5Screate_simple(2, dims, NULL)),
	      how = id(H5Pcreate(H5P_DATASET_CREATE));
	int *data = memory((size_t)ROWS * COLUMNS * sizeof(*data));
	hid_t set;

	for (long i = 0; i < (long)ROWS * COLUMNS; i++)
		data[i] = i * i / 1000;
	done(H5Pset_chunk(how, 2, chunk));
	done(H5Pset_deflate(how, 4));
	set = id(H5Dcreate2(file, "field", H5T_NATIVE_INT, space, H5P_DEFAULT, how, H5P_DEFAULT));
	done(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
	done(H5Dclose(set));
	done(H5Pclose(how));
	done(H5Sclose(space));
	done(H5Fclose(file));
	free(data);
}

static void read_rows(const char *path, bool cached)
{
	hsize_t start[] = {0, 0}, count[] = {READ_ROWS, COLUMNS};
	hid_t file = id(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT)), how = id(H5Pcreate(H5P_DATASET_ACCESS));
	hid_t set, space, rows = id(H5Screate_simple(2, count, NULL));
	int *data = memory((size_t)READ_ROWS * COLUMNS * sizeof(*data));

	if (cached)
		done(H5Pset_chunk_cache(how, 521, (size_t)4 * CHUNK_ROWS * COLUMNS * sizeof(*data), 0.75));
	set = id(H5Dopen2(file, "field", how));
	space = id(H5Dget_space(set));
	for (; start[0] < ROWS; start[0] += READ_ROWS) {
		done(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
		done(H5Dread(set, H5T_NATIVE_INT, rows, space, H5P_DEFAULT, data));
	}
	done(H5Sclose(rows));
	done(H5Sclose(space));
	done(H5Dclose(set));
	done(H5Pclose(how));
	done(H5Fclose(file));
	free(data);
}

static void attribute(const char *path, int times)
{
	hid_t file = created(path), space = id(H5Screate(H5S_SCALAR));

	for (int i = 0; i < times; i++) {
		hid_t attribute;

		if (i > 0)
			done(H5Adelete(file, "step"));
		attribute = id(H5Acreate2(file, "step", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT));
		done(H5Awrite(attribute, H5T_NATIVE_INT, &i));
		done(H5Aclose(attribute));
		done(H5Fflush(file, H5F_SCOPE_LOCAL));
	}
	done(H5Sclose(space));
	done(H5Fclose(file));
}

static void append(const char *path, bool flushed)
{
	hsize_t none[] = {0, COLUMNS}, most[] = {H5S_UNLIMITED, COLUMNS}, chunk[] = {64, COLUMNS}, row[] = {1, COLUMNS};
	hid_t file = created(path), space = id(H5Screate_simple(2, none, most)),
	      how = id(H5Pcreate(H5P_DATASET_CREATE));
	hid_t one = id(H5Screate_simple(2, row, NULL)), set;
	int data[COLUMNS] = {};

	done(H5Pset_chunk(how, 2, chunk));
	set = id(H5Dcreate2(file, "log", H5T_NATIVE_INT, space, H5P_DEFAULT, how, H5P_DEFAULT));
	done(H5Sclose(space));
	for (hsize_t i = 0; i < FLUSHES; i++) {
		hsize_t size[] = {i + 1, COLUMNS}, start[] = {i, 0};

		done(H5Dset_extent(set, size));
		space = id(H5Dget_space(set));
		done(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, row, NULL));
		done(H5Dwrite(set, H5T_NATIVE_INT, one, space, H5P_DEFAULT, data));
		done(H5Sclose(space));
		if (flushed)
			done(H5Fflush(file, H5F_SCOPE_LOCAL));
	}
	done(H5Sclose(one));
	done(H5Dclose(set));
	done(H5Pclose(how));
	done(H5Fclose(file));
}

static void write_large(const char *path, hid_t type, hid_t how, hsize_t rows)
{
	hsize_t dims[] = {rows, LARGE / sizeof(double)}, start[] = {0, 0}, row[] = {1, dims[1]};
	hid_t file = created(path), space = id(H5Screate_simple(2, dims, NULL)),
	      one = id(H5Screate_simple(2, row, NULL));
	double *data = memory(LARGE);
	hid_t set;

	for (hsize_t i = 0; i < row[1]; i++)
		data[i] = i;
	set = id(H5Dcreate2(file, "field", type, space, H5P_DEFAULT, how, H5P_DEFAULT));
	for (; start[0] < rows; start[0]++) {
		done(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, row, NULL));
		done(H5Dwrite(set, H5T_NATIVE_DOUBLE, one, space, H5P_DEFAULT, data));
	}
	done(H5Dclose(set));
	done(H5Sclose(one));
	done(H5Sclose(space));
	done(H5Fclose(file));
	free(data);
}

static void filled(const char *path, bool fill)
{
	hid_t how = id(H5Pcreate(H5P_DATASET_CREATE));
	double value = -1;

	done(H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY));
	done(H5Pset_fill_value(how, H5T_NATIVE_DOUBLE, &value));
	done(H5Pset_fill_time(how, fill ? H5D_FILL_TIME_ALLOC : H5D_FILL_TIME_NEVER));
	write_large(path, H5T_NATIVE_DOUBLE, how, FILLED);
	done(H5Pclose(how));
}

int main(int argc, char **argv)
{
	const char *mode, *path;

	must(argc == 3, "chunks MODE FILE");
	mode = argv[1];
	path = argv[2];
	if (is(mode, "make"))
		make(path);
	else if (is(mode, "rows") || is(mode, "rows-cached"))
		read_rows(path, is(mode, "rows-cached"));
	else if (is(mode, "attribute") || is(mode, "attribute-once"))
		attribute(path, is(mode, "attribute") ? ATTRIBUTES : 1);
	else if (is(mode, "flushed") || is(mode, "flushed-once"))
		append(path, is(mode, "flushed"));
	else if (is(mode, "converted") || is(mode, "native"))
		write_large(path, is(mode, "native") ? H5T_NATIVE_DOUBLE : H5T_IEEE_F32BE, H5P_DEFAULT, CONVERTED);
	else
		filled(path, is(mode, "filled"));
	return 0;
}
