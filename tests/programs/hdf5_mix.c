/*
 * Moves data through HDF5 in every way, with or without MPI: `hdf5_mix DIR`, `mpirun -np 4 hdf5_mix_mpi DIR`. Each process
 * reports in DIR/truth.RANK.json what it called, how many bytes it moved of which object, which transfers were
 * collective, and how large an element is. `hdf5_mix DIR before` makes the file of another time that it opens then.
 */
#include <fcntl.h>
#include <hdf5.h>

#include "truth.h"

#define HDF5(f, ...)                                                                                                   \
	({                                                                                                             \
		long long r_ = COUNT("hdf5", f, __VA_ARGS__);                                                          \
		CHECK(r_ >= 0);                                                                                        \
		r_;                                                                                                    \
	})

enum {
	ROWS = 8,
	COLUMNS = 16,
	POINTS = 5
};

struct record {
	int number;
	double position[3];
	char name[5];
};

static int rank, ranks = 1;
static char path[4096];
static double buffer[4 * 64 * COLUMNS];

#ifdef H5_HAVE_PARALLEL
#include <mpi.h>
static void begin(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}
static hid_t access_list(void)
{
	hid_t list = HDF5(H5Pcreate, H5P_FILE_ACCESS);
	HDF5(H5Pset_fapl_mpio, list, MPI_COMM_WORLD, MPI_INFO_NULL);
	HDF5(H5Pset_all_coll_metadata_ops, list, 1);
	HDF5(H5Pset_coll_metadata_write, list, 1);
	return list;
}
static hid_t transfer(int collective)
{
	hid_t list = HDF5(H5Pcreate, H5P_DATASET_XFER), copy;
	HDF5(H5Pset_dxpl_mpio, list, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
	HDF5(H5Pset_dxpl_mpio_chunk_opt, list, H5FD_MPIO_CHUNK_DEFAULT);
	HDF5(H5Pset_dxpl_mpio_chunk_opt_num, list, 8);
	HDF5(H5Pset_dxpl_mpio_chunk_opt_ratio, list, 50);
	HDF5(H5Pset_dxpl_mpio_collective_opt, list, H5FD_MPIO_COLLECTIVE_IO);
	copy = HDF5(H5Pcopy, list);
	HDF5(H5Pclose, list);
	return copy;
}
static void asked(hid_t group, hid_t list)
{
	hid_t file = HDF5(H5Iget_file_id, group);
	H5D_mpio_actual_io_mode_t mode;
	H5D_mpio_actual_chunk_opt_mode_t chunks;
	uint32_t local, global;
	HDF5(H5Pget_mpio_actual_io_mode, list, &mode);
	HDF5(H5Pget_mpio_actual_chunk_opt_mode, list, &chunks);
	HDF5(H5Pget_mpio_no_collective_cause, list, &local, &global);
	HDF5(H5Fset_mpi_atomicity, file, 0);
	HDF5(H5Fclose, file);
}
static void together(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}
static void end(void)
{
	MPI_Finalize();
}
#else
static void begin(int *argc, char ***argv)
{
	(void)argc, (void)argv;
}
static hid_t access_list(void)
{
	return HDF5(H5Pcreate, H5P_FILE_ACCESS);
}
static hid_t transfer(int collective)
{
	(void)collective;
	return HDF5(H5Pcreate, H5P_DATASET_XFER);
}
static void asked(hid_t group, hid_t list)
{
	(void)group, (void)list;
}
static void together(void)
{
}
static void end(void)
{
}
#endif

/* Property lists for transfers: independent and collective. */
static hid_t lists[2];

static void wrote(hid_t dataset, const char *name, hid_t type, hid_t memory, hid_t space, int collective, long bytes)
{
	HDF5(H5Dwrite, dataset, type, memory, space, lists[collective], buffer);
	tally("written", name, bytes);
	tally("collective", "H5Dwrite", collective && ranks > 1);
}

static void has_read(hid_t dataset, const char *name, hid_t type, hid_t memory, hid_t space, int collective, long bytes)
{
	HDF5(H5Dread, dataset, type, memory, space, lists[collective], buffer);
	tally("read", name, bytes);
	tally("collective", "H5Dread", collective && ranks > 1);
}

/* Makes a dataset and returns the size of its elements. */
static hid_t make(hid_t where, const char *full, hid_t type, hid_t space, hid_t list)
{
	const char *name = strrchr(full, '/') + 1;
	hid_t dataset = HDF5(H5Dcreate2, where, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
	hid_t stored = H5Dget_type(dataset);
	tally("hdf5", "H5Dget_type", 1);
	/* What has no fixed length lies elsewhere; an element has its place: length, address, number (format, III.B). */
	tally("size", full, H5Tis_variable_str(stored) ? 4 + 8 + 4 : (long)H5Tget_size(stored));
	HDF5(H5Tclose, stored);
	return dataset;
}

/* The band of rows of a rank. */
static hid_t band(hid_t space, int of_rank, hid_t *memory)
{
	hsize_t start[2] = {(hsize_t)of_rank * ROWS, 0}, count[2] = {ROWS, COLUMNS};
	HDF5(H5Sselect_hyperslab, space, H5S_SELECT_SET, start, NULL, count, NULL);
	*memory = HDF5(H5Screate_simple, 2, count, NULL);
	return space;
}

static void plain(hid_t group)
{
	const char *name = "/run/plain";
	hsize_t size[2] = {(hsize_t)ROWS * (hsize_t)ranks, COLUMNS};
	hid_t space = HDF5(H5Screate_simple, 2, size, NULL), memory;
	hid_t dataset = make(group, name, H5T_STD_I32LE, space, H5P_DEFAULT);
	band(space, rank, &memory);
	for (int collective = 0; collective < 2; collective++)
		wrote(dataset, name, H5T_NATIVE_DOUBLE, memory, space, collective, ROWS * COLUMNS * 8);
	HDF5(H5Sclose, memory);
	band(space, (rank + 1) % ranks, &memory);
	has_read(dataset, name, H5T_NATIVE_SHORT, memory, space, 0, ROWS * COLUMNS * 2);
	has_read(dataset, name, H5T_NATIVE_SCHAR, memory, space, 1, ROWS * COLUMNS);
	/* Nothing is selected, in memory and in the file. */
	HDF5(H5Sselect_none, memory);
	HDF5(H5Sselect_none, space);
	wrote(dataset, name, H5T_NATIVE_DOUBLE, memory, space, 0, 0);
	HDF5(H5Sclose, memory);
	HDF5(H5Sclose, space);

	hsize_t points[POINTS][2];
	for (int i = 0; i < POINTS; i++)
		points[i][0] = (hsize_t)(rank * ROWS), points[i][1] = (hsize_t)i * 3;
	space = HDF5(H5Dget_space, dataset);
	HDF5(H5Sselect_elements, space, H5S_SELECT_SET, POINTS, points[0]);
	hsize_t few = POINTS;
	memory = HDF5(H5Screate_simple, 1, &few, NULL);
	wrote(dataset, name, H5T_NATIVE_LLONG, memory, space, 0, POINTS * 8);
	HDF5(H5Sclose, memory);
	HDF5(H5Sclose, space);
	HDF5(H5Dclose, dataset);
}

static void chunked(hid_t group)
{
	const char *name = "/run/chunked";
	hsize_t size[2] = {(hsize_t)ROWS * (hsize_t)ranks, COLUMNS}, most[2] = {H5S_UNLIMITED, COLUMNS},
		chunk[2] = {4, 8};
	hid_t list = HDF5(H5Pcreate, H5P_DATASET_CREATE), copy;
	HDF5(H5Pset_chunk, list, 2, chunk);
	HDF5(H5Pset_shuffle, list);
	HDF5(H5Pset_fletcher32, list);
	HDF5(H5Pset_deflate, list, 6);
	copy = HDF5(H5Pcopy, list);
	HDF5(H5Premove_filter, copy, H5Z_FILTER_FLETCHER32);
	HDF5(H5Pclose, list);
	hid_t space = HDF5(H5Screate_simple, 2, size, most), memory;
	hid_t dataset = make(group, name, H5T_IEEE_F64LE, space, copy);
	band(space, rank, &memory);
	wrote(dataset, name, H5T_NATIVE_DOUBLE, memory, space, 1, ROWS * COLUMNS * 8);
	has_read(dataset, name, H5T_NATIVE_DOUBLE, memory, space, 0, ROWS * COLUMNS * 8);
	asked(group, lists[1]);
	size[0] *= 2;
	HDF5(H5Dset_extent, dataset, size);
	HDF5(H5Sclose, memory);
	HDF5(H5Sclose, space);
	HDF5(H5Pclose, copy);
	HDF5(H5Dclose, dataset);

	/* All chunks are made and filled when the dataset is made, with a value of another type. */
	name = "/run/early";
	double fill = 7.5;
	list = HDF5(H5Pcreate, H5P_DATASET_CREATE);
	HDF5(H5Pset_chunk, list, 2, chunk);
	HDF5(H5Pset_alloc_time, list, H5D_ALLOC_TIME_EARLY);
	HDF5(H5Pset_fill_time, list, H5D_FILL_TIME_ALLOC);
	HDF5(H5Pset_fill_value, list, H5T_NATIVE_DOUBLE, &fill);
	space = HDF5(H5Screate_simple, 2, size, NULL);
	dataset = make(group, name, H5T_STD_I16BE, space, list);
	has_read(dataset, name, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, 0, (long)(size[0] * size[1]) * 4);
	HDF5(H5Dclose, dataset);
	HDF5(H5Sclose, space);
	HDF5(H5Pclose, list);
}

static void records(hid_t group)
{
	const char *name = "/run/record";
	hsize_t three = 3, few = (hsize_t)ranks, at = (hsize_t)rank, one = 1;
	hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct record)),
	      array = H5Tarray_create2(H5T_NATIVE_DOUBLE, 1, &three);
	hid_t text = H5Tcopy(H5T_C_S1);
	CHECK(H5Tset_size(text, 5) >= 0 &&
	      H5Tinsert(type, "number", HOFFSET(struct record, number), H5T_NATIVE_INT) >= 0);
	CHECK(H5Tinsert(type, "position", HOFFSET(struct record, position), array) >= 0);
	CHECK(H5Tinsert(type, "name", HOFFSET(struct record, name), text) >= 0);
	hid_t packed = H5Tcopy(type);
	CHECK(packed >= 0 && H5Tpack(packed) >= 0);
	hid_t space = HDF5(H5Screate_simple, 1, &few, NULL), memory = HDF5(H5Screate_simple, 1, &one, NULL);
	hid_t dataset = make(group, name, packed, space, H5P_DEFAULT);
	HDF5(H5Sselect_hyperslab, space, H5S_SELECT_SET, &at, NULL, &one, NULL);
	wrote(dataset, name, type, memory, space, 0, sizeof(struct record));
	/* One member of it. */
	hid_t part = H5Tcreate(H5T_COMPOUND, 4);
	CHECK(part >= 0 && H5Tinsert(part, "number", 0, H5T_NATIVE_INT) >= 0);
	has_read(dataset, name, part, memory, space, 0, 4);
	hid_t types[] = {part, packed, text, array, type};
	for (int i = 0; i < 5; i++)
		HDF5(H5Tclose, types[i]);
	HDF5(H5Sclose, memory);
	HDF5(H5Sclose, space);
	HDF5(H5Dclose, dataset);

	name = "/run/scalar";
	space = HDF5(H5Screate, H5S_SCALAR);
	dataset = make(group, name, H5T_NATIVE_LDOUBLE, space, H5P_DEFAULT);
	if (rank == 0)
		wrote(dataset, name, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, 0, 4);
	HDF5(H5Dclose, dataset);
	HDF5(H5Sclose, space);
	space = HDF5(H5Screate, H5S_NULL);
	HDF5(H5Dclose, make(group, "/run/nothing", H5T_NATIVE_INT, space, H5P_DEFAULT));
	HDF5(H5Sclose, space);
}

