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

static inline void finish(void)
{
	(void)file;
	(void)request;
	(void)number;
}
