/*
 * A launcher and a rank: `ranked DIR`. Writes PARENT times to DIR/parent and forks a child, which writes CHILD times to
 * DIR/child, executes this program with RANK=7, and then writes AFTER times to DIR/after.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

enum {
	PARENT = 3,
	CHILD = 5,
	AFTER = 4
};

static void writes(const char *dir, const char *name, int times)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	for (int i = 0; i < times; i++)
		CHECK(pwrite(fd, path, 1, i) == 1);
	CHECK(!close(fd));
}

int main(int argc, char **argv)
{
	int status;
	CHECK(argc >= 2);
	if (argc > 2) {
		writes(argv[1], "after", AFTER);
		return 0;
	}
	writes(argv[1], "parent", PARENT);
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		writes(argv[1], "child", CHILD);
		CHECK(!setenv("RANK", "7", 1));
		execl("/proc/self/exe", "ranked", argv[1], "after", NULL);
		_exit(1);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	return 0;
}
