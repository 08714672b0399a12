/* Moves one block of doubles of a dataset, by a selection of its own, as HDF5 programs do it in loops. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <hdf5.h>

/* What failed, or null. `all`: the data space of the file. */
static inline const char *block(hid_t set, hid_t memory, hid_t all, hsize_t at, hsize_t values, double *data,
				int writes)
{
	if (H5Sselect_hyperslab(all, H5S_SELECT_SET, &at, NULL, &values, NULL) < 0)
		return "H5Sselect_hyperslab";
	if (writes)
		return H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, all, H5P_DEFAULT, data) < 0 ? "H5Dwrite" : NULL;
	return H5Dread(set, H5T_NATIVE_DOUBLE, memory, all, H5P_DEFAULT, data) < 0 ? "H5Dread" : NULL;
}

#endif
