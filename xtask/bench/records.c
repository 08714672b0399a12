/* A program of many small records: `records FILE`, which are written to a stream and read back from it. */
#include <stdio.h>
#include <string.h>

enum {
	RECORDS = 1000000
};

int main(int argc, char **argv)
{
	char record[64];
	FILE *file = argc == 2 ? fopen(argv[1], "w+") : NULL;

	memset(record, 'r', sizeof(record));
	if (!file)
		return 1;
	for (int i = 0; i < RECORDS; i++)
		if (fwrite(record, sizeof(record), 1, file) != 1)
			return 1;
	rewind(file);
	for (int i = 0; i < RECORDS; i++)
		if (fread(record, sizeof(record), 1, file) != 1)
			return 1;
	return fclose(file) != 0;
}
