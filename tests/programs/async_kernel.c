/*
 * Operations of io_uring and libaio that fio does not make: linked, cancelled, failed, at the file position, opened and
 * closed by the ring, with a full completion queue, without completions. Prints the result of each.
 *
 * async_kernel DIRECTORY
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "uring.h"

#define ENTRIES	    8
#define SIZE	    4096
#define BASIC_STATS 0x7ff /* STATX_BASIC_STATS of linux/stat.h, which fcntl.h does not get on with */

static char buffer[16][SIZE];

static struct io_uring_sqe *prepare(struct ring *r, int opcode, int fd, const void *addr, unsigned len, uint64_t off,
				    int flags, uint64_t name)
{
	unsigned at = *r->sq_tail + r->queued++, slot = at & *r->sq_mask;
	struct io_uring_sqe *s = &r->sqes[slot];

	memset(s, 0, sizeof(*s));
	s->opcode = opcode;
	s->fd = fd;
	s->addr = (uintptr_t)addr;
	s->len = len;
	s->off = off;
	s->flags = flags;
	s->user_data = name;
	r->sq_array[slot] = slot;
	return s;
}

/* Submits it and waits for so many completions; results by name. */
static void finish(struct ring *r, unsigned wanted, int *results)
{
	for (unsigned got = 0; got < wanted;) {
		submit(r, 1);
		while (*r->cq_head != __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE)) {
			struct io_uring_cqe *c = &r->cqes[*r->cq_head & *r->cq_mask];

			results[c->user_data] = c->res;
			__atomic_store_n(r->cq_head, *r->cq_head + 1, __ATOMIC_RELEASE);
			got++;
		}
	}
}

/* A line that the test reads. */
static void report(const char *what, const int *results, int n)
{
	printf("%s", what);
	for (int i = 0; i < n; i++)
		printf(" %d", results[i]);
	printf("\n");
}

static void rings(void)
{
	int fd = open("data", O_RDWR | O_CREAT, 0644), results[64], pipes[2];
	struct iovec vector[2] = {{buffer[0], 1000}, {buffer[1], 500}};
	struct ring r;

	CHECK(fd >= 0 && pipe(pipes) == 0);
	CHECK(ftruncate(fd, 16 * SIZE) == 0);
	setup(&r, ENTRIES, 2 * ENTRIES);

	/* A chain: its first link fails, so the others are cancelled. */
	prepare(&r, IORING_OP_READ, 999, buffer[0], SIZE, 0, IOSQE_IO_LINK, 0);
	prepare(&r, IORING_OP_WRITE, fd, buffer[0], SIZE, 0, IOSQE_IO_LINK, 1);
	prepare(&r, IORING_OP_FSYNC, fd, NULL, 0, 0, 0, 2);
	finish(&r, 3, results);
	report("broken", results, 3);

	/* One that goes through: write, flush, read. */
	prepare(&r, IORING_OP_WRITE, fd, buffer[0], SIZE, SIZE, IOSQE_IO_LINK, 0);
	prepare(&r, IORING_OP_FSYNC, fd, NULL, 0, 0, IOSQE_IO_LINK, 1);
	prepare(&r, IORING_OP_READ, fd, buffer[1], SIZE, SIZE, 0, 2);
	finish(&r, 3, results);
	report("linked", results, 3);

	/* The file position, vectors, the end of the file, a request that makes no sense. */
	CHECK(lseek(fd, 100, SEEK_SET) == 100);
	prepare(&r, IORING_OP_READ, fd, buffer[0], 50, (uint64_t)-1, 0, 0);
	finish(&r, 1, results);
	prepare(&r, IORING_OP_READV, fd, vector, 2, 7, 0, 1);
	prepare(&r, IORING_OP_WRITEV, fd, vector, 2, 9, IOSQE_ASYNC, 2);
	prepare(&r, IORING_OP_READ, fd, buffer[2], SIZE, 16 * SIZE - 11, 0, 3);
	finish(&r, 3, results);
	prepare(&r, IORING_OP_READ, fd, buffer[0], SIZE, 0, 0, 4)->ioprio = 0xffff;
	finish(&r, 1, results);
	report("mixed", results, 5);

	/* Opened, written, closed by the ring alone; and one that does not exist. */
	prepare(&r, IORING_OP_OPENAT, AT_FDCWD, "made", 0644, 0, 0, 0)->open_flags = O_RDWR | O_CREAT;
	finish(&r, 1, results);
	prepare(&r, IORING_OP_WRITE, results[0], buffer[3], 123, 0, 0, 1);
	finish(&r, 1, results);
	prepare(&r, IORING_OP_FALLOCATE, results[0], (void *)(uintptr_t)(3 * SIZE), 0, SIZE, 0, 2);
	finish(&r, 1, results);
	prepare(&r, IORING_OP_CLOSE, results[0], NULL, 0, 0, 0, 3);
	prepare(&r, IORING_OP_OPENAT, AT_FDCWD, "missing", 0, 0, 0, 4);
	finish(&r, 2, results);
	results[0] = 0;
	report("opened", results, 5);

	/* Names: one that is taken, one that is not there, and a file that gets two others. */
	prepare(&r, IORING_OP_MKDIRAT, AT_FDCWD, "dir", 0755, 0, 0, 0);
	finish(&r, 1, results);
	int dir = open("dir", O_PATH);
	CHECK(dir >= 0);
	prepare(&r, IORING_OP_MKDIRAT, AT_FDCWD, "dir", 0755, 0, 0, 1);
	prepare(&r, IORING_OP_LINKAT, AT_FDCWD, "made", dir, (uintptr_t) "linked", 0, 2);
	prepare(&r, IORING_OP_SYMLINKAT, dir, "nowhere", 0, (uintptr_t) "pointing", 0, 3);
	finish(&r, 3, results);
	prepare(&r, IORING_OP_RENAMEAT, dir, "linked", AT_FDCWD, (uintptr_t) "renamed", 0, 4);
	finish(&r, 1, results);
	prepare(&r, IORING_OP_STATX, dir, "missing", BASIC_STATS, (uintptr_t)buffer[1], 0, 5);
	prepare(&r, IORING_OP_UNLINKAT, AT_FDCWD, "renamed", 0, 0, 0, 6);
	finish(&r, 2, results);
	report("named", results, 7);

	/* A read of a pipe that nothing is written to, and its cancelling: no file I/O. */
	prepare(&r, IORING_OP_READ, pipes[0], buffer[0], 1, 0, 0, 0);
	prepare(&r, IORING_OP_ASYNC_CANCEL, -1, (void *)0, 0, 0, 0, 1);
	finish(&r, 2, results);
	report("pipe", results, 2);

	/* A read that has to wait for one of a pipe, and is cancelled with it. */
	prepare(&r, IORING_OP_READ, pipes[0], buffer[0], 1, 0, IOSQE_IO_LINK, 10);
	prepare(&r, IORING_OP_READ, fd, buffer[0], SIZE, 0, 0, 11);
	submit(&r, 0);
	prepare(&r, IORING_OP_ASYNC_CANCEL, -1, (void *)10, 0, 0, 0, 12);
	finish(&r, 3, results);
	report("cancelled", results + 10, 3);

	/* More completions than there is room for: the kernel keeps them until there is. */
	for (int i = 0; i < 40; i++) {
		prepare(&r, IORING_OP_WRITE, fd, buffer[0], 10 + i, 100 * i, 0, i);
		if (r.queued == ENTRIES)
			submit(&r, 0);
	}
	finish(&r, 40, results);
	report("overflown", results, 40);

	/* Without a completion when they succeed; the memory of their requests is used again. */
	for (int i = 0; i < 4; i++)
		prepare(&r, IORING_OP_WRITE, fd, buffer[0], SIZE, 0, IOSQE_CQE_SKIP_SUCCESS, 0);
	submit(&r, 0);
	prepare(&r, IORING_OP_FSYNC, fd, NULL, 0, 0, 0, 0);
	finish(&r, 1, results);
	CHECK(close(r.fd) == 0);
	CHECK(close(fd) == 0);
}

