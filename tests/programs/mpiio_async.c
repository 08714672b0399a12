/*
 * Non-blocking MPI-IO in every life that a request can have: `mpirun -np 2 mpiio_async DIR`.
 *
 * Each rank leaves in DIR/truth.RANK.json its operations, each known by its offset in the file, with the bytes that a
 * status had (-1: nothing did) and the call that completed it, and how often it called what completes them.
 */
#include <mpi.h>
#include <pthread.h>

#include "truth.h"

#define OK(call)       CHECK((call) == MPI_SUCCESS)
#define DONE(f, ...)   OK(COUNT("completions", f, __VA_ARGS__))
#define BLOCK	       (64 * 1024)
#define OFFSET(number) ((MPI_Offset)(number)*2 * BLOCK)

enum {
	MANY = 6
};

static int rank;
static MPI_File fh;
static char buffers[MANY][BLOCK];
static char text[1 << 16];
/* A variable: the compiler takes MPICH's constant for the address of an array that is too small. */
static MPI_Status *volatile no_statuses = MPI_STATUSES_IGNORE;

static void report(const char *f, int number, long asked, long moved, const char *by)
{
	size_t at = strlen(text);
	snprintf(text + at, sizeof(text) - at,
		 "%s{\"op\":\"%s\",\"offset\":%lld,\"asked\":%ld,\"moved\":%ld,\"by\":\"%s\"}", at ? "," : "", f,
		 (long long)OFFSET(number), asked, moved, by);
}

static long bytes_in(const MPI_Status *status)
{
	int n;
	OK(MPI_Get_elements(status, MPI_BYTE, &n));
	return n;
}

/* Writes or reads block `number` of the file from or into a buffer of that number. */
static MPI_Request start_write(int number)
{
	MPI_Request request;
	OK(MPI_File_iwrite_at(fh, OFFSET(number), buffers[number % MANY], BLOCK - number, MPI_BYTE, &request));
	return request;
}

static MPI_Request start_read(int number)
{
	MPI_Request request;
	OK(MPI_File_iread_at(fh, OFFSET(number), buffers[number % MANY], BLOCK, MPI_BYTE, &request));
	return request;
}

static void *wait_elsewhere(void *request)
{
	MPI_Status status;
	DONE(MPI_Wait, request, &status);
	return (void *)bytes_in(&status);
}

/* Blocks 0 to 5: written, and waited for in all the ways that wait for one. */
static void one_by_one(void)
{
	MPI_Request request;
	MPI_Status status;
	pthread_t thread;
	void *moved;
	int flag = 0, index;

	request = start_write(0);
	DONE(MPI_Wait, &request, &status);
	report("MPI_File_iwrite_at", 0, BLOCK, bytes_in(&status), "MPI_Wait");

	request = start_write(1);
	CHECK(pthread_create(&thread, NULL, wait_elsewhere, &request) == 0 && pthread_join(thread, &moved) == 0);
	report("MPI_File_iwrite_at", 1, BLOCK - 1, (long)moved, "MPI_Wait");

	request = start_write(2);
	while (!flag)
		DONE(MPI_Test, &request, &flag, &status);
	report("MPI_File_iwrite_at", 2, BLOCK - 2, bytes_in(&status), "MPI_Test");

	request = start_write(3);
	DONE(MPI_Waitany, 1, &request, &index, &status);
	report("MPI_File_iwrite_at", 3, BLOCK - 3, bytes_in(&status), "MPI_Waitany");

	request = start_write(4);
	for (flag = 0; !flag;)
		DONE(MPI_Testany, 1, &request, &index, &flag, &status);
	report("MPI_File_iwrite_at", 4, BLOCK - 4, bytes_in(&status), "MPI_Testany");

	request = start_write(5);
	DONE(MPI_Wait, &request, MPI_STATUS_IGNORE);
	report("MPI_File_iwrite_at", 5, BLOCK - 5, -1, "MPI_Wait");
}

