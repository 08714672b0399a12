/*
 * Four coroutines in turn, each with its stack below that of the one before, each in a function `step` that writes to a file
 * and lets the next one run meanwhile: `fibers`, to be traced with `--phase step`.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

enum {
	FIBERS = 4,
	STACK = 65536
};

static ucontext_t to_main, fibers[FIBERS];
static int current, left = FIBERS, steps;

static void yield(void)
{
	int before = current;
	current = (current + 1) % FIBERS;
	swapcontext(&fibers[before], &fibers[current]);
}

__attribute__((noinline)) void step(int number)
{
	int fd = open("steps", O_CREAT | O_WRONLY, 0600);
	yield();
	if (pwrite(fd, "x", 1, number) != 1)
		exit(90);
	steps++;
	yield();
	close(fd);
}

static void body(int number)
{
	for (int i = 0; i < 3 + number; i++)
		step(i);
	left--;
	while (left)
		yield();
	setcontext(&to_main);
}

int main(void)
{
	static volatile int begun;
	char *stacks = malloc((size_t)FIBERS * STACK);
	for (int i = 0; i < FIBERS; i++) {
		getcontext(&fibers[i]);
		fibers[i].uc_stack.ss_sp = stacks + (size_t)(FIBERS - 1 - i) * STACK;
		fibers[i].uc_stack.ss_size = STACK;
		makecontext(&fibers[i], (void (*)(void))body, 1, i);
	}
	getcontext(&to_main);
	if (!begun) {
		begun = 1;
		setcontext(&fibers[0]);
	}
	printf("%d steps\n", steps);
	return 0;
}
