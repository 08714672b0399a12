/*
 * Processes that begin and end at once: `swarm FILE COUNT AT_ONCE`. Each child appends a line of 8 bytes to FILE, and nothing
 * else; as many as AT_ONCE are there at the same time.
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "truth.h"

static void end_one(void)
{
	int status;

	CHECK(wait(&status) > 0 && status == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 4);
	long count = atol(argv[2]), at_once = atol(argv[3]);
	int file = open(argv[1], O_CREAT | O_WRONLY | O_APPEND, 0600);

	CHECK(file >= 0);
	for (long i = 0; i < count; i++) {
		if (i >= at_once)
			end_one();
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0)
			_exit(write(file, "a child\n", 8) != 8);
	}
	for (long i = 0; i < at_once && i < count; i++)
		end_one();
	return 0;
}
