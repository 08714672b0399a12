/*
 * Makes calls on several stacks in one thread: `stacks HOW DIR`. Each call calls back, and what is called back switches to another stack.
 *
 * crossed, crossed_up: two coroutines in a call each; the call that began first returns first; the second one's stack is below, above
 * fibers, fibers_up: coroutines in turn, each in a phase (`step`) that yields; stacks descend, ascend
 * alternate: a signal handler on a stack of its own, in a call and without one
 * thread: the same as fibers, in a thread, whose own calls are inside each other, too
 * nested: calls inside each other on the main thread's stack and on a thread's
 * context: a call is left by setcontext, ten times
 * handler: a call is left by siglongjmp from a signal handler on a stack of its own, ten times
 * printed: calls of fprintf are left by siglongjmp, ten times, each before one that returns; two coroutines cross each other in one
 * builtin: a call is left in a way that no library knows of, and calls are made after it
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
#include <ucontext.h>
#include <unistd.h>

enum {
	TIMES = 10,
	FIBERS = 4,
	LEVELS = 5,
	STACK = 65536
};

static const char *how, *dir;
static ucontext_t back, fibers[FIBERS];
static int current, left;
static FILE *streams[FIBERS];
static char *stacks;
static volatile int done;
static ucontext_t before;
static sigjmp_buf jump;
static void *builtin[5];

static void check(int holds)
{
	if (!holds) {
		perror("stacks");
		_exit(99);
	}
}

static int is(const char *name)
{
	return !strcmp(how, name);
}

static FILE *cookie(size_t number, cookie_read_function_t *function)
{
	FILE *file = fopencookie((void *)number, "r", (cookie_io_functions_t){.read = function});

	check(file && !setvbuf(file, NULL, _IONBF, 0));
	return file;
}

/* A fiber whose stack is the n-th from below. */
static void make(ucontext_t *context, int n, void (*run)(void))
{
	check(!getcontext(context));
	context->uc_stack.ss_sp = stacks + (size_t)n * STACK;
	context->uc_stack.ss_size = STACK;
	context->uc_link = &back;
	makecontext(context, run, 0);
}

static void yield_to(int next)
{
	int here = current;

	current = next;
	check(!swapcontext(&fibers[here], &fibers[next]));
}

static ssize_t yields(void *number, char *data, size_t size)
{
	(void)number;
	yield_to(!current);
	memset(data, 'x', size);
	return (ssize_t)size;
}

static void reads(void)
{
	char data[100];

	check(fread(data, 1, sizeof(data), streams[current]) == sizeof(data));
	done++;
	if (done < 2)
		yield_to(!current);
}

/* 0 is in its call while 1 begins one; then 0 returns, then 1. */
static void crossed(void)
{
	int up = is("crossed_up");

	for (size_t n = 0; n < 2; n++)
		streams[n] = cookie(n, yields);
	make(&fibers[0], !up, reads);
	make(&fibers[1], up, reads);
	check(!swapcontext(&back, &fibers[0]));
	check(done == 2);
}

__attribute__((noinline)) void step(int n)
{
	char path[4096];
	int file;

	snprintf(path, sizeof(path), "%s/fiber%d", dir, current);
	file = open(path, O_CREAT | O_WRONLY, 0644);
	check(file >= 0);
	yield_to((current + 1) % FIBERS);
	check(pwrite(file, "x", 1, n) == 1);
	yield_to((current + 1) % FIBERS);
	check(!close(file));
	__asm__ volatile("");
}

/* Each makes another number of steps. */
static void steps(void)
{
	for (int n = 0; n < 3 + current; n++)
		step(n);
	left--;
	while (left)
		yield_to((current + 1) % FIBERS);
}

static void in_turn(int up)
{
	left = FIBERS;
	current = 0;
	for (int n = 0; n < FIBERS; n++)
		make(&fibers[n], up ? n : FIBERS - 1 - n, steps);
	check(!swapcontext(&back, &fibers[0]));
}

static ssize_t raises(void *number, char *data, size_t size)
{
	(void)number;
	check(!raise(SIGUSR1));
	memset(data, 'x', size);
	return (ssize_t)size;
}

