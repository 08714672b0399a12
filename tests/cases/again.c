/*
 * `again full FILE MIB`: writes so much, and tries 2000 times again where there is no space; `again polled|waited`: reads what
 * another process sends now and then, by asking all the time or when there is something.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

enum {
	MIB = 1 << 20,
	TRIES = 2000,
	MESSAGES = 40
};

static void doze(long ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

static void fill(const char *path, long count)
{
	char *data = memory(MIB);
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	long failed = 0;

	must(file >= 0, path);
	memset(data, 'f', MIB);
	for (long i = 0; i < count && failed < TRIES; i++) {
		if (write(file, data, MIB) > 0)
			continue;
		must(errno == ENOSPC, "write");
		failed++;
		i--;
	}
	printf("%ld\n", failed);
	close(file);
	free(data);
}

static void receive(bool polled)
{
	int ends[2], status;
	long failed = 0;
	char message;
	pid_t child;

	must(pipe2(ends, O_NONBLOCK) == 0, "pipe2");
	child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		for (int i = 0; i < MESSAGES; i++) {
			doze(20);
			must(write(ends[1], "m", 1) == 1, "write");
		}
		_exit(0);
	}
	for (int i = 0; i < MESSAGES;) {
		struct pollfd ready = {.fd = ends[0], .events = POLLIN};

		if (!polled)
			poll(&ready, 1, -1);
		if (read(ends[0], &message, 1) == 1)
			i++;
		else
			failed++;
	}
	must(wait(&status) == child, "wait");
	printf("%ld\n", failed);
}

int main(int argc, char **argv)
{
	must(argc > 1, "again MODE");
	if (is(argv[1], "full"))
		fill(argv[2], number(argc, argv, 3));
	else
		receive(is(argv[1], "polled"));
	return 0;
}