/* One name, two datasets. */
static void again(hid_t group)
{
	for (hsize_t n = 3; n <= 5; n += 2) {
		hid_t space = HDF5(H5Screate_simple, 1, &n, NULL);
		hid_t dataset = HDF5(H5Dcreate2, group, "again", n == 3 ? H5T_STD_I8LE : H5T_STD_I64LE, space,
				     H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		if (rank == 0)
			wrote(dataset, "/run/again", H5T_NATIVE_INT, H5S_ALL, H5S_ALL, 0, (long)n * 4);
		HDF5(H5Dclose, dataset);
		HDF5(H5Sclose, space);
		if (n == 3)
			HDF5(H5Ldelete, group, "again", H5P_DEFAULT);
		together();
	}
	tally("size", "/run/again", 8);
}

static void attributes(hid_t group)
{
	hsize_t size[2] = {2, 3};
	hid_t space = HDF5(H5Screate_simple, 2, size, NULL);
	hid_t attribute = HDF5(H5Acreate2, group, "table", H5T_STD_I16LE, space, H5P_DEFAULT, H5P_DEFAULT);
	HDF5(H5Awrite, attribute, H5T_NATIVE_DOUBLE, buffer);
	tally("written", "/run/table", 6 * 8);
	HDF5(H5Aread, attribute, H5T_NATIVE_INT, buffer);
	tally("read", "/run/table", 6 * 4);
	HDF5(H5Aclose, attribute);
	attribute = HDF5(H5Acreate_by_name, group, "plain", "units", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT,
			 H5P_DEFAULT);
	HDF5(H5Awrite, attribute, H5T_NATIVE_CHAR, buffer);
	tally("written", "/run/plain/units", 6);
	HDF5(H5Aclose, attribute);
	HDF5(H5Sclose, space);
	tally("size", "/run/table", 2);
	tally("size", "/run/plain/units", 8);
}

/* What parallel HDF5 cannot do, or not everywhere. */
static void alone(hid_t group)
{
	const char *name = "/run/text";
	hsize_t two = 2, six = 6, size[2] = {ROWS, COLUMNS}, chunk[2] = {2, 4}, offset[2] = {2, 4};
	hid_t text = H5Tcopy(H5T_C_S1), numbers = H5Tvlen_create(H5T_NATIVE_INT);
	CHECK(H5Tset_size(text, H5T_VARIABLE) >= 0);
	hid_t space = HDF5(H5Screate_simple, 1, &two, NULL);
	hid_t dataset = make(group, name, text, space, H5P_DEFAULT);
	char *words[2] = {"one", "seventeen"};
	HDF5(H5Dwrite, dataset, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, words);
	tally("written", name, 2 * sizeof(char *));
	HDF5(H5Dclose, dataset);
	name = "/run/lists";
	dataset = make(group, name, numbers, space, H5P_DEFAULT);
	hvl_t both[2] = {{3, buffer}, {5, buffer}};
	HDF5(H5Dwrite, dataset, numbers, H5S_ALL, H5S_ALL, H5P_DEFAULT, both);
	tally("written", name, 2 * sizeof(hvl_t));
	HDF5(H5Dclose, dataset);
	HDF5(H5Tclose, text);
	HDF5(H5Tclose, numbers);
	HDF5(H5Sclose, space);

	name = "/run/compact";
	hid_t list = HDF5(H5Pcreate, H5P_DATASET_CREATE);
	HDF5(H5Pset_layout, list, H5D_COMPACT);
	space = HDF5(H5Screate_simple, 1, &six, NULL);
	dataset = make(group, name, H5T_IEEE_F32LE, space, list);
	wrote(dataset, name, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, 0, 6 * 8);
	HDF5(H5Dclose, dataset);
	HDF5(H5Pclose, list);

	name = "/run/outside";
	list = HDF5(H5Pcreate, H5P_DATASET_CREATE);
	HDF5(H5Pset_external, list, "outside.raw", 0, 6 * 4);
	dataset = make(group, name, H5T_STD_I32LE, space, list);
	HDF5(H5Dclose, dataset);
	HDF5(H5Pclose, list);

	name = "/run/virtual";
	list = HDF5(H5Pcreate, H5P_DATASET_CREATE);
	hid_t whole = HDF5(H5Screate_simple, 2, size, NULL);
	HDF5(H5Pset_virtual, list, whole, ".", "/run/plain", whole);
	dataset = make(group, name, H5T_STD_I32LE, whole, list);
	has_read(dataset, name, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, 0, ROWS * COLUMNS * 4);
	HDF5(H5Dclose, dataset);
	HDF5(H5Pclose, list);

	name = "/run/raw";
	list = HDF5(H5Pcreate, H5P_DATASET_CREATE);
	HDF5(H5Pset_chunk, list, 2, chunk);
	unsigned level = 2;
	HDF5(H5Pset_filter, list, H5Z_FILTER_DEFLATE, H5Z_FLAG_OPTIONAL, 1, &level);
	HDF5(H5Pset_scaleoffset, list, H5Z_SO_INT, 0);
	dataset = make(group, name, H5T_STD_I32LE, whole, list);
	HDF5(H5Dwrite_chunk, dataset, H5P_DEFAULT, 3, offset, 2 * 4 * 4, buffer);
	tally("written", name, 2 * 4 * 4);
	uint32_t filters;
	HDF5(H5Dread_chunk, dataset, H5P_DEFAULT, offset, &filters, buffer);
	tally("read", name, 2 * 4 * 4);
	HDF5(H5Dclose, dataset);
	HDF5(H5Pclose, list);
	HDF5(H5Sclose, whole);
	HDF5(H5Sclose, space);

	/* Made without a name. */
	space = HDF5(H5Screate_simple, 1, &six, NULL);
	dataset = HDF5(H5Dcreate_anon, group, H5T_STD_I16LE, space, H5P_DEFAULT, H5P_DEFAULT);
	HDF5(H5Olink, dataset, group, "late", H5P_DEFAULT, H5P_DEFAULT);
	tally("size", "/run/late", 2);
	wrote(dataset, "/run/late", H5T_NATIVE_INT, H5S_ALL, H5S_ALL, 0, 6 * 4);
	HDF5(H5Dclose, dataset);
	HDF5(H5Sclose, space);
}

/* A file that was there before: /asked, which the program asks about, and /unasked. */
static void before(const char *dir)
{
	hsize_t size[2] = {ROWS, COLUMNS}, chunk[2] = {4, 4};
	snprintf(path, sizeof(path), "%s/before.h5", dir);
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), list = H5Pcreate(H5P_DATASET_CREATE);
	hid_t space = H5Screate_simple(2, size, NULL);
	CHECK(H5Pset_chunk(list, 2, chunk) >= 0 && H5Pset_nbit(list) >= 0 && H5Pset_deflate(list, 9) >= 0);
	const char *names[2] = {"asked", "unasked"};
	for (int i = 0; i < 2; i++) {
		hid_t dataset = H5Dcreate2(file, names[i], H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
		hid_t attribute = H5Acreate2(dataset, "a", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT);
		CHECK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer) >= 0);
		CHECK(H5Aclose(attribute) >= 0 && H5Dclose(dataset) >= 0);
	}
	hid_t plain = H5Dcreate2(file, "plain", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(H5Dclose(plain) >= 0 && H5Sclose(space) >= 0 && H5Pclose(list) >= 0 && H5Fclose(file) >= 0);
}

