/* What every generated program has: its directory, checks of results, think time. */
#include <errno.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	LONGEST = 8192
};

static int this_rank;
static long long rank;	 /* in the trace, counted from 0 */
static long long member; /* among the ranks that make the same calls: where its values are in a table */
static char *buffer;	 /* all data */
static const char *directory;

__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...)
{
	va_list values;

	fprintf(stderr, "rank %d: ", this_rank);
	va_start(values, format);
	vfprintf(stderr, format, values);
	va_end(values);
	fputc('\n', stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static inline const char *name_in(char *name, long long file)
{
	if (snprintf(name, LONGEST, "%s/%s", directory, FILES[file]) >= LONGEST)
		fail("the name of the directory is too long: %s", directory);
	return name;
}

static inline const char *path(long long file)
{
	static char name[LONGEST];

	return name_in(name, file);
}

static inline const char *second(long long file)
{
	static char name[LONGEST];

	return name_in(name, file);
}

/* What the program did between two calls: it computes, or waits. */
static inline void think(long long ns)
{
	struct timespec now, end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ns / 1000000000;
	end.tv_nsec += ns % 1000000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	if (ns >= 100000)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
			;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

/* Makes a file that the program found. */
static inline void make_found(long long file);

/* Removes what an earlier run left, and makes the directories and the files that the program found. */
static inline void prepare(void)
{
	for (long long file = 0; file < FILE_COUNT; file++) {
		char name[LONGEST];
		size_t start = strlen(directory) + 1;

		name_in(name, file);
		for (char *slash = strchr(name + start, '/'); slash; slash = strchr(slash + 1, '/')) {
			*slash = 0;
			if (mkdir(name, 0755) && errno != EEXIST)
				fail("mkdir %s: %s", name, strerror(errno));
			*slash = '/';
		}
		/* Others may lie in it. */
		if (unlink(name) && errno != ENOENT && errno != EISDIR)
			fail("unlink %s: %s", name, strerror(errno));
	}
	for (long long file = 0; file < FILE_COUNT; file++)
		if (FOUND[file] >= 0)
			make_found(file);
}

/* Returns whether the calls are to be made: -p only prepares the directory for them. */
static inline int begin(int *argc, char ***argv)
{
	int size, only_prepare;

	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &this_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	rank = this_rank;
	only_prepare = *argc == 3 && !strcmp((*argv)[1], "-p");
	if (*argc != 2 && !only_prepare)
		fail("usage: replay [-p] DIRECTORY (-p: make the files that the calls need, and remove those of an "
		     "earlier run)");
	directory = (*argv)[*argc - 1];
	if (only_prepare) {
		if (!this_rank)
			prepare();
		MPI_Barrier(MPI_COMM_WORLD);
		return 0;
	}
	if (size != RANKS)
		fail("started with %d processes and made for %d: mpirun -n %d", size, RANKS, RANKS);
	buffer = aligned_alloc(4096, BUFFER);
	if (!buffer)
		fail("no memory for %lld bytes of data", (long long)BUFFER);
	memset(buffer, DATA, BUFFER);
	MPI_Barrier(MPI_COMM_WORLD);
	return 1;
}
