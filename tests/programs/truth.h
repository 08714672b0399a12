/* A test program counts its own calls by name with this, and reports them as JSON at its end. For one thread. */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tally {
	const char *group; /* "hdf5", "mpiio", "stdio", "posix" */
	const char *name;  /* the function, or a count of bytes that begins with '_' */
	long n;
};

static struct tally tallies[2048];

/* Adds to the tally, and makes it at its first use. */
static inline void tally(const char *group, const char *name, long n)
{
	for (size_t i = 0; i < sizeof(tallies) / sizeof(tallies[0]); i++) {
		struct tally *t = &tallies[i];
		if (!t->name)
			*t = (struct tally){group, name, 0};
		if (!strcmp(t->group, group) && !strcmp(t->name, name)) {
			t->n += n;
			return;
		}
	}
	abort(); /* more names than room */
}

/* Calls a function and counts the call. */
#define COUNT(group, f, ...) (tally(group, #f, 1), f(__VA_ARGS__))

/* Appends {"f":1,"g":2}, the group's calls, or all its tallies, to the text. */
static inline void truth_tallies(char *text, size_t room, const char *group, int all)
{
	const char *comma = "{";
	size_t at = strlen(text);
	for (const struct tally *t = tallies; t->name; t++) {
		if (strcmp(t->group, group) || (t->name[0] == '_' && !all))
			continue;
		at += (size_t)snprintf(text + at, room - at, "%s\"%s\":%ld", comma, t->name, t->n);
		comma = ",";
	}
	snprintf(text + at, room - at, "%s}", *comma == '{' ? "{" : "");
}

static inline void truth_calls(char *text, size_t room, const char *group)
{
	truth_tallies(text, room, group, 0);
}

/* A count of bytes. */
static inline long truth_bytes(const char *group, const char *name)
{
	for (const struct tally *t = tallies; t->name; t++)
		if (!strcmp(t->group, group) && !strcmp(t->name, name))
			return t->n;
	return 0;
}

/* Writes all of the text without stdio, whose calls are counted. Returns 0, or -1. */
static inline int truth_write(int fd, const char *text)
{
	size_t left = strlen(text);
	while (left > 0) {
		ssize_t n = write(fd, text, left);
		if (n < 0)
			return -1;
		text += n;
		left -= (size_t)n;
	}
	return 0;
}

/* Ends the program with a message when a condition does not hold. */
#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			truth_fail(__FILE__, __LINE__, #condition);                                                    \
	} while (0)

static inline void truth_fail(const char *file, int line, const char *condition)
{
	char text[512];
	snprintf(text, sizeof(text), "%s:%d: does not hold: %s\n", file, line, condition);
	truth_write(2, text);
	_exit(1);
}

#endif