/* A call of its own. */
static void handler(int number)
{
	char path[4096];
	FILE *file;

	(void)number;
	snprintf(path, sizeof(path), "%s/handler", dir);
	file = fopen(path, "a");
	check(file && !fclose(file));
	if (is("handler"))
		siglongjmp(jump, 1);
}

static void alternate(void)
{
	stack_t stack = {.ss_sp = stacks, .ss_size = STACK};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	char byte;
	FILE *file = cookie(0, raises);

	check(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL));
	for (volatile int i = 0; i < TIMES; i++)
		if (is("alternate") || !sigsetjmp(jump, 1))
			check(fread(&byte, 1, 1, file) == 1);
	if (is("alternate"))
		raise(SIGUSR1);
}

static ssize_t reads_below(void *number, char *data, size_t size)
{
	size_t level = (size_t)number;

	if (level + 1 < LEVELS) {
		FILE *file = cookie(level + 1, reads_below);

		check(fread(data, 1, size, file) == size && !fclose(file));
	}
	memset(data, 'x', size);
	return (ssize_t)size;
}

static void *nested(void *unused)
{
	char byte;
	FILE *file = cookie(0, reads_below);

	check(fread(&byte, 1, 1, file) == 1 && !fclose(file));
	return unused;
}

static void *in_a_thread(void *unused)
{
	in_turn(0);
	return nested(unused);
}

static ssize_t leaves(void *number, char *data, size_t size)
{
	(void)number, (void)data, (void)size;
	done++;
	if (is("context"))
		setcontext(&before);
	__builtin_longjmp(builtin, 1);
}

static void context(void)
{
	FILE *file = cookie(0, leaves);
	char byte;

	check(!getcontext(&before));
	if (done < TIMES)
		(void)!fread(&byte, 1, 1, file);
	nested(NULL);
}

static __attribute__((noinline)) void out(void)
{
	FILE *file = cookie(0, leaves);
	char byte;

	if (!__builtin_setjmp(builtin))
		(void)!fread(&byte, 1, 1, file);
}

/* What a stream writes goes elsewhere: out of the call, or to the other coroutine and back. */
static ssize_t jumps(void *to, const char *bytes, size_t size)
{
	(void)bytes;
	if (!to)
		siglongjmp(jump, 1);
	yield_to(!current);
	return (ssize_t)size;
}

static FILE *output(const void *to)
{
	FILE *file = fopencookie((void *)to, "w", (cookie_io_functions_t){.write = jumps});

	check(file && !setvbuf(file, NULL, _IONBF, 0));
	return file;
}

static void prints(void)
{
	check(fprintf(streams[current], "%d", current) == 1);
}

static void printed(void)
{
	FILE *left = output(NULL), *file = fopen("/dev/null", "w");

	check(file != NULL);
	for (volatile int i = 0; i < TIMES; i++) {
		if (!sigsetjmp(jump, 1))
			fprintf(left, "%d", i);
		check(fprintf(file, "%d\n", i) == 2);
	}
	for (int i = 0; i < 2; i++) {
		streams[i] = output(&back);
		make(&fibers[i], i, prints);
	}
	/* the first one is in a call still when the second one calls, and ends before that */
	current = 0;
	check(!swapcontext(&back, &fibers[0]));
	current = 1;
	check(!swapcontext(&back, &fibers[1]));
}

int main(int argc, char **argv)
{
	pthread_t id;

	check(argc == 3 && !setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
	how = argv[1];
	dir = argv[2];
	stacks = mmap(NULL, FIBERS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(stacks != MAP_FAILED);
	if (is("crossed") || is("crossed_up")) {
		crossed();
	} else if (is("fibers") || is("fibers_up")) {
		in_turn(is("fibers_up"));
	} else if (is("alternate") || is("handler")) {
		alternate();
	} else if (is("thread") || is("nested")) {
		nested(NULL);
		check(!pthread_create(&id, NULL, is("nested") ? nested : in_a_thread, NULL) && !pthread_join(id, NULL));
	} else if (is("context")) {
		context();
	} else if (is("printed")) {
		printed();
	} else if (is("builtin")) {
		out();
		nested(NULL);
	} else {
		return 2;
	}
	check(write(1, "done\n", 5) == 5);
	return 0;
}
