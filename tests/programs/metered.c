/*
 * Exactly known I/O, and then a pause until stdin ends: `metered DIR`.
 *
 * Writes and reads DIR/text as a stream, and DIR/direct by system calls past the page cache; some calls fail. Then writes
 *
 *   {"pid":..,"stdio":{"fwrite":n,..},"posix":{"pwritev":n,..},"bytes":{"stdio":[read,written],"direct":[read,written]}}
 *
 * and calls fdatasync, which is counted there and is the last call on a file. Ends when its standard input does.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "truth.h"

#define STDIO(f, ...) COUNT("stdio", f, __VA_ARGS__)
#define POSIX(f, ...) COUNT("posix", f, __VA_ARGS__)

enum {
	LINE = 1000,
	LINES = 100,
	BLOCK = 64 * 1024,
	BLOCKS = 16,
	FAILED = 5,
	CLOSED = 900
};

static void stream(const char *path)
{
	char line[LINE];
	memset(line, 'l', sizeof(line));
	FILE *file = STDIO(fopen, path, "w+");
	CHECK(file);
	for (int i = 0; i < LINES; i++)
		CHECK(STDIO(fwrite, line, 1, LINE, file) == LINE);
	CHECK(STDIO(fseek, file, 0, SEEK_SET) == 0);
	for (int i = 0; i < LINES / 2; i++)
		CHECK(STDIO(fread, line, 1, LINE, file) == LINE);
	CHECK(STDIO(fclose, file) == 0);
	CHECK(!STDIO(fopen, "/no/such/directory/file", "r"));
}

static void blocks(int fd)
{
	struct iovec one = {aligned_alloc(BLOCK, BLOCK), BLOCK};
	CHECK(one.iov_base);
	memset(one.iov_base, 'b', BLOCK);
	for (long i = 0; i < BLOCKS; i++)
		CHECK(POSIX(pwritev, fd, &one, 1, i * BLOCK) == BLOCK);
	for (long i = 0; i < BLOCKS; i++)
		CHECK(POSIX(preadv, fd, &one, 1, i * BLOCK) == BLOCK);
	for (int i = 0; i < FAILED; i++)
		CHECK(POSIX(pwritev, CLOSED, &one, 1, 0) == -1 && errno == EBADF);
}

int main(int argc, char **argv)
{
	char path[4096], text[4096], byte;
	if (argc != 2) {
		truth_write(2, "usage: metered DIR\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/text", argv[1]);
	stream(path);
	snprintf(path, sizeof(path), "%s/direct", argv[1]);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0644);
	CHECK(fd >= 0);
	blocks(fd);

	tally("posix", "fdatasync", 1);
	snprintf(text, sizeof(text), "{\"pid\":%d,\"stdio\":", getpid());
	truth_calls(text, sizeof(text), "stdio");
	strcat(text, ",\"posix\":");
	truth_calls(text, sizeof(text), "posix");
	size_t at = strlen(text);
	snprintf(text + at, sizeof(text) - at, ",\"bytes\":{\"stdio\":[%d,%d],\"direct\":[%d,%d]}}\n", LINE * LINES / 2,
		 LINE * LINES, BLOCK * BLOCKS, BLOCK * BLOCKS);
	CHECK(truth_write(1, text) == 0);
	CHECK(fdatasync(fd) == 0);
	while (read(0, &byte, 1) > 0)
		;
	_exit(0);
}
