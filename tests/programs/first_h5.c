/* Creates an HDF5 file as the very first thing it does: `first_h5 FILE`. A tracer that comes late misses it. */
#include <hdf5.h>

int main(int argc, char **argv)
{
	/* H5F_ACC_TRUNC as a number: the macro would call H5open first. */
	hid_t file = H5Fcreate(argv[argc - 1], 0x0002u, H5P_DEFAULT, H5P_DEFAULT);
	if (file < 0)
		return 1;
	return H5Fclose(file) < 0;
}
