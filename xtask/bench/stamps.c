/*
 * What a preloaded library cannot go below: two clock reads around the call, which are kept nowhere. cargo xtask bench compares
 * with it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static __thread struct timespec from, to;

#define WRAP(type, name, parameters, arguments)                                                                        \
	type name parameters                                                                                           \
	{                                                                                                              \
		static type(*real) parameters;                                                                         \
		type result;                                                                                           \
                                                                                                                       \
		if (!real)                                                                                             \
			real = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                            \
		clock_gettime(CLOCK_MONOTONIC, &from);                                                                 \
		result = real arguments;                                                                               \
		clock_gettime(CLOCK_MONOTONIC, &to);                                                                   \
		return result;                                                                                         \
	}

WRAP(ssize_t, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
WRAP(size_t, fwrite, (const void *data, size_t size, size_t n, FILE *stream), (data, size, n, stream))
