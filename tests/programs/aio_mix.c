/*
 * An exactly known mix of POSIX asynchronous I/O: `aio_mix DIR`.
 *
 * Prints {"pid":..,"calls":{"aio_write":n,..},"read":bytes,"written":bytes}. Each operation has its own place in the
 * file; aio_error is counted when it returns that an operation has ended, for it is asked over and over until then.
 */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>

#include "truth.h"

#define AIO(f, ...) COUNT("aio", f, __VA_ARGS__)

enum {
	BLOCK = 10000,
	BLOCKS = 8,
	LIST = 3,
};

static char data[BLOCKS][BLOCK];
static struct aiocb blocks[BLOCKS];

static struct aiocb *block(int fd, int number, int opcode)
{
	blocks[number] = (struct aiocb){
		.aio_fildes = fd,
		.aio_buf = data[number],
		.aio_nbytes = (size_t)(BLOCK - number),
		.aio_offset = (off_t)number * BLOCK,
		.aio_lio_opcode = opcode,
	};
	return &blocks[number];
}

/* Waits by asking; returns what the operation moved. */
static long ended(struct aiocb *one)
{
	int error;
	while ((error = aio_error(one)) == EINPROGRESS)
		usleep(100);
	CHECK(error == 0);
	tally("aio", "aio_error", 1);
	return AIO(aio_return, one);
}

int main(int argc, char **argv)
{
	char path[4096], text[4096];
	struct aiocb *list[LIST], sync = {0};
	CHECK(argc == 2);
	snprintf(path, sizeof(path), "%s/aio.dat", argv[1]);
	int fd = open(path, O_CREAT | O_RDWR, 0600);
	CHECK(fd >= 0);

	for (int i = 0; i < 4; i++)
		CHECK(AIO(aio_write, block(fd, i, 0)) == 0);
	for (int i = 0; i < 4; i++)
		tally("aio", "_written", ended(&blocks[i]));

	for (int i = 0; i < LIST; i++)
		list[i] = block(fd, 4 + i, LIO_WRITE);
	CHECK(AIO(lio_listio, LIO_NOWAIT, list, LIST, NULL) == 0);
	for (int i = 0; i < LIST; i++)
		tally("aio", "_written", ended(list[i]));

	sync.aio_fildes = fd;
	CHECK(AIO(aio_fsync, O_SYNC, &sync) == 0);
	CHECK(ended(&sync) == 0);

	CHECK(AIO(aio_read, block(fd, 0, 0)) == 0);
	const struct aiocb *one[] = {&blocks[0]};
	CHECK(AIO(aio_suspend, one, 1, NULL) == 0);
	tally("aio", "_read", ended(&blocks[0]));
	/* Ends behind the end of the file. */
	CHECK(AIO(aio_read, block(fd, 7, 0)) == 0);
	tally("aio", "_read", ended(&blocks[7]));
	/* What has ended is not cancelled. */
	CHECK(AIO(aio_cancel, fd, &blocks[7]) == AIO_ALLDONE);

	snprintf(text, sizeof(text), "{\"pid\":%d,\"calls\":", getpid());
	truth_calls(text, sizeof(text), "aio");
	size_t at = strlen(text);
	snprintf(text + at, sizeof(text) - at, ",\"read\":%ld,\"written\":%ld}\n", truth_bytes("aio", "_read"),
		 truth_bytes("aio", "_written"));
	return truth_write(1, text) ? 1 : 0;
}
