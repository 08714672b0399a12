/*
 * `names MODE DIR COUNT`: asks for the sizes of files. `make`: makes COUNT files; `stat`: each of them, 10 times; `once`: each
 * of them once, and remembers them.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"

enum {
	TIMES = 10
};

static const char *named(long i)
{
	static char name[64];

	snprintf(name, sizeof(name), "file-%06ld", i);
	return name;
}

static off_t size(long i)
{
	struct stat stat;

	must(fstatat(AT_FDCWD, named(i), &stat, 0) == 0, "fstatat");
	return stat.st_size;
}

int main(int argc, char **argv)
{
	long count = number(argc, argv, 3);
	off_t sum = 0, *sizes = memory(count * sizeof(*sizes));

	if (is(argv[1], "make"))
		mkdir(argv[2], 0755);
	must(chdir(argv[2]) == 0, argv[2]);
	for (long i = 0; is(argv[1], "make") && i < count; i++) {
		int file = open(named(i), O_WRONLY | O_CREAT, 0644);

		must(file >= 0, named(i));
		close(file);
	}
	for (int times = 0; !is(argv[1], "make") && times < TIMES; times++)
		for (long i = 0; i < count; i++) {
			if (times == 0 || is(argv[1], "stat"))
				sizes[i] = size(i);
			sum += sizes[i];
		}
	printf("%ld\n", (long)sum);
	free(sizes);
	return 0;
}
