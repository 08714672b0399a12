/*
 * Runs a command in a control group from its first moment on: `into DIRECTORY COMMAND ARGS...`. The exit status is that of the
 * command.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct clone_args how = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
	int status = 0;
	long child;

	if (argc < 3)
		return 2;
	how.cgroup = (uint64_t)open(argv[1], O_PATH | O_DIRECTORY);
	child = syscall(SYS_clone3, &how, sizeof(how));
	if (child < 0) {
		perror("clone3");
		return 1;
	}
	if (!child) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	waitpid((pid_t)child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
