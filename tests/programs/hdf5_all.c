/*
 * Calls every function of HDF5 1.10 that does or decides I/O at least once: `hdf5_all DIR`. Calls that a build or a file
 * cannot do fail, and count as such. Prints its calls and errors by function as JSON.
 */
#include <hdf5.h>
#include <string.h>

#include "truth.h"

static long long counted(const char *name, long long result)
{
	tally("calls", name, 1);
	if (result < 0)
		tally("errors", name, 1);
	return result;
}

/* Calls a function, whatever comes of it; and one that must succeed. */
#define TRY(f, ...) counted(#f, (long long)f(__VA_ARGS__))
#define CALL(f, ...)                                                                                                   \
	({                                                                                                             \
		long long r_ = TRY(f, __VA_ARGS__);                                                                    \
		CHECK(r_ >= 0);                                                                                        \
		r_;                                                                                                    \
	})
/* A result of 0 or all ones does not mean success. */
#define ANY(f, ...) ((void)f(__VA_ARGS__), tally("calls", #f, 1))

enum {
	ROWS = 8,
	COLUMNS = 6
};

static const char *dir;
static char path[2][4096];

static const char *in(const char *name)
{
	snprintf(path[0], sizeof(path[0]), "%s/%s", dir, name);
	return path[0];
}

static const hsize_t SIZE[2] = {ROWS, COLUMNS}, CHUNK[2] = {4, 3}, ZERO[2], ONE[2] = {1, 1};
static int numbers[ROWS * 2 * COLUMNS * 2];

static herr_t each_attribute(hid_t where, const char *name, const H5A_info_t *info, void *data)
{
	(void)where, (void)name, (void)info, (void)data;
	return 0;
}

static herr_t each_attribute1(hid_t where, const char *name, void *data)
{
	(void)where, (void)name, (void)data;
	return 0;
}

static herr_t each_link(hid_t where, const char *name, const H5L_info_t *info, void *data)
{
	(void)where, (void)name, (void)info, (void)data;
	return 0;
}

static herr_t each_object(hid_t where, const char *name, const H5O_info_t *info, void *data)
{
	(void)where, (void)name, (void)info, (void)data;
	return 0;
}

static herr_t each_element(void *element, hid_t type, unsigned rank, const hsize_t *point, void *data)
{
	(void)element, (void)type, (void)rank, (void)point, (void)data;
	return 0;
}

static herr_t gathered(const void *buffer, size_t bytes, void *data)
{
	(void)buffer, (void)bytes, (void)data;
	return 0;
}

static herr_t scattered(const void **buffer, size_t *bytes, void *data)
{
	*buffer = data;
	*bytes = ROWS * COLUMNS * sizeof(int);
	return 0;
}

static herr_t appended(hid_t dataset, hsize_t *size, void *data)
{
	(void)dataset, (void)size, (void)data;
	return 0;
}

static hid_t new_list(hid_t class)
{
	return CALL(H5Pcreate, class);
}

static void close_list(hid_t list)
{
	CALL(H5Pclose, list);
}

/* Drivers, which exclude each other. */
static void drivers(void)
{
	hid_t list = new_list(H5P_FILE_ACCESS);
	CALL(H5Pset_fapl_sec2, list);
	CALL(H5Pset_fapl_core, list, 1 << 16, 0);
	CALL(H5Pset_core_write_tracking, list, 1, 4096);
	CALL(H5Pset_file_image, list, NULL, 0);
	CALL(H5Pset_fapl_stdio, list);
	CALL(H5Pset_fapl_family, list, 1 << 20, H5P_DEFAULT);
	CALL(H5Pset_family_offset, list, 0);
	CALL(H5Pset_fapl_split, list, "-m", H5P_DEFAULT, "-r", H5P_DEFAULT);
	CALL(H5Pset_fapl_multi, list, NULL, NULL, NULL, NULL, 1);
	CALL(H5Pset_multi_type, list, H5FD_MEM_DEFAULT);
	CALL(H5Pset_fapl_log, list, NULL, 0, 0);
	CALL(H5Pset_driver, list, H5FD_SEC2, NULL);
	/* These are not built in here, or need what is not there. */
	char nothing[8192] = {0};
	TRY(H5Pset_fapl_splitter, list, (H5FD_splitter_vfd_config_t *)nothing);
	TRY(H5Pset_fapl_ros3, list, (H5FD_ros3_fapl_t *)nothing);
	TRY(H5Pset_fapl_hdfs, list, (H5FD_hdfs_fapl_t *)nothing);
	close_list(list);
}

