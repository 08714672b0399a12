/*
 * `update MODE FILE COUNT SIZE`: changes each of COUNT records of SIZE bytes of a file. MODE: `turns`: reads and writes one after
 * the other through a stream; `whole`: reads all of them, changes them in memory and writes them.
 */
#include "case.h"

static void turns(FILE *file, char *record, long count, size_t size)
{
	for (long i = 0; i < count; i++) {
		must(fread(record, size, 1, file) == 1, "fread");
		record[0]++;
		must(fseek(file, -(long)size, SEEK_CUR) == 0, "fseek");
		must(fwrite(record, size, 1, file) == 1, "fwrite");
		must(fseek(file, 0, SEEK_CUR) == 0, "fseek");
	}
}

static void whole(FILE *file, long count, size_t size)
{
	char *all = memory(count * size);

	must(fread(all, size, count, file) == (size_t)count, "fread");
	for (long i = 0; i < count; i++)
		all[i * size]++;
	must(fseek(file, 0, SEEK_SET) == 0, "fseek");
	must(fwrite(all, size, count, file) == (size_t)count, "fwrite");
	free(all);
}

int main(int argc, char **argv)
{
	long count = number(argc, argv, 3), size = number(argc, argv, 4);
	FILE *file = fopen(argv[2], "r+");
	char *record = memory(size);

	must(file != NULL, argv[2]);
	if (is(argv[1], "turns"))
		turns(file, record, count, size);
	else
		whole(file, count, size);
	must(fclose(file) == 0, "fclose");
	free(record);
	return 0;
}
