/* What the programs of `tests/cases` share: they end with a message when something fails. */
#ifndef CASE_H
#define CASE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program unless `good`. */
static inline void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline bool is(const char *text, const char *other)
{
	return strcmp(text, other) == 0;
}

/* The argument of that place as a number. */
static inline long number(int argc, char **argv, int at)
{
	must(at < argc, "too few arguments");
	return strtol(argv[at], NULL, 10);
}

static inline void *memory(size_t size)
{
	void *data = malloc(size);

	must(data != NULL, "malloc");
	return data;
}

#endif
