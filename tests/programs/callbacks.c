/*
 * Ends, or leaves, library calls in their middle: `callbacks HOW DIR`.
 *
 * Each call is an fwrite to a stream of fopencookie(3) without a buffer, so the C library calls back into this program,
 * which writes TEXT to DIR/out with write(2) and then does HOW: raises a signal, ends the process, forks,
 * jumps out of the call, ends the thread, calls the next stream, or goes on with another stack, `above` or `below` the
 * call's own, where it prints a line to DIR/other. Only that file is touched through stdio.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum {
	TIMES = 10,  /* calls that are left by longjmp */
	NESTED = 40, /* calls inside each other, in `nest` */
	STACK = 65536
};

static const char TEXT[] = "in a call\n";
static const char *how, *self;
static int out;
static jmp_buf before;
static FILE *streams[NESTED];
static int waiting[2];
static FILE *other;
static ucontext_t main_stack, first, second;

static void check(int holds)
{
	if (!holds) {
		perror("callbacks");
		_exit(99);
	}
}

static void note(const char *text)
{
	check(write(out, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Blocks for ever, once it has reported that it is there. */
static void stay(void)
{
	check(write(waiting[1], "x", 1) == 1);
	for (;;)
		pause();
}

static ssize_t called_back(void *cookie, const char *data, size_t size)
{
	size_t depth = (size_t)cookie;

	(void)data;
	note(TEXT);
	if (!strcmp(how, "segv"))
		*(volatile int *)NULL = 0;
	else if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	else if (!strcmp(how, "exit"))
		_exit(7);
	else if (!strcmp(how, "exec"))
		execl(self, self, "done", ".", NULL);
	else if (!strcmp(how, "jump"))
		longjmp(before, 1);
	else if (!strcmp(how, "fork"))
		check(fork() >= 0);
	else if (!strcmp(how, "leave"))
		pthread_exit(NULL);
	else if (other)
		check(!swapcontext(&first, &second));
	else if (!strcmp(how, "threads") || !strcmp(how, "cancel"))
		stay();
	else if (!strcmp(how, "nest") && depth + 1 < NESTED)
		check(fwrite(data, 1, size, streams[depth + 1]) == size);
	return (ssize_t)size;
}

static FILE *stream(size_t depth)
{
	const cookie_io_functions_t functions = {.write = called_back};
	FILE *file = fopencookie((void *)depth, "w", functions);

	check(file && !setvbuf(file, NULL, _IONBF, 0));
	return file;
}

static void *in_a_thread(void *file)
{
	check(fwrite("x", 1, 1, file) == 1);
	return NULL;
}

static pthread_t thread(void)
{
	pthread_t id;

	check(!pthread_create(&id, NULL, in_a_thread, stream(0)));
	return id;
}

static void on_first(void)
{
	check(fwrite("x", 1, 1, streams[0]) == 1);
}

static void on_second(void)
{
	check(fputs("on another stack\n", other) >= 0);
	check(fprintf(other, "and another call\n") > 0);
	check(!swapcontext(&second, &first));
}

static void make(ucontext_t *context, char *stack, void (*run)(void))
{
	check(!getcontext(context));
	context->uc_stack.ss_sp = stack;
	context->uc_stack.ss_size = STACK;
	context->uc_link = &main_stack;
	makecontext(context, run, 0);
}

/* A call on one stack, and others inside it on a second one. */
static void two_stacks(const char *dir, int above)
{
	char path[4096];
	char *low = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(low != MAP_FAILED);
	snprintf(path, sizeof(path), "%s/other", dir);
	other = fopen(path, "w");
	check(other != NULL);
	streams[0] = stream(0);
	make(&first, above ? low : low + STACK, on_first);
	make(&second, above ? low + STACK : low, on_second);
	check(!swapcontext(&main_stack, &first));
	check(!fclose(other));
}

/* Returns when a thread is in its call. */
static void is_there(void)
{
	char byte;

	check(read(waiting[0], &byte, 1) == 1);
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 3)
		return 2;
	/* No core file in the directory of the tests. */
	check(!setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
	self = argv[0];
	how = argv[1];
	if (!strcmp(how, "done"))
		return 3;
	snprintf(path, sizeof(path), "%s/out", argv[2]);
	out = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	check(out >= 0 && !pipe(waiting));

	if (!strcmp(how, "jump")) {
		FILE *file = stream(0);
		for (volatile int i = 0; i < TIMES; i++) {
			if (!setjmp(before))
				fwrite("x", 1, 1, file);
			/* The call is over, without a return. */
			note("after\n");
			/* The stream's lock was left locked by the jump, which only matters to other threads. */
		}
	} else if (!strcmp(how, "threads")) {
		thread();
		thread();
		is_there();
		is_there();
		*(volatile int *)NULL = 0;
	} else if (!strcmp(how, "cancel") || !strcmp(how, "leave")) {
		pthread_t id = thread();
		if (!strcmp(how, "cancel")) {
			is_there();
			check(!pthread_cancel(id));
		}
		check(!pthread_join(id, NULL));
		note("after\n");
	} else if (!strcmp(how, "above") || !strcmp(how, "below")) {
		two_stacks(argv[2], !strcmp(how, "above"));
	} else {
		for (size_t i = 0; i < NESTED; i++)
			streams[i] = stream(i);
		check(fwrite("x", 1, 1, streams[0]) == 1);
		note("after\n");
		while (wait(NULL) > 0)
			;
	}
	return 0;
}