static void after(const char *dir, hid_t access)
{
	snprintf(path, sizeof(path), "%s/before.h5", dir);
	hid_t file = HDF5(H5Fopen, path, H5F_ACC_RDONLY, access);
	hid_t dataset = HDF5(H5Dopen2, file, "asked", H5P_DEFAULT), list = HDF5(H5Dget_create_plist, dataset);
	hsize_t dims[2];
	CHECK(HDF5(H5Pget_chunk, list, 2, dims) == 2);
	int filters = (int)HDF5(H5Pget_nfilters, list);
	for (unsigned i = 0; (int)i < filters; i++) {
		unsigned flags, values[8], config;
		size_t n = 8;
		HDF5(H5Pget_filter2, list, i, &flags, &n, values, 0, NULL, &config);
	}
	has_read(dataset, "/asked", H5T_NATIVE_CHAR, H5S_ALL, H5S_ALL, 0, ROWS * COLUMNS);
	hid_t attribute = HDF5(H5Aopen, dataset, "a", H5P_DEFAULT), space = HDF5(H5Aget_space, attribute);
	CHECK(HDF5(H5Sget_simple_extent_dims, space, dims, NULL) == 2);
	HDF5(H5Sclose, space);
	HDF5(H5Aread, attribute, H5T_NATIVE_INT, buffer);
	tally("read", "/asked/a", ROWS * COLUMNS * 4);
	HDF5(H5Aclose, attribute);
	HDF5(H5Pclose, list);
	HDF5(H5Dclose, dataset);
	dataset = HDF5(H5Oopen, file, "unasked", H5P_DEFAULT);
	has_read(dataset, "/unasked", H5T_NATIVE_INT, H5S_ALL, H5S_ALL, 0, ROWS * COLUMNS * 4);
	HDF5(H5Oclose, dataset);
	dataset = HDF5(H5Dopen2, file, "plain", H5P_DEFAULT);
	has_read(dataset, "/plain", H5T_NATIVE_SHORT, H5S_ALL, H5S_ALL, 0, ROWS * COLUMNS * 2);
	HDF5(H5Dclose, dataset);
	const char *names[] = {"/asked", "/unasked", "/plain", "/asked/a"};
	for (int i = 0; i < 4; i++)
		tally("size", names[i], 4);

	/* Two references to a handle: the first close does not end it. */
	CHECK(HDF5(H5Iinc_ref, file) == 2);
	CHECK(HDF5(H5Fclose, file) >= 0);
	HDF5(H5Fflush, file, H5F_SCOPE_LOCAL);
	CHECK(HDF5(H5Idec_ref, file) == 0);
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	CHECK(argc >= 2);
	if (argc > 2) {
		before(argv[1]);
		end();
		return 0;
	}
	CHECK(ranks * ROWS * 2 * COLUMNS <= (int)(sizeof(buffer) / sizeof(buffer[0])));
	hid_t access = access_list();
	lists[0] = transfer(0);
	lists[1] = transfer(1);
	snprintf(path, sizeof(path), "%s/mix.h5", argv[1]);
	hid_t file = HDF5(H5Fcreate, path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
	hid_t group = HDF5(H5Gcreate2, file, "run", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	plain(group);
	chunked(group);
	records(group);
	again(group);
	attributes(group);
	if (ranks == 1)
		alone(group);
	HDF5(H5Gclose, group);
	HDF5(H5Fclose, file);
	after(argv[1], access);
	HDF5(H5Pclose, access);
	HDF5(H5Pclose, lists[0]);
	HDF5(H5Pclose, lists[1]);

	static char text[65536];
	static const char *const groups[] = {"hdf5", "read", "written", "collective", "size"};
	unsigned version[3];
	CHECK(H5get_libversion(&version[0], &version[1], &version[2]) >= 0);
	snprintf(text, sizeof(text), "{\"pid\":%d,\"version\":\"%u.%u.%u\"", getpid(), version[0], version[1],
		 version[2]);
	for (int i = 0; i < 5; i++) {
		size_t at = strlen(text);
		snprintf(text + at, sizeof(text) - at, ",\"%s\":", groups[i]);
		truth_calls(text, sizeof(text), groups[i]);
	}
	strcat(text, "}\n");
	snprintf(path, sizeof(path), "%s/truth.%d.json", argv[1], rank);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && truth_write(fd, text) == 0 && close(fd) == 0);
	end();
	return 0;
}
