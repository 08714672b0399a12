/*
 * Threads that do the same at once, each with files of its own: `threads DIR THREADS ROUNDS`.
 *
 * Thread k writes ROUNDS records of 100 bytes to DIR/k.txt with fwrite and reads them back with fread, and writes and
 * reads as many of 512 bytes in DIR/k.dat with pwrite and pread. All threads are there before one begins.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TEXT = 100,
	BLOCK = 512
};

static const char *dir;
static int rounds;
static pthread_barrier_t start;

static void check(int holds)
{
	if (!holds) {
		perror("threads");
		_exit(1);
	}
}

static void *work(void *number)
{
	char path[4096], record[BLOCK];

	memset(record, 'r', sizeof(record));
	pthread_barrier_wait(&start);
	snprintf(path, sizeof(path), "%s/%ld.txt", dir, (long)number);
	FILE *text = fopen(path, "w+");
	check(text != NULL);
	snprintf(path, sizeof(path), "%s/%ld.dat", dir, (long)number);
	int data = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	check(data >= 0);
	for (int i = 0; i < rounds; i++) {
		check(fwrite(record, 1, TEXT, text) == TEXT);
		check(pwrite(data, record, BLOCK, (off_t)i * BLOCK) == BLOCK);
	}
	rewind(text);
	for (int i = 0; i < rounds; i++) {
		check(fread(record, 1, TEXT, text) == TEXT);
		check(pread(data, record, BLOCK, (off_t)i * BLOCK) == BLOCK);
	}
	check(!fclose(text) && !close(data));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t ids[64];
	int threads;

	if (argc != 4)
		return 2;
	dir = argv[1];
	threads = atoi(argv[2]);
	rounds = atoi(argv[3]);
	check(threads <= 64 && !pthread_barrier_init(&start, NULL, (unsigned)threads));
	for (long k = 0; k < threads; k++)
		check(!pthread_create(&ids[k], NULL, work, (void *)k));
	for (int k = 0; k < threads; k++)
		check(!pthread_join(ids[k], NULL));
	return 0;
}
