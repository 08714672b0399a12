/* A small library of its own kind, for catalogs made from debug information or from this header. */
#ifndef STORE_H
#define STORE_H

#include <stddef.h>
#include <sys/types.h>

typedef struct store store_t;

store_t *store_open(const char *path, int writable);
ssize_t store_put(store_t *store, double weight, const void *data, size_t bytes, off_t offset);
long store_get_doubles(store_t *store, double *values, size_t count);
int store_flush(store_t *store);
int store_close(store_t *store);
int store_remove(const char *path);
int store_version(void);

#endif