static void blocks(void)
{
	int fd = open("data", O_RDWR), results[4];
	struct iovec vector[2] = {{buffer[0], 300}, {buffer[1], 40}};
	struct iocb cb[5], *list[5];
	struct io_event events[5];
	aio_context_t context = 0;
	long n;

	CHECK(fd >= 0);
	memset(cb, 0, sizeof(cb));
	for (int i = 0; i < 5; i++) {
		list[i] = &cb[i];
		cb[i].aio_fildes = fd;
		cb[i].aio_data = i;
	}
	CHECK(syscall(__NR_io_setup, 8, &context) == 0);
	cb[0].aio_lio_opcode = IOCB_CMD_PWRITE;
	cb[0].aio_buf = (uintptr_t)buffer[0];
	cb[0].aio_nbytes = 200;
	cb[0].aio_offset = 50;
	cb[1].aio_lio_opcode = IOCB_CMD_PREADV;
	cb[1].aio_buf = (uintptr_t)vector;
	cb[1].aio_nbytes = 2;
	cb[1].aio_offset = 16 * SIZE - 100;
	cb[2].aio_lio_opcode = IOCB_CMD_PWRITEV;
	cb[2].aio_buf = (uintptr_t)vector;
	cb[2].aio_nbytes = 2;
	cb[3].aio_lio_opcode = IOCB_CMD_FDSYNC;
	cb[4].aio_lio_opcode = IOCB_CMD_PREAD;
	cb[4].aio_fildes = 999;
	/* The last one is refused, so four are taken. */
	n = syscall(__NR_io_submit, context, 5, list);
	CHECK(n == 4);
	CHECK(syscall(__NR_io_submit, context, 1, &list[4]) == -1 && errno == EBADF);
	for (long left = n; left; left -= n) {
		n = syscall(__NR_io_getevents, context, 1, left, events, NULL);
		if (n < 0 && errno == EINTR)
			n = 0;
		CHECK(n >= 0);
		for (long i = 0; i < n; i++)
			results[events[i].data] = events[i].res;
	}
	report("blocks", results, 4);
	/* One whose completion is not fetched: its result is not known. */
	CHECK(syscall(__NR_io_submit, context, 1, &list[0]) == 1);
	CHECK(syscall(__NR_io_destroy, context) == 0);
	CHECK(close(fd) == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2 && chdir(argv[1]) == 0);
	rings();
	blocks();
	return 0;
}
