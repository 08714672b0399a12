/* MPI-IO. */
static MPI_File file[HANDLES];
static MPI_Request request[REQUESTS];
static MPI_Status status;
static MPI_Offset number;

/* The call succeeds, and moves what it moved in the trace (-1: not known). */
static inline void moved(const char *call, long long expected, int result)
{
	int bytes;

	good(call, result);
	MPI_Get_count(&status, MPI_BYTE, &bytes);
	if (expected >= 0 && bytes != expected)
		fail("%s moved %d bytes, and %lld in the trace", call, bytes, expected);
}

/* A view of bytes. Where the displacement grows with the rank, ranks take turns with so many bytes each. */
static inline int set_view(MPI_File handle, MPI_Offset at, long long turn, MPI_Info info)
{
	MPI_Datatype part, turns;
	int result;

	if (!turn)
		return MPI_File_set_view(handle, at, MPI_BYTE, MPI_BYTE, "native", info);
	good("MPI_Type_contiguous", MPI_Type_contiguous((int)turn, MPI_BYTE, &part));
	good("MPI_Type_create_resized", MPI_Type_create_resized(part, 0, turn * RANKS, &turns));
	good("MPI_Type_commit", MPI_Type_commit(&turns));
	result = MPI_File_set_view(handle, at, MPI_BYTE, turns, "native", info);
	MPI_Type_free(&part);
	MPI_Type_free(&turns);
	return result;
}

static inline void finish(void)
{
	(void)file;
	(void)request;
	(void)number;
}
