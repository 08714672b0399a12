/* The same by NetCDF: `segments_nc4 DIR`. */
#define NETCDF
#include "segments_nc.c"
