
/* NetCDF, with MPI. */
#include <netcdf.h>
#include <netcdf_par.h>

#define NC(function) nc_##function
typedef size_t extent;

static inline int create_found(long long file, int *made)
{
	return nc_create(path(file), NC_NETCDF4, made);
}

static inline int set_access(int file, int variable, int collective)
{
	return nc_var_par_access(file, variable, collective ? NC_COLLECTIVE : NC_INDEPENDENT);
}
