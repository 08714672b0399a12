/* What MPI returns. */
static inline void good(const char *call, int result)
{
	char text[MPI_MAX_ERROR_STRING];
	int length;

	if (result == MPI_SUCCESS)
		return;
	MPI_Error_string(result, text, &length);
	fail("%s: %s", call, text);
}

static inline MPI_Comm communicator(long long number)
{
	return number == 1 ? MPI_COMM_SELF : MPI_COMM_WORLD;
}

/* Hints, from the table of their sets; 0 are none. */
static inline MPI_Info hints(long long number)
{
	static MPI_Info info[HINT_SETS + 1];

	if (number == 0)
		return MPI_INFO_NULL;
	if (!info[number]) {
		good("MPI_Info_create", MPI_Info_create(&info[number]));
		for (const struct hint *hint = HINTS; hint->key; hint++)
			if (hint->set == number)
				good("MPI_Info_set", MPI_Info_set(info[number], hint->key, hint->value));
	}
	return info[number];
}
