/* Opens a file as the very first thing it does: `first_call FILE`. A tracer that comes late misses it. */
#include <stdio.h>

int main(int argc, char **argv)
{
	FILE *file = fopen(argv[argc - 1], "w");
	if (!file)
		return 1;
	if (fwrite("first\n", 1, 6, file) != 6)
		return 1;
	return fclose(file) != 0;
}