/* Several at once, in company of a message to oneself. */
static void together(void)
{
	MPI_Request requests[MANY];
	MPI_Status statuses[MANY];
	int flag, n, done, indices[MANY], sent = 7, got;

	for (int i = 0; i < 4; i++)
		requests[i] = start_read(i);
	OK(MPI_Irecv(&got, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[4]));
	OK(MPI_Isend(&sent, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[5]));
	DONE(MPI_Waitall, MANY, requests, statuses);
	for (int i = 0; i < 4; i++)
		report("MPI_File_iread_at", i, BLOCK, bytes_in(&statuses[i]), "MPI_Waitall");

	for (int i = 0; i < 2; i++)
		requests[i] = start_write(6 + i);
	DONE(MPI_Waitall, 2, requests, no_statuses);
	for (int i = 0; i < 2; i++)
		report("MPI_File_iwrite_at", 6 + i, BLOCK - 6 - i, -1, "MPI_Waitall");

	/* MPICH (4.0 to 5.0) fails at times when it tests two requests of files at once. */
	requests[0] = MPI_REQUEST_NULL;
	requests[1] = start_write(8);
	for (flag = 0; !flag;)
		DONE(MPI_Testall, 2, requests, &flag, statuses);
	report("MPI_File_iwrite_at", 8, BLOCK - 8, bytes_in(&statuses[1]), "MPI_Testall");

	requests[0] = start_write(10);
	for (n = 1; n > 0; n -= done)
		DONE(MPI_Waitsome, 1, requests, &done, indices, statuses);
	report("MPI_File_iwrite_at", 10, BLOCK - 10, bytes_in(&statuses[0]), "MPI_Waitsome");

	requests[0] = start_write(11);
	for (n = 1; n > 0; n -= done)
		DONE(MPI_Testsome, 1, requests, &done, indices, statuses);
	report("MPI_File_iwrite_at", 11, BLOCK - 11, bytes_in(&statuses[0]), "MPI_Testsome");
}

/* Waiting for messages has nothing to do with files, whatever the names of the requests. */
static void messages(void)
{
	MPI_Request requests[2];
	int sent = 7, got;
	for (int i = 0; i < 100; i++) {
		OK(MPI_Irecv(&got, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[0]));
		OK(MPI_Isend(&sent, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[1]));
		if (i % 2) {
			OK(MPI_Waitall(2, requests, no_statuses));
		} else {
			OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
			OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
		}
	}
}

static void split(void)
{
	MPI_Status status;
	OK(MPI_File_write_at_all_begin(fh, OFFSET(12), buffers[0], BLOCK - 12, MPI_BYTE));
	DONE(MPI_File_write_at_all_end, fh, buffers[0], &status);
	report("MPI_File_write_at_all_begin", 12, BLOCK - 12, bytes_in(&status), "MPI_File_write_at_all_end");
}

/* The end of these is not seen, except of the one that was to be cancelled, which no library does. */
static void given_up(void)
{
	MPI_Status status;
	MPI_Request request = start_write(15);
	DONE(MPI_Cancel, &request);
	DONE(MPI_Wait, &request, &status);
	report("MPI_File_iwrite_at", 15, BLOCK - 15, bytes_in(&status), "MPI_Wait");
	request = start_write(13);
	DONE(MPI_Request_free, &request);
	report("MPI_File_iwrite_at", 13, BLOCK - 13, -1, "");
	start_write(14);
	report("MPI_File_iwrite_at", 14, BLOCK - 14, -1, "");
}

int main(int argc, char **argv)
{
	static char out[1 << 17];
	char path[4096];
	int provided;
	OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
	CHECK(argc == 2 && provided == MPI_THREAD_MULTIPLE);
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	snprintf(path, sizeof(path), "%s/async.%d.dat", argv[1], rank);
	OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
	one_by_one();
	together();
	messages();
	split();
	given_up();
	messages();

	snprintf(out, sizeof(out), "{\"rank\":%d,\"pid\":%d,\"operations\":[%s],\"completions\":", rank, getpid(),
		 text);
	truth_calls(out, sizeof(out), "completions");
	snprintf(path, sizeof(path), "%s/truth.%d.json", argv[1], rank);
	FILE *file = fopen(path, "w");
	CHECK(file && fprintf(file, "%s}\n", out) > 0 && fclose(file) == 0);
	OK(MPI_Finalize());
	return 0;
}