static hid_t file_lists(void)
{
	hid_t list = new_list(H5P_FILE_CREATE);
	CALL(H5Pset_userblock, list, 512);
	CALL(H5Pset_sizes, list, 8, 8);
	CALL(H5Pset_sym_k, list, 16, 4);
	CALL(H5Pset_istore_k, list, 32);
	CALL(H5Pset_shared_mesg_nindexes, list, 1);
	CALL(H5Pset_shared_mesg_index, list, 0, H5O_SHMESG_DTYPE_FLAG, 40);
	CALL(H5Pset_shared_mesg_phase_change, list, 40, 30);
	CALL(H5Pset_file_space_strategy, list, H5F_FSPACE_STRATEGY_FSM_AGGR, 0, 1);
	CALL(H5Pset_file_space, list, H5F_FILE_SPACE_ALL, 1);
	CALL(H5Pset_file_space_page_size, list, 4096);
	CALL(H5Pset_link_phase_change, list, 8, 6);
	CALL(H5Pset_link_creation_order, list, H5P_CRT_ORDER_TRACKED);
	CALL(H5Pset_est_link_info, list, 4, 8);
	CALL(H5Pset_local_heap_size_hint, list, 0);
	CALL(H5Pset_attr_phase_change, list, 8, 6);
	CALL(H5Pset_attr_creation_order, list, H5P_CRT_ORDER_TRACKED);
	CALL(H5Pset_obj_track_times, list, 0);
	close_list(list);

	list = new_list(H5P_FILE_ACCESS);
	CALL(H5Pset_alignment, list, 1 << 16, 4096);
	CALL(H5Pset_cache, list, 0, 521, 1 << 20, 0.75);
	CALL(H5Pset_fclose_degree, list, H5F_CLOSE_WEAK);
	CALL(H5Pset_evict_on_close, list, 0);
	CALL(H5Pset_file_locking, list, 0, 1);
	CALL(H5Pset_libver_bounds, list, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
	CALL(H5Pset_meta_block_size, list, 2048);
	CALL(H5Pset_metadata_read_attempts, list, 1);
	CALL(H5Pset_sieve_buf_size, list, 65536);
	CALL(H5Pset_small_data_block_size, list, 2048);
	CALL(H5Pset_elink_file_cache_size, list, 2);
	CALL(H5Pset_page_buffer_size, list, 0, 0, 0);
	H5AC_cache_config_t cache = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
	CHECK(H5Pget_mdc_config(list, &cache) >= 0);
	CALL(H5Pset_mdc_config, list, &cache);
	H5AC_cache_image_config_t image = {.version = H5AC__CURR_CACHE_IMAGE_CONFIG_VERSION};
	CHECK(H5Pget_mdc_image_config(list, &image) >= 0);
	CALL(H5Pset_mdc_image_config, list, &image);
	hid_t other = CALL(H5Pcopy, list);
	snprintf(path[1], sizeof(path[1]), "%s/cache.log", dir);
	CALL(H5Pset_mdc_log_options, other, 1, path[1], 0);
	close_list(list);
	return other;
}

static void transfer_lists(void)
{
	hid_t list = new_list(H5P_DATASET_XFER);
	CALL(H5Pset_buffer, list, 1 << 20, NULL, NULL);
	CALL(H5Pset_hyper_vector_size, list, 1024);
	CALL(H5Pset_btree_ratios, list, 0.1, 0.5, 0.9);
	CALL(H5Pset_data_transform, list, "x");
	CALL(H5Pset_edc_check, list, H5Z_DISABLE_EDC);
	size_t size = 0;
	CHECK(H5Pencode(list, NULL, &size) >= 0);
	void *text = malloc(size);
	CHECK(text && H5Pencode(list, text, &size) >= 0);
	close_list(CALL(H5Pdecode, text));
	free(text);
	close_list(list);

	list = new_list(H5P_LINK_ACCESS);
	CALL(H5Pset_elink_acc_flags, list, H5F_ACC_RDONLY);
	CALL(H5Pset_elink_fapl, list, H5P_DEFAULT);
	CALL(H5Pset_elink_prefix, list, dir);
	close_list(list);
	list = new_list(H5P_LINK_CREATE);
	CALL(H5Pset_create_intermediate_group, list, 1);
	close_list(list);
	list = new_list(H5P_OBJECT_COPY);
	CALL(H5Pset_copy_object, list, H5O_COPY_SHALLOW_HIERARCHY_FLAG);
	close_list(list);
}

/* Of datasets that are not made. */
static void dataset_lists(hid_t space)
{
	hid_t list = new_list(H5P_DATASET_CREATE);
	CALL(H5Pset_layout, list, H5D_CHUNKED);
	CALL(H5Pset_chunk, list, 2, CHUNK);
	CALL(H5Pset_chunk_opts, list, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
	CALL(H5Pset_szip, list, H5_SZIP_NN_OPTION_MASK, 4);
	CALL(H5Pset_nbit, list);
	CALL(H5Pset_scaleoffset, list, H5Z_SO_INT, 0);
	unsigned level = 5;
	CALL(H5Pset_filter, list, H5Z_FILTER_DEFLATE, H5Z_FLAG_OPTIONAL, 1, &level);
	CALL(H5Pmodify_filter, list, H5Z_FILTER_DEFLATE, H5Z_FLAG_OPTIONAL, 1, &level);
	CALL(H5Premove_filter, list, H5Z_FILTER_ALL);
	CALL(H5Pset_dset_no_attrs_hint, list, 1);
	CALL(H5Pset_alloc_time, list, H5D_ALLOC_TIME_INCR);
	close_list(list);
	list = new_list(H5P_DATASET_CREATE);
	CALL(H5Pset_external, list, "outside.raw", 0, 4096);
	close_list(list);
	list = new_list(H5P_DATASET_CREATE);
	CALL(H5Pset_virtual, list, space, "source.h5", "/d", space);
	close_list(list);
	list = new_list(H5P_DATASET_ACCESS);
	CALL(H5Pset_chunk_cache, list, 521, 1 << 20, 0.5);
	CALL(H5Pset_append_flush, list, 2, ONE, appended, NULL);
	CALL(H5Pset_efile_prefix, list, dir);
	CALL(H5Pset_virtual_prefix, list, dir);
	CALL(H5Pset_virtual_printf_gap, list, 1);
	CALL(H5Pset_virtual_view, list, H5D_VDS_LAST_AVAILABLE);
	close_list(list);
}

/* Two dataspaces of the same size; dataspaces in all their ways. */
static hid_t spaces(void)
{
	hid_t space = CALL(H5Screate_simple, 2, SIZE, NULL), other = CALL(H5Screate, H5S_SIMPLE);
	CALL(H5Sset_extent_simple, other, 2, SIZE, NULL);
	CALL(H5Sextent_copy, other, space);
	hsize_t count[2] = {2, 3}, dims[2];
	CALL(H5Sselect_hyperslab, other, H5S_SELECT_SET, ZERO, NULL, count, NULL);
	CALL(H5Soffset_simple, other, (hssize_t[]){1, 1});
	CALL(H5Soffset_simple, other, (hssize_t[]){0, 0});
	CALL(H5Sclose, CALL(H5Scombine_hyperslab, other, H5S_SELECT_OR, ONE, NULL, count, NULL));
	hid_t copy = CALL(H5Scopy, other);
	CALL(H5Sclose, CALL(H5Scombine_select, copy, H5S_SELECT_OR, other));
	CALL(H5Smodify_select, copy, H5S_SELECT_OR, other);
	CALL(H5Sselect_copy, copy, other);
	CALL(H5Sselect_adjust, copy, (hssize_t[]){0, 0});
	CALL(H5Sclose, CALL(H5Sselect_project_intersection, other, copy, other));
	CALL(H5Sselect_elements, copy, H5S_SELECT_SET, 1, ONE);
	CALL(H5Sselect_all, copy);
	CALL(H5Sselect_none, copy);
	CHECK(CALL(H5Sget_select_npoints, copy) == 0 && CALL(H5Sget_simple_extent_npoints, copy) == ROWS * COLUMNS);
	CHECK(CALL(H5Sget_simple_extent_ndims, copy) == 2 && CALL(H5Sget_simple_extent_dims, copy, dims, NULL) == 2);
	size_t size = 0;
	CHECK(H5Sencode(copy, NULL, &size) >= 0);
	void *text = malloc(size);
	CHECK(text && H5Sencode(copy, text, &size) >= 0);
	CALL(H5Sclose, CALL(H5Sdecode, text));
	free(text);
	CALL(H5Sset_extent_none, copy);
	CALL(H5Sclose, copy);
	CALL(H5Sclose, other);
	return space;
}

static void attributes(hid_t file, hid_t dataset, hid_t space)
{
	hid_t a = CALL(H5Acreate1, dataset, "one", H5T_NATIVE_INT, space, H5P_DEFAULT);
	CALL(H5Awrite, a, H5T_NATIVE_INT, numbers);
	CALL(H5Aread, a, H5T_NATIVE_INT, numbers);
	CALL(H5Sclose, CALL(H5Aget_space, a));
	CALL(H5Tclose, CALL(H5Aget_type, a));
	ANY(H5Aget_storage_size, a);
	close_list(CALL(H5Aget_create_plist, a));
	H5A_info_t info;
	CALL(H5Aget_info, a, &info);
	CALL(H5Aclose, a);
	CALL(H5Aclose, CALL(H5Acreate2, dataset, "two", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT));
	CALL(H5Aclose,
	     CALL(H5Acreate_by_name, file, "d", "three", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	CALL(H5Aclose, CALL(H5Aopen, dataset, "two", H5P_DEFAULT));
	CALL(H5Aclose, CALL(H5Aopen_name, dataset, "two"));
	CALL(H5Aclose, CALL(H5Aopen_idx, dataset, 0));
	CALL(H5Aclose, CALL(H5Aopen_by_name, file, "d", "two", H5P_DEFAULT, H5P_DEFAULT));
	CALL(H5Aclose, CALL(H5Aopen_by_idx, file, "d", H5_INDEX_NAME, H5_ITER_INC, 0, H5P_DEFAULT, H5P_DEFAULT));
	CALL(H5Aget_info_by_name, file, "d", "two", &info, H5P_DEFAULT);
	CALL(H5Aget_info_by_idx, file, "d", H5_INDEX_NAME, H5_ITER_INC, 0, &info, H5P_DEFAULT);
	char name[64];
	CALL(H5Aget_name_by_idx, file, "d", H5_INDEX_NAME, H5_ITER_INC, 0, name, sizeof(name), H5P_DEFAULT);
	CHECK(CALL(H5Aget_num_attrs, dataset) == 3);
	unsigned at = 0;
	hsize_t index = 0;
	CALL(H5Aiterate1, dataset, &at, each_attribute1, NULL);
	CALL(H5Aiterate2, dataset, H5_INDEX_NAME, H5_ITER_INC, &index, each_attribute, NULL);
	index = 0;
	CALL(H5Aiterate_by_name, file, "d", H5_INDEX_NAME, H5_ITER_INC, &index, each_attribute, NULL, H5P_DEFAULT);
	CALL(H5Arename, dataset, "two", "second");
	CALL(H5Arename_by_name, file, "d", "three", "third", H5P_DEFAULT);
	CHECK(CALL(H5Aexists, dataset, "second") == 1);
	CHECK(CALL(H5Aexists_by_name, file, "d", "no such", H5P_DEFAULT) == 0);
	CALL(H5Adelete_by_idx, file, "d", H5_INDEX_NAME, H5_ITER_INC, 0, H5P_DEFAULT);
	CALL(H5Adelete_by_name, file, "d", "third", H5P_DEFAULT);
	CALL(H5Adelete, dataset, "second");
	CHECK(TRY(H5Aopen, dataset, "gone", H5P_DEFAULT) < 0);
}

static hid_t datasets(hid_t file, hid_t space)
{
	hid_t list = new_list(H5P_DATASET_CREATE);
	hsize_t most[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
	hid_t open = CALL(H5Screate_simple, 2, SIZE, most);
	CALL(H5Pset_chunk, list, 2, CHUNK);
	CALL(H5Pset_shuffle, list);
	CALL(H5Pset_deflate, list, 1);
	CALL(H5Pset_fletcher32, list);
	int seven = 7;
	CALL(H5Pset_fill_time, list, H5D_FILL_TIME_IFSET);
	CALL(H5Pset_fill_value, list, H5T_NATIVE_INT, &seven);
	hid_t d = CALL(H5Dcreate2, file, "d", H5T_NATIVE_INT, open, H5P_DEFAULT, list, H5P_DEFAULT);
	CALL(H5Dwrite, d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
	CALL(H5Dread, d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
	CALL(H5Dflush, d);
	unsigned mask;
	hsize_t chunks, offset[2];
	haddr_t address;
	CALL(H5Dget_num_chunks, d, open, &chunks);
	CHECK(chunks == 4);
	CALL(H5Dget_chunk_info, d, open, 0, offset, &mask, &address, &chunks);
	CALL(H5Dget_chunk_info_by_coord, d, ZERO, &mask, &address, &chunks);
	CALL(H5Dget_chunk_storage_size, d, ZERO, &chunks);
	char raw[4096];
	uint32_t filters;
	CALL(H5Dread_chunk, d, H5P_DEFAULT, ZERO, &filters, raw);
	CALL(H5Dwrite_chunk, d, H5P_DEFAULT, filters, ZERO, chunks, raw);
	H5D_chunk_index_t kind;
	CALL(H5Dget_chunk_index_type, d, &kind);
	hsize_t more[2] = {ROWS + 2, COLUMNS};
	CALL(H5Dset_extent, d, more);
	more[1] += 2;
	CALL(H5Dextend, d, more);
	CALL(H5Dset_extent, d, SIZE);
	CALL(H5Drefresh, d);
	CALL(H5Sclose, CALL(H5Dget_space, d));
	CALL(H5Tclose, CALL(H5Dget_type, d));
	close_list(CALL(H5Dget_access_plist, d));
	hid_t made = CALL(H5Dget_create_plist, d);
	size_t values = 1;
	unsigned level, config;
	CHECK(CALL(H5Pget_layout, made) == H5D_CHUNKED && CALL(H5Pget_chunk, made, 2, offset) == 2);
	CHECK(CALL(H5Pget_nfilters, made) == 3);
	CALL(H5Pget_filter1, made, 1, &mask, &values, &level, 0, NULL);
	CALL(H5Pget_filter2, made, 1, &mask, &values, &level, 0, NULL, &config);
	close_list(made);
	H5D_space_status_t status;
	CALL(H5Dget_space_status, d, &status);
	ANY(H5Dget_storage_size, d);
	CALL(H5Dclose, d);

	d = CALL(H5Dcreate1, file, "old", H5T_NATIVE_INT, space, H5P_DEFAULT);
	CALL(H5Dwrite, d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
	ANY(H5Dget_offset, d);
	CALL(H5Dclose, d);
	d = CALL(H5Dcreate_anon, file, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Olink, d, file, "late", H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Dclose, d);
	CALL(H5Dclose, CALL(H5Dopen1, file, "late"));
	CHECK(TRY(H5Dopen2, file, "no such", H5P_DEFAULT) < 0);

	hid_t strings = H5Tcopy(H5T_C_S1);
	CHECK(strings >= 0 && H5Tset_size(strings, H5T_VARIABLE) >= 0);
	hsize_t two = 2, bytes;
	hid_t few = CALL(H5Screate_simple, 1, &two, NULL);
	char *words[2] = {"one", "three"};
	d = CALL(H5Dcreate2, file, "strings", strings, few, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Dwrite, d, strings, H5S_ALL, H5S_ALL, H5P_DEFAULT, words);
	CALL(H5Dvlen_get_buf_size, d, strings, few, &bytes);
	CALL(H5Dread, d, strings, H5S_ALL, H5S_ALL, H5P_DEFAULT, words);
	CALL(H5Dvlen_reclaim, strings, few, H5P_DEFAULT, words);
	CALL(H5Dclose, d);
	CALL(H5Tclose, strings);
	CALL(H5Sclose, few);

	CALL(H5Diterate, numbers, H5T_NATIVE_INT, space, each_element, NULL);
	CALL(H5Dfill, NULL, H5T_NATIVE_INT, numbers, H5T_NATIVE_INT, space);
	CALL(H5Dgather, space, numbers, H5T_NATIVE_INT, sizeof(numbers), numbers, gathered, NULL);
	CALL(H5Dscatter, scattered, numbers, H5T_NATIVE_INT, space, numbers);
	CALL(H5Sclose, open);
	close_list(list);
	return CALL(H5Dopen2, file, "d", H5P_DEFAULT);
}

static void groups(hid_t file)
{
	hid_t g = CALL(H5Gcreate2, file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Gflush, g);
	close_list(CALL(H5Gget_create_plist, g));
	CALL(H5Grefresh, g);
	H5G_info_t info;
	CALL(H5Gget_info, g, &info);
	CALL(H5Gget_info_by_name, file, "g", &info, H5P_DEFAULT);
	CALL(H5Gget_info_by_idx, file, "/", H5_INDEX_NAME, H5_ITER_INC, 1, &info, H5P_DEFAULT);
	CALL(H5Gclose, g);
	CALL(H5Gclose, CALL(H5Gcreate1, file, "g1", 0));
	hid_t anonymous = CALL(H5Gcreate_anon, file, H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Olink, anonymous, file, "g2", H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Gclose, anonymous);
	CALL(H5Gclose, CALL(H5Gopen1, file, "g1"));
	g = CALL(H5Gopen2, file, "g", H5P_DEFAULT);
	hsize_t links;
	H5G_stat_t stat;
	char name[256];
	CALL(H5Gget_num_objs, file, &links);
	CALL(H5Gget_objinfo, file, "g", 0, &stat);
	CALL(H5Gget_objname_by_idx, file, 0, name, sizeof(name));
	CALL(H5Gget_objtype_by_idx, file, 0);
	CALL(H5Gset_comment, file, "g", "a group");
	CALL(H5Gget_comment, file, "g", sizeof(name), name);
	int at = 0;
	CALL(H5Giterate, file, "/", &at, (H5G_iterate_t)each_attribute1, NULL);
	CALL(H5Glink, file, H5G_LINK_SOFT, "g", "soft");
	CALL(H5Gget_linkval, file, "soft", sizeof(name), name);
	CALL(H5Glink2, file, "d", H5G_LINK_HARD, g, "hard");
	CALL(H5Gmove, file, "soft", "softer");
	CALL(H5Gmove2, file, "softer", g, "softest");
	CALL(H5Gunlink, g, "softest");
	CALL(H5Gclose, g);
}

static void links(hid_t file)
{
	CALL(H5Lcreate_hard, file, "d", file, "l_hard", H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Lcreate_soft, "/d", file, "l_soft", H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Lcreate_external, "other.h5", "/d", file, "l_out", H5P_DEFAULT, H5P_DEFAULT);
	H5L_class_t class = {.version = H5L_LINK_CLASS_T_VERS, .id = (H5L_type_t)(H5L_TYPE_UD_MIN + 2)};
	class.trav_func = (H5L_traverse_func_t)(void *)each_link;
	CHECK(H5Lregister(&class) >= 0);
	CALL(H5Lcreate_ud, file, "l_own", class.id, "x", 1, H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Lmove, file, "l_hard", file, "l_moved", H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Lcopy, file, "l_soft", file, "l_copy", H5P_DEFAULT, H5P_DEFAULT);
	CHECK(CALL(H5Lexists, file, "l_copy", H5P_DEFAULT) == 1);
	H5L_info_t info;
	char text[256];
	hsize_t at = 0;
	CALL(H5Lget_info, file, "l_copy", &info, H5P_DEFAULT);
	CALL(H5Lget_info_by_idx, file, "/", H5_INDEX_NAME, H5_ITER_INC, 0, &info, H5P_DEFAULT);
	CALL(H5Lget_val, file, "l_copy", text, sizeof(text), H5P_DEFAULT);
	CHECK(TRY(H5Lget_val_by_idx, file, "/", H5_INDEX_NAME, H5_ITER_INC, 0, text, sizeof(text), H5P_DEFAULT) < 0);
	CALL(H5Lget_name_by_idx, file, "/", H5_INDEX_NAME, H5_ITER_INC, 0, text, sizeof(text), H5P_DEFAULT);
	CALL(H5Ldelete, file, "l_own", H5P_DEFAULT);
	CALL(H5Literate, file, H5_INDEX_NAME, H5_ITER_INC, &at, each_link, NULL);
	at = 0;
	CALL(H5Literate_by_name, file, "/", H5_INDEX_NAME, H5_ITER_INC, &at, each_link, NULL, H5P_DEFAULT);
	CALL(H5Lvisit, file, H5_INDEX_NAME, H5_ITER_INC, each_link, NULL);
	CALL(H5Lvisit_by_name, file, "/", H5_INDEX_NAME, H5_ITER_INC, each_link, NULL, H5P_DEFAULT);
	CALL(H5Gclose, CALL(H5Gcreate2, file, "short", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	CALL(H5Lcreate_soft, "/d", file, "short/s", H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Ldelete_by_idx, file, "short", H5_INDEX_NAME, H5_ITER_INC, 0, H5P_DEFAULT);
}

static void objects(hid_t file)
{
	hid_t o = CALL(H5Oopen, file, "d", H5P_DEFAULT);
	CALL(H5Oflush, o);
	CALL(H5Orefresh, o);
	CALL(H5Oset_comment, o, "data");
	CALL(H5Oset_comment_by_name, file, "d", "data", H5P_DEFAULT);
	char text[64];
	CALL(H5Oget_comment, o, text, sizeof(text));
	CALL(H5Oget_comment_by_name, file, "d", text, sizeof(text), H5P_DEFAULT);
	CALL(H5Oincr_refcount, o);
	CALL(H5Odecr_refcount, o);
	TRY(H5Odisable_mdc_flushes, o);
	TRY(H5Oenable_mdc_flushes, o);
	H5O_info_t info;
	CALL(H5Oget_info, o, &info);
	CALL(H5Oget_info1, o, &info);
	CALL(H5Oget_info2, o, &info, H5O_INFO_ALL);
	CALL(H5Oget_info_by_name, file, "d", &info, H5P_DEFAULT);
	CALL(H5Oget_info_by_name1, file, "d", &info, H5P_DEFAULT);
	CALL(H5Oget_info_by_name2, file, "d", &info, H5O_INFO_ALL, H5P_DEFAULT);
	CALL(H5Oget_info_by_idx, file, "g", H5_INDEX_NAME, H5_ITER_INC, 0, &info, H5P_DEFAULT);
	CALL(H5Oget_info_by_idx1, file, "g", H5_INDEX_NAME, H5_ITER_INC, 0, &info, H5P_DEFAULT);
	CALL(H5Oget_info_by_idx2, file, "g", H5_INDEX_NAME, H5_ITER_INC, 0, &info, H5O_INFO_ALL, H5P_DEFAULT);
	CALL(H5Oclose, o);
	CALL(H5Oclose, CALL(H5Oopen_by_idx, file, "g", H5_INDEX_NAME, H5_ITER_INC, 0, H5P_DEFAULT));
	CALL(H5Oclose, CALL(H5Oopen_by_addr, file, info.addr));
	CHECK(CALL(H5Oexists_by_name, file, "d", H5P_DEFAULT) == 1);
	CALL(H5Ocopy, file, "d", file, "copy", H5P_DEFAULT, H5P_DEFAULT);
	hid_t g = CALL(H5Gopen2, file, "g", H5P_DEFAULT);
	CALL(H5Ovisit, g, H5_INDEX_NAME, H5_ITER_INC, each_object, NULL);
	CALL(H5Ovisit1, g, H5_INDEX_NAME, H5_ITER_INC, each_object, NULL);
	CALL(H5Ovisit2, g, H5_INDEX_NAME, H5_ITER_INC, each_object, NULL, H5O_INFO_ALL);
	CALL(H5Gclose, g);
	CALL(H5Ovisit_by_name, file, "g", H5_INDEX_NAME, H5_ITER_INC, each_object, NULL, H5P_DEFAULT);
	CALL(H5Ovisit_by_name1, file, "g", H5_INDEX_NAME, H5_ITER_INC, each_object, NULL, H5P_DEFAULT);
	CALL(H5Ovisit_by_name2, file, "g", H5_INDEX_NAME, H5_ITER_INC, each_object, NULL, H5O_INFO_ALL, H5P_DEFAULT);
}

static void types_and_references(hid_t file, hid_t dataset, hid_t space)
{
	hid_t types[3];
	for (int i = 0; i < 3; i++)
		CHECK((types[i] = H5Tcopy(H5T_NATIVE_SHORT)) >= 0);
	CALL(H5Tcommit1, file, "t1", types[0]);
	CALL(H5Tcommit2, file, "t2", types[1], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Tcommit_anon, file, types[2], H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Tflush, types[1]);
	CALL(H5Trefresh, types[1]);
	for (int i = 0; i < 3; i++)
		CALL(H5Tclose, types[i]);
	CALL(H5Tclose, CALL(H5Topen1, file, "t1"));
	CALL(H5Tclose, CALL(H5Topen2, file, "t2", H5P_DEFAULT));

	hobj_ref_t object;
	hdset_reg_ref_t region;
	H5O_type_t type;
	char name[64];
	CALL(H5Rcreate, &object, file, "d", H5R_OBJECT, -1);
	CALL(H5Rcreate, &region, file, "d", H5R_DATASET_REGION, space);
	CALL(H5Dclose, CALL(H5Rdereference1, file, H5R_OBJECT, &object));
	CALL(H5Dclose, CALL(H5Rdereference2, file, H5P_DEFAULT, H5R_OBJECT, &object));
	CALL(H5Rget_obj_type1, file, H5R_OBJECT, &object);
	CALL(H5Rget_obj_type2, file, H5R_OBJECT, &object, &type);
	CALL(H5Rget_name, file, H5R_OBJECT, &object, name, sizeof(name));
	CALL(H5Sclose, CALL(H5Rget_region, file, H5R_DATASET_REGION, &region));

	CHECK(CALL(H5Iinc_ref, dataset) == 2);
	CHECK(CALL(H5Idec_ref, dataset) == 1);
	CALL(H5Iget_name, dataset, name, sizeof(name));
	hid_t same = CALL(H5Iget_file_id, dataset);
	CHECK(same == file);
	CALL(H5Fclose, same);
}

static void files(hid_t file, hid_t access)
{
	CALL(H5Fflush, file, H5F_SCOPE_LOCAL);
	CALL(H5Fclose, CALL(H5Freopen, file));
	hsize_t size;
	haddr_t end;
	H5F_info1_t info1;
	H5F_info2_t info2;
	CALL(H5Fget_filesize, file, &size);
	CALL(H5Fget_eoa, file, &end);
	CALL(H5Fincrement_filesize, file, 0);
	CALL(H5Fget_freespace, file);
	CALL(H5Fget_free_sections, file, H5FD_MEM_DEFAULT, 0, NULL);
	CALL(H5Fget_info1, file, &info1);
	CALL(H5Fget_info2, file, &info2);
	CALL(H5Fget_file_image, file, NULL, 0);
	close_list(CALL(H5Fget_access_plist, file));
	close_list(CALL(H5Fget_create_plist, file));
	H5AC_cache_config_t cache = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
	CHECK(H5Fget_mdc_config(file, &cache) >= 0);
	CALL(H5Fset_mdc_config, file, &cache);
	CALL(H5Fset_libver_bounds, file, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
	CALL(H5Fset_latest_format, file, 0);
	CALL(H5Fset_dset_no_attrs_hint, file, 0);
	CALL(H5Fclear_elink_file_cache, file);
	CALL(H5Fstart_mdc_logging, file);
	CALL(H5Fstop_mdc_logging, file);

	hid_t child = CALL(H5Fcreate, in("child.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	CALL(H5Fmount, file, "g1", child, H5P_DEFAULT);
	CALL(H5Funmount, file, "g1");
	CALL(H5Fclose, child);
	CHECK(CALL(H5Fis_hdf5, in("child.h5")) == 1);
	CHECK(TRY(H5Fopen, in("no such"), H5F_ACC_RDONLY, H5P_DEFAULT) < 0);

	hid_t latest = CALL(H5Pcopy, access);
	CALL(H5Pset_libver_bounds, latest, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
	CALL(H5Pset_mdc_log_options, latest, 0, "unused", 0);
	CALL(H5Fclose, CALL(H5Fcreate, in("swmr.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, latest));
	hid_t swmr = CALL(H5Fopen, in("swmr.h5"), H5F_ACC_RDWR, latest);
	CALL(H5Fstart_swmr_write, swmr);
	CALL(H5Fclose, swmr);
	close_list(latest);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	dir = argv[1];
	CHECK(H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0);
	for (int i = 0; i < ROWS * COLUMNS; i++)
		numbers[i] = i;
	drivers();
	hid_t access = file_lists(), space = spaces();
	transfer_lists();
	dataset_lists(space);
	hid_t file = CALL(H5Fcreate, in("all.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, access);
	hid_t dataset = datasets(file, space);
	attributes(file, dataset, space);
	groups(file);
	links(file);
	objects(file);
	types_and_references(file, dataset, space);
	files(file, access);
	CALL(H5Dformat_convert, dataset);
	CALL(H5Fformat_convert, file);
	CALL(H5Dclose, dataset);
	CHECK(CALL(H5Idec_ref, space) == 0);
	close_list(access);
	CALL(H5Fclose, file);
	CALL(H5close);

	static char text[65536];
	snprintf(text, sizeof(text), "{\"pid\":%d,\"calls\":", getpid());
	truth_calls(text, sizeof(text), "calls");
	strcat(text, ",\"errors\":");
	truth_calls(text, sizeof(text), "errors");
	strcat(text, "}\n");
	return truth_write(1, text) < 0;
}
