/*
 * Two coroutines on stacks of their own, each in a read of a stream whose function switches to the other one: the first that
 * was called returns first. `switched` has the first one's stack above, `switched below` below the other's.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <ucontext.h>

enum {
	STACK = 1 << 18
};

static ucontext_t to_main, first, second;
static FILE *of_first, *of_second;

static ssize_t read_first(void *cookie, char *buffer, size_t size)
{
	(void)cookie;
	swapcontext(&first, &second);
	memset(buffer, 'a', size);
	return (ssize_t)size;
}

static ssize_t read_second(void *cookie, char *buffer, size_t size)
{
	(void)cookie;
	swapcontext(&second, &first);
	memset(buffer, 'b', size);
	return (ssize_t)size;
}

static void run_first(void)
{
	char buffer[100];
	size_t got = fread(buffer, 1, sizeof buffer, of_first);
	printf("first %zu %c\n", got, buffer[0]);
	fflush(stdout);
	swapcontext(&first, &second);
}

static void run_second(void)
{
	char buffer[100];
	size_t got = fread(buffer, 1, sizeof buffer, of_second);
	printf("second %zu %c\n", got, buffer[0]);
	fflush(stdout);
	setcontext(&to_main);
}

int main(int argc, char **argv)
{
	(void)argv;
	int below = argc > 1;
	static volatile int begun;
	char *stacks = mmap(NULL, 4 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	of_first = fopencookie(NULL, "r", (cookie_io_functions_t){.read = read_first});
	of_second = fopencookie(NULL, "r", (cookie_io_functions_t){.read = read_second});
	if (stacks == MAP_FAILED || !of_first || !of_second)
		return 1;
	getcontext(&first);
	getcontext(&second);
	first.uc_stack.ss_sp = stacks + (below ? 0 : 2 * STACK);
	second.uc_stack.ss_sp = stacks + (below ? 2 * STACK : 0);
	first.uc_stack.ss_size = second.uc_stack.ss_size = STACK;
	makecontext(&first, run_first, 0);
	makecontext(&second, run_second, 0);
	getcontext(&to_main);
	if (!begun) {
		begun = 1;
		setcontext(&first);
	}
	puts("done");
	return 0;
}
