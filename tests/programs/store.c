/* The library of store.h: records in a file, through the C library. */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct store {
	FILE *file;
	double weight;
};

store_t *store_open(const char *path, int writable)
{
	FILE *file = fopen(path, writable ? "w+" : "r");
	store_t *store = file ? calloc(1, sizeof(*store)) : NULL;
	if (store)
		store->file = file;
	return store;
}

ssize_t store_put(store_t *store, double weight, const void *data, size_t bytes, off_t offset)
{
	store->weight += weight;
	if (offset < 0 || fseek(store->file, offset, SEEK_SET))
		return -1;
	return (ssize_t)fwrite(data, 1, bytes, store->file);
}

long store_get_doubles(store_t *store, double *values, size_t count)
{
	return (long)fread(values, sizeof(*values), count, store->file);
}

int store_flush(store_t *store)
{
	return fflush(store->file);
}

int store_close(store_t *store)
{
	int result = fclose(store->file);
	free(store);
	return result;
}

int store_remove(const char *path)
{
	return unlink(path);
}

int store_version(void)
{
	return 3;
}
