/* Maps FILE as code while the server of its file system, DAEMON, is stopped; then another process executes a program. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Closing a file of the stopped server would wait for it: the other process has none. */
static int map(const char *path, pid_t daemon, int go, int mapped)
{
	int file = open(path, O_RDONLY);

	if (file < 0 || kill(daemon, SIGSTOP) || write(go, "g", 1) != 1)
		return 1;
	if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
		return 1;
	return write(mapped, "m", 1) != 1;
}

int main(int argc, char **argv)
{
	int go[2], mapped[2], status, failed = 0;
	char byte;
	pid_t daemon, other;

	if (argc != 3 || pipe(go) || pipe(mapped))
		return 2;
	daemon = atoi(argv[2]);
	other = fork();
	if (!other) {
		if (read(go[0], &byte, 1) == 1)
			execlp("echo", "echo", "another program", (char *)0);
		_exit(1);
	}
	if (!fork())
		_exit(map(argv[1], daemon, go[1], mapped[1]));
	close(go[1]);
	close(mapped[1]);
	failed |= waitpid(other, &status, 0) < 0 || status;
	failed |= read(mapped[0], &byte, 1) != 1;
	failed |= kill(daemon, SIGCONT);
	failed |= wait(&status) < 0 || status;
	puts("both are over");
	return failed;
}
