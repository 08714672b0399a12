/* Forks CHILDREN processes that stay beside each other; each calls fputs CALLS times at once and as often again when all are there. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void calls(FILE *to, long n)
{
	for (long i = 0; i < n; i++)
		if (fputs("a line\n", to) < 0)
			_exit(2);
}

int main(int argc, char **argv)
{
	long children, n;
	int here[2], go[2];
	FILE *to;
	char byte;

	if (argc != 4)
		return 2;
	children = atol(argv[2]);
	n = atol(argv[3]);
	to = fopen(argv[1], "w");
	if (!to || pipe(here) || pipe(go))
		return 1;
	for (long i = 0; i < children; i++) {
		pid_t child = fork();

		if (child < 0)
			return 1;
		if (!child) {
			close(go[1]);
			calls(to, n);
			if (write(here[1], "h", 1) != 1 || read(go[0], &byte, 1))
				_exit(1);
			calls(to, n);
			_exit(0);
		}
	}
	for (long i = 0; i < children; i++)
		if (read(here[0], &byte, 1) != 1)
			return 1;
	/* the end of the pipe is what they wait for */
	close(go[1]);
	for (long i = 0; i < children; i++) {
		int status;

		if (wait(&status) < 0 || status)
			return 1;
	}
	return 0;
}
