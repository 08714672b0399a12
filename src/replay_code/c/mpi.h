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

/* 0: all ranks, 1: this process alone, others: some of the ranks. */
static inline MPI_Comm communicator(long long number)
{
	static MPI_Comm made[COMMUNICATORS];
	static int is_made[COMMUNICATORS];
	MPI_Group all, part = MPI_GROUP_EMPTY;

	if (number < 2)
		return number == 1 ? MPI_COMM_SELF : MPI_COMM_WORLD;
	if (is_made[number])
		return made[number];
	good("MPI_Comm_group", MPI_Comm_group(MPI_COMM_WORLD, &all));
	for (int at = 0; PARTS[at].communicator >= 0; at++) {
		int range[1][3];
		MPI_Group ranks, both;

		if (PARTS[at].communicator != number)
			continue;
		memcpy(range, PARTS[at].range, sizeof range);
		good("MPI_Group_range_incl", MPI_Group_range_incl(all, 1, range, &ranks));
		good("MPI_Group_union", MPI_Group_union(part, ranks, &both));
		part = both;
	}
	good("MPI_Comm_create_group", MPI_Comm_create_group(MPI_COMM_WORLD, part, (int)number, &made[number]));
	is_made[number] = 1;
	return made[number];
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
