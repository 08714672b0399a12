/*
 * Calls of which some are wanted one by one. Each prints what it did.
 *
 * `detailed slow FILE CALLS`: CALLS quick reads of FILE, then one fread of 4 bytes from a pipe whose writer takes 1 s for
 * them, then CALLS quick reads. Prints {"pread64":n}.
 * `detailed inner FILE CALLS`: twice, one fread from a pipe into which CALLS bytes are written one by one, each when the one
 * before was read, and then one more after 1 s. Prints {"read":n}.
 * `detailed signal FILE CALLS`: CALLS quick reads, one read of 500 ms that a signal ends, and one during which
 * another signal ends the program after 8 s.
 * `detailed files FILE OTHER CALLS`: opens both files, waits, writes CALLS times to each, waits for a second in the middle.
 * Prints {"pid":n,"pwrite64":n}.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "truth.h"

static char data[4096];

static void nap(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

static void wake(int signal)
{
	(void)signal;
}

/* A pipe whose other end a child writes: `n` bytes, each when the one before is gone, and a pause before the last. */
static FILE *fed(long n)
{
	int ends[2], left;
	FILE *f;

	CHECK(pipe(ends) == 0);
	if (fork() == 0) {
		close(ends[0]);
		for (long i = 0; i < n; i++) {
			while (ioctl(ends[1], FIONREAD, &left) == 0 && left)
				sched_yield();
			if (i == n - 1)
				nap(1000);
			if (write(ends[1], "x", 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	close(ends[1]);
	f = fdopen(ends[0], "r");
	CHECK(f && setvbuf(f, NULL, _IONBF, 0) == 0);
	return f;
}

static void quick(int fd, long calls)
{
	for (long i = 0; i < calls; i++)
		CHECK(pread(fd, data, 100, i % 16 * 100) == 100);
}

int main(int argc, char **argv)
{
	long calls = argc > 3 ? atol(argv[argc - 1]) : 0;
	int fd, other, status;

	CHECK(argc > 3 && calls > 0);
	fd = open(argv[2], O_CREAT | O_RDWR, 0600);
	CHECK(fd >= 0 && pwrite(fd, data, sizeof(data), 0) == sizeof(data));
	if (!strcmp(argv[1], "slow")) {
		FILE *f = fed(4);

		quick(fd, calls);
		CHECK(fread(data, 1, 4, f) == 4);
		quick(fd, calls);
		CHECK(wait(&status) > 0 && status == 0);
		printf("{\"pread64\":%ld}\n", 2 * calls);
	} else if (!strcmp(argv[1], "inner")) {
		char *all = malloc(calls + 1);

		for (int i = 0; i < 2; i++) {
			FILE *f = fed(calls + 1);

			CHECK(all && fread(all, 1, calls + 1, f) == (size_t)calls + 1);
			CHECK(wait(&status) > 0 && status == 0);
		}
		printf("{\"read\":%ld}\n", 2 * (calls + 1));
	} else if (!strcmp(argv[1], "signal")) {
		struct itimerval once = {.it_value = {.tv_usec = 500000}};
		struct sigaction act = {.sa_handler = wake};
		int ends[2];

		CHECK(pipe(ends) == 0 && sigaction(SIGALRM, &act, NULL) == 0);
		quick(fd, calls);
		CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
		CHECK(read(ends[0], data, 1) == -1);
		act.sa_handler = SIG_DFL;
		once.it_value.tv_sec = 8;
		CHECK(sigaction(SIGALRM, &act, NULL) == 0 && setitimer(ITIMER_REAL, &once, NULL) == 0);
		CHECK(read(ends[0], data, 1) == -1);
	} else {
		other = open(argv[3], O_CREAT | O_RDWR, 0600);
		CHECK(argc == 5 && other >= 0);
		nap(1000);
		for (long i = 0; i < calls; i++) {
			CHECK(pwrite(fd, data, 10, i % 100 * 10) == 10);
			CHECK(pwrite(other, data, 10, i % 100 * 10) == 10);
			if (i == calls / 2)
				nap(1000);
		}
		printf("{\"pid\":%d,\"pwrite64\":%ld}\n", getpid(), calls);
	}
	return 0;
}
