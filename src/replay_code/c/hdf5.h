
/* HDF5. */
#include <hdf5.h>

static hid_t id[HANDLES];

/* A new identifier. */
static inline hid_t made(const char *call, hid_t result)
{
	if (result < 0)
		fail("%s failed", call);
	return result;
}

#undef good
#define good(call, result) (((result) < 0) ? fail("%s failed", call) : (void)0)

/* How a file is opened: -1 by this process alone, else by the ranks of a communicator. */
static inline hid_t access_by(long long number, long long set)
{
	static hid_t list[COMMUNICATORS + 1][HINT_SETS + 1];

	hid_t *one = &list[number + 1][set];

	if (*one)
		return *one;
	*one = made("H5Pcreate", H5Pcreate(H5P_FILE_ACCESS));
	if (number >= 0) {
		good("H5Pset_fapl_mpio", H5Pset_fapl_mpio(*one, communicator(number), hints(set)));
		if (COLLECTIVE_METADATA) {
			good("H5Pset_all_coll_metadata_ops", H5Pset_all_coll_metadata_ops(*one, 1));
			good("H5Pset_coll_metadata_write", H5Pset_coll_metadata_write(*one, 1));
		}
	}
	if (CHUNK_CACHE)
		good("H5Pset_cache", H5Pset_cache(*one, 0, 12421, CHUNK_CACHE, 0.75));
	return *one;
}

/* The trace has the size of elements, and not their type. */
static inline hid_t type_of(long long size)
{
	static hid_t opaque;

	switch (size) {
	case 1:
		return H5T_NATIVE_SCHAR;
	case 2:
		return H5T_NATIVE_SHORT;
	case 4:
		return H5T_NATIVE_FLOAT;
	case 8:
		return H5T_NATIVE_DOUBLE;
	}
	if (opaque)
		good("H5Tclose", H5Tclose(opaque));
	opaque = made("H5Tcreate", H5Tcreate(H5T_OPAQUE, (size_t)size));
	return opaque;
}

static inline hid_t space_of(const struct object *object)
{
	hsize_t dims[sizeof object->dim / sizeof *object->dim];

	if (!object->dims)
		return made("H5Screate", H5Screate(H5S_SCALAR));
	for (int d = 0; d < object->dims; d++)
		dims[d] = (hsize_t)object->dim[d];
	return made("H5Screate_simple", H5Screate_simple(object->dims, dims, NULL));
}

/* How a dataset is stored. */
static inline hid_t storage_of(const struct object *object)
{
	hid_t list = made("H5Pcreate", H5Pcreate(H5P_DATASET_CREATE));
	hsize_t dims[sizeof object->dim / sizeof *object->dim];

	if (NO_FILL)
		good("H5Pset_fill_time", H5Pset_fill_time(list, H5D_FILL_TIME_NEVER));
	if (!object->dims || !object->chunk[0])
		return list;
	for (int d = 0; d < object->dims; d++)
		dims[d] = (hsize_t)object->chunk[d];
	good("H5Pset_chunk", H5Pset_chunk(list, object->dims, dims));
	if (object->shuffle)
		good("H5Pset_shuffle", H5Pset_shuffle(list));
	if (object->deflate >= 0)
		good("H5Pset_deflate", H5Pset_deflate(list, (unsigned)object->deflate));
	if (object->checksum)
		good("H5Pset_fletcher32", H5Pset_fletcher32(list));
	return list;
}

/* Makes an object, with the groups around it; one of that name goes. */
static inline hid_t create(hid_t file, const struct object *object)
{
	hid_t links = made("H5Pcreate", H5Pcreate(H5P_LINK_CREATE)), space, storage, result;

	good("H5Pset_create_intermediate_group", H5Pset_create_intermediate_group(links, 1));
	if (!object->attribute && H5Lexists(file, object->path, H5P_DEFAULT) > 0)
		good("H5Ldelete", H5Ldelete(file, object->path, H5P_DEFAULT));
	if (object->group) {
		result = H5Gcreate2(file, object->path, links, H5P_DEFAULT, H5P_DEFAULT);
	} else {
		space = space_of(object);
		storage = storage_of(object);
		if (object->attribute)
			result = H5Acreate_by_name(file, *object->path ? object->path : "/", object->attribute,
						   type_of(object->size), space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		else
			result = H5Dcreate2(file, object->path, type_of(object->size), space, links, storage,
					    H5P_DEFAULT);
		good("H5Sclose", H5Sclose(space));
		good("H5Pclose", H5Pclose(storage));
	}
	good("H5Pclose", H5Pclose(links));
	return result;
}

static inline hid_t open_object(hid_t file, const struct object *object)
{
	if (object->attribute)
		return H5Aopen_by_name(file, *object->path ? object->path : "/", object->attribute, H5P_DEFAULT,
				       H5P_DEFAULT);
	return H5Oopen(file, object->path, H5P_DEFAULT);
}

/* Passes data of a block: H5Dread has a pointer that it writes to, H5Dwrite one that it does not. */
#define transfer(call, dataset, object, size, collective, start, count)                                                \
	call(dataset, type_of(size), memory_of((object)->dims, count), selected(object, start, count), by(collective), \
	     buffer)

static inline hid_t by(long long collective)
{
	static hid_t list;

	if (!collective)
		return H5P_DEFAULT;
	if (!list) {
		list = made("H5Pcreate", H5Pcreate(H5P_DATASET_XFER));
		good("H5Pset_dxpl_mpio", H5Pset_dxpl_mpio(list, H5FD_MPIO_COLLECTIVE));
	}
	return list;
}

/* As many elements in memory, one after the other. */
static inline hid_t memory_of(int dims, const hsize_t *count)
{
	static hid_t space;
	static hsize_t last;
	hsize_t elements = 1;

	for (int d = 0; d < dims; d++)
		elements *= count[d];
	if (space && last == elements)
		return space;
	if (space)
		good("H5Sclose", H5Sclose(space));
	last = elements;
	space = made("H5Screate_simple", H5Screate_simple(1, (const hsize_t[]){elements ? elements : 1}, NULL));
	if (!elements)
		good("H5Sselect_none", H5Sselect_none(space));
	return space;
}

/* The block in the file. */
static inline hid_t selected(const struct object *object, const hsize_t *start, const hsize_t *count)
{
	static hid_t spaces[OBJECT_COUNT];
	hid_t *space = &spaces[object - OBJECTS];
	int none = 0;

	if (!*space)
		*space = space_of(object);
	for (int d = 0; d < object->dims; d++)
		none |= !count[d];
	if (none)
		good("H5Sselect_none", H5Sselect_none(*space));
	else if (object->dims)
		good("H5Sselect_hyperslab", H5Sselect_hyperslab(*space, H5S_SELECT_SET, start, NULL, count, NULL));
	return *space;
}

/* Files that were there before have all objects of the table. */
static inline void make_found(long long number)
{
	hid_t file = made("H5Fcreate", H5Fcreate(path(number), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));

	for (int at = 0; at < OBJECT_COUNT; at++)
		if (OBJECTS[at].file == number) {
			hid_t object = made("create", create(file, &OBJECTS[at]));

			if (OBJECTS[at].attribute)
				good("H5Aclose", H5Aclose(object));
			else
				good("H5Oclose", H5Oclose(object));
		}
	good("H5Fclose", H5Fclose(file));
}

static inline void finish(void)
{
	(void)id;
}
