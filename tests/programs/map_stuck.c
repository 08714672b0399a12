/* Maps FILE as code while the server of its file system, DAEMON, is stopped; then another process executes a program. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int file, status = 0;
	pid_t daemon;

	if (argc != 3)
		return 2;
	file = open(argv[1], O_RDONLY);
	daemon = atoi(argv[2]);
	if (file < 0 || kill(daemon, SIGSTOP))
		return 1;
	if (!fork())
		_exit(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED);
	if (!fork()) {
		execlp("echo", "echo", "another program", (char *)0);
		_exit(1);
	}
	for (int children = 2; children;) {
		int one;

		if (wait(&one) < 0)
			return 1;
		status |= one;
		children--;
	}
	if (kill(daemon, SIGCONT))
		return 1;
	puts("both are over");
	return status != 0;
}
