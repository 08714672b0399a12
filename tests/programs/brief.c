/*
 * `brief DIR N`: N calls each of stdio functions that only touch a buffer, at least 10 000. Prints what it did as JSON: calls by
 * function, bytes read and written by file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	RECORD = 64,
	SMALL = 200
};

static long many;
static const char *dir;
static char out[65536];
static size_t used;

static const char *at(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static FILE *opened(const char *name, const char *mode)
{
	FILE *file = fopen(at(name), mode);

	if (!file)
		exit(2);
	return file;
}

static void report(const char *name, long read, long written)
{
	used += snprintf(out + used, sizeof(out) - used, "%s\"%s\": [%ld, %ld]", used ? ", " : "", name, read, written);
}

int main(int argc, char **argv)
{
	long puts_made = 0, appended = 0;
	char record[RECORD];
	char name[64];
	FILE *file, *other;
	int fd;

	if (argc != 3)
		return 2;
	dir = argv[1];
	many = atol(argv[2]);
	memset(record, 'r', sizeof(record));

	/* single bytes, out and in; another file is written by system calls meanwhile */
	file = opened("bytes", "w");
	fd = open(at("direct"), O_CREAT | O_WRONLY, 0644);
	for (long i = 0; i < many; i++) {
		fputc('b', file);
		if (i % 10000 == 5000 && pwrite(fd, "x", 1, i) != 1)
			return 1;
	}
	close(fd);
	fclose(file);
	file = opened("bytes", "r");
	for (long i = 0; i < many; i++)
		if (fgetc(file) != 'b')
			return 1;
	/* in the middle of a buffer, and back */
	fseek(file, 1000, SEEK_SET);
	for (long i = 0; i < 2000; i++)
		fgetc(file);
	ungetc('b', file);
	for (long i = 0; i < 2000; i++)
		fgetc(file);
	fclose(file);

	/* records, written and read back */
	file = opened("records", "w+");
	for (long i = 0; i < many; i++)
		fwrite(record, sizeof(record), 1, file);
	rewind(file);
	for (long i = 0; i < many; i++)
		if (fread(record, sizeof(record), 1, file) != 1)
			return 1;
	fclose(file);
	report("records", many * RECORD + 5000, many * RECORD);

	/* lines of different lengths, behind what is there */
	file = opened("log", "w");
	fwrite("head\n", 5, 1, file);
	fclose(file);
	file = opened("log", "a");
	for (long i = 0; i < many; i++) {
		static const char line[] = "0123456789012345678901234567890123456789\n";
		const char *from = line + i * 7 % 40;

		fputs(from, file);
		appended += strlen(from);
		puts_made++;
	}
	fclose(file);
	report("log", 0, 5 + appended);

	/* from one to the other; of the first, the byte that was pushed back is read twice */
	file = opened("bytes", "r");
	other = opened("copy", "w");
	for (long i = 0; i < many; i++)
		putc(getc(file), other);
	fclose(file);
	fclose(other);
	report("bytes", many + 4000 + many, many);
	report("copy", 0, many);

	/* many that never fill a buffer */
	for (int i = 0; i < SMALL; i++) {
		snprintf(name, sizeof(name), "small%d", i);
		file = opened(name, "w");
		for (int j = 0; j < 3; j++)
			fputs("abc", file);
		puts_made += 3;
		fclose(file);
		report(name, 0, 9);
	}

	/* left open: the C library writes what is in the buffer when the program ends */
	file = opened("left", "w");
	for (int i = 0; i < 5000; i++)
		fputc('l', file);
	report("left", 0, 5000);
	other = opened("records", "r");
	for (int i = 0; i < 5000; i++)
		fgetc(other);

	printf("{\"calls\": {\"fputc\": %ld, \"putc\": %ld, \"fgetc\": %ld, \"fwrite\": %ld, \"fread\": %ld, "
	       "\"fputs\": %ld}, "
	       "\"files\": {%s}}\n",
	       many + 5000, many, many + 4000 + many + 5000, many + 1, many, puts_made, out);
	return 0;
}
