/* `again FILE MIB`: writes so much, and tries 200 times again where there is no space. */
#include <fcntl.h>
#include <unistd.h>

#include "case.h"

enum {
	MIB = 1 << 20,
	TRIES = 200
};

int main(int argc, char **argv)
{
	long count = number(argc, argv, 2), failed = 0;
	char *data = memory(MIB);
	int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);

	must(file >= 0, argv[1]);
	memset(data, 'f', MIB);
	for (long done = 0; done < count && failed < TRIES;) {
		if (write(file, data, MIB) > 0) {
			done++;
			continue;
		}
		must(errno == ENOSPC, "write");
		failed++;
	}
	printf("%ld\n", failed);
	close(file);
	free(data);
	return 0;
}
