
/* PnetCDF. */
#include <pnetcdf.h>

#define NC(function) ncmpi_##function
typedef MPI_Offset extent;

static int request;

static inline int create_found(long long file, int *made)
{
	return ncmpi_create(MPI_COMM_SELF, path(file), NC_64BIT_DATA, MPI_INFO_NULL, made);
}

/* Which calls are collective is in their names. */
static inline int set_access(int file, int variable, int collective)
{
	(void)file;
	(void)variable;
	(void)collective;
	(void)request;
	return NC_NOERR;
}

/* A list of one piece. */
static inline MPI_Offset *const *pieces(const MPI_Offset *piece)
{
	static MPI_Offset *list[2];
	static int turn;

	/* Two are in use at one time: starts and counts. */
	turn = !turn;
	list[turn] = (MPI_Offset *)piece;
	return &list[turn];
}
