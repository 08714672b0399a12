/*
 * Reads the kernel's description of its memory, as libraries do at times that they do not report: by a stream three times, by
 * descriptor twice. Prints how many bytes it read in each way.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAPS "/proc/self/maps"

__attribute__((noinline)) long look_by_stream(void)
{
	char line[4096];
	long sum = 0;
	FILE *maps = fopen(MAPS, "r");

	if (!maps)
		return -1;
	while (fgets(line, sizeof(line), maps))
		sum += (long)strlen(line);
	fclose(maps);
	return sum;
}

__attribute__((noinline)) long look_by_descriptor(void)
{
	char part[4096];
	long sum = 0, n;
	int fd = open(MAPS, O_RDONLY);

	if (fd < 0)
		return -1;
	while ((n = read(fd, part, sizeof(part))) > 0)
		sum += n;
	close(fd);
	return sum;
}

int main(void)
{
	long streams = 0, descriptors = 0;

	for (int i = 0; i < 3; i++)
		streams += look_by_stream();
	for (int i = 0; i < 2; i++)
		descriptors += look_by_descriptor();
	if (access("/sys/kernel/no/such", R_OK) == 0 || fopen("/proc/self/no/such", "r"))
		return 1;
	printf("%d %ld %ld\n", (int)getpid(), streams, descriptors);
	return 0;
}
