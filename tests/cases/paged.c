/* `paged MIB TIMES`: writes to each page of so much memory, so many times. */
#include "case.h"

enum {
	MIB = 1 << 20,
	PAGE = 4096
};

int main(int argc, char **argv)
{
	long size = number(argc, argv, 1) * MIB, times = number(argc, argv, 2), sum = 0;
	char *data = memory(size);

	for (long i = 0; i < times; i++)
		for (long at = 0; at < size; at += PAGE)
			sum += ++data[at];
	printf("%ld\n", sum);
	free(data);
	return 0;
}
