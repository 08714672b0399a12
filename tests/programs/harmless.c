/*
 * A little of what programs do, with the same output each time: `harmless`. Writes and reads a file by stdio and by system
 * calls, starts threads and a child, handles a signal, and ends with status 3.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	THREADS = 4,
	LINES = 500
};

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

static void *lines(void *arg)
{
	char path[32], line[64];
	long sum = 0;
	snprintf(path, sizeof path, "lines.%d", *(int *)arg);
	FILE *file = fopen(path, "w+");
	if (!file)
		exit(90);
	for (int i = 0; i < LINES; i++)
		fprintf(file, "%d\n", i);
	rewind(file);
	while (fgets(line, sizeof line, file))
		sum += atol(line);
	fclose(file);
	return (void *)sum;
}

int main(void)
{
	pthread_t threads[THREADS];
	int numbers[THREADS];
	long sum = 0;
	char buffer[4096];
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, lines, &numbers[i]))
			return 91;
	}
	for (int i = 0; i < THREADS; i++) {
		void *part;
		pthread_join(threads[i], &part);
		sum += (long)part;
	}
	raise(SIGUSR1);
	int fd = open("data", O_CREAT | O_TRUNC | O_RDWR, 0600);
	memset(buffer, 'x', sizeof buffer);
	ssize_t written = pwrite(fd, buffer, sizeof buffer, 0), again = pread(fd, buffer, sizeof buffer, 96);
	close(fd);
	printf("threads %ld, signals %d, written %zd, read %zd\n", sum, (int)signals, written, again);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(7);
	int status = 0;
	if (waitpid(child, &status, 0) != child)
		return 92;
	printf("child %d\n", WEXITSTATUS(status));
	FILE *echo = popen("echo from a shell", "r");
	if (!echo || !fgets(buffer, sizeof buffer, echo))
		return 93;
	printf("%s", buffer);
	pclose(echo);
	fprintf(stderr, "to the standard error\n");
	return 3;
}
