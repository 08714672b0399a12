/*
 * Does I/O in functions of its own, for phases: `phases DIR [SECONDS]`.
 *
 * Functions call each other and themselves, are left by longjmp, and one runs in a child that is forked inside a phase.
 * Counts for each of them, by name, the calls and the bytes that system calls moved inside it, and prints them at the end.
 * With a time it makes step after step until that is over, and leaves the number of steps in DIR/steps.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <time.h>

#include "truth.h"

enum {
	BLOCK = 4096,
	STEPS = 5,
	LEVELS = 4,
};

/* Functions stay functions, and do not end in jumps to others. */
#define PHASE __attribute__((noinline, optimize("no-optimize-sibling-calls")))

static struct phase {
	const char *name;
	long calls, read, written;
} phases[16];

static const char *open_phases[16];
static int depth;
static jmp_buf back;
static const char *dir;
static char block[BLOCK];

static void enter(const char *name)
{
	struct phase *p = phases;
	while (p->name && strcmp(p->name, name))
		p++;
	p->name = name;
	p->calls++;
	open_phases[depth++] = name;
}

static void leave(void)
{
	depth--;
}

/* Counts bytes for every function that is open, once for each. */
static void moved(long read, long written)
{
	for (struct phase *p = phases; p->name; p++)
		for (int i = 0; i < depth; i++)
			if (open_phases[i] == p->name) {
				p->read += read;
				p->written += written;
				break;
			}
}

static int open_in(const char *name, int flags)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, flags | O_CREAT, 0644);
	CHECK(fd >= 0);
	return fd;
}

PHASE void save(const char *name, int blocks)
{
	enter("save");
	int fd = open_in(name, O_WRONLY | O_TRUNC);
	for (int i = 0; i < blocks; i++) {
		CHECK(pwrite(fd, block, BLOCK, (off_t)i * BLOCK) == BLOCK);
		moved(0, BLOCK);
	}
	CHECK(!close(fd));
	leave();
}

PHASE void load(const char *name)
{
	enter("load");
	int fd = open_in(name, O_RDONLY);
	for (ssize_t n; (n = read(fd, block, BLOCK)) > 0;)
		moved(n, 0);
	CHECK(!close(fd));
	leave();
}

/* Two blocks and what they are in, on each level. */
PHASE void tree(int levels)
{
	enter("tree");
	save("tree.dat", 2);
	if (levels > 1)
		tree(levels - 1);
	save("tree.dat", 1);
	leave();
}

PHASE void step(int n)
{
	enter("step");
	char line[64], path[4096];
	snprintf(path, sizeof(path), "%s/log", dir);
	FILE *log = fopen(path, "a");
	CHECK(log);
	int length = snprintf(line, sizeof(line), "step %d\n", n);
	CHECK(fputs(line, log) >= 0 && !fclose(log));
	moved(0, length);
	save("step.dat", n % 3 + 1);
	load("step.dat");
	leave();
}

/* Writes a block and never returns. */
PHASE void escape(void)
{
	enter("escape");
	save("escape.dat", 1);
	longjmp(back, 1);
}

static void steps_for(double seconds)
{
	struct timespec pause = {.tv_nsec = 10000000}, begin, now;
	char text[32];
	int n = 0;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		step(n++);
		snprintf(text, sizeof(text), "%d\n", n);
		int fd = open_in("steps", O_WRONLY);
		CHECK(!truth_write(fd, text) && !close(fd));
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
}

/* The child is in no phase of its own but `save`, though it returns from main, too. */
static pid_t child(void)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid)
		CHECK(waitpid(pid, NULL, 0) == pid);
	else
		save("child.dat", 1);
	return pid;
}

static void report(void)
{
	char text[4096];
	const char *comma = "";
	int at = snprintf(text, sizeof(text), "{\"pid\":%d,\"phases\":{", (int)getpid());
	for (const struct phase *p = phases; p->name; p++, comma = ",")
		at += snprintf(text + at, sizeof(text) - (size_t)at,
			       "%s\"%s\":{\"calls\":%ld,\"read\":%ld,\"written\":%ld}", comma, p->name, p->calls,
			       p->read, p->written);
	snprintf(text + at, sizeof(text) - (size_t)at, "}}\n");
	/* To a pipe or a file, which a tracer may or may not count: the last thing that happens. */
	CHECK(!truth_write(1, text));
}

int main(int argc, char **argv)
{
	CHECK(argc == 2 || argc == 3);
	dir = argv[1];
	if (argc == 3) {
		steps_for(atof(argv[2]));
		return 0;
	}
	for (int n = 0; n < STEPS; n++)
		step(n);
	tree(LEVELS);
	depth = 0;
	if (!setjmp(back))
		escape();
	depth = 0;
	if (!child())
		return 0;
	report();
	return 0;
}
