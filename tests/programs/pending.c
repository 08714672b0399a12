/*
 * Operations of io_uring that all wait at once: reads of a file that may not begin before one of a pipe has ended, on two rings,
 * and some more when these are over. Prints how many reads of the file gave what they should.
 *
 * pending FILE COUNT MORE
 */
#include <fcntl.h>
#include <inttypes.h>

#include "uring.h"

#define ENTRIES 4096
#define RINGS	2

static char byte[2];
static long good;

/* A read of one byte. */
static void prepare(struct ring *r, int fd, void *to, int flags, uint64_t name)
{
	unsigned slot = (*r->sq_tail + r->queued++) & *r->sq_mask;

	r->sqes[slot] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ, .fd = fd, .addr = (uintptr_t)to, .len = 1, .flags = flags, .user_data = name};
	r->sq_array[slot] = slot;
	if (r->queued == ENTRIES)
		submit(r, 0);
}

/* Waits for so many completions; those of the file have a name. */
static void finish(struct ring *r, long wanted)
{
	while (wanted > 0) {
		CHECK(syscall(__NR_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 0);
		while (*r->cq_head != __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE)) {
			struct io_uring_cqe *c = &r->cqes[*r->cq_head & *r->cq_mask];

			good += c->user_data && c->res == 1;
			__atomic_store_n(r->cq_head, *r->cq_head + 1, __ATOMIC_RELEASE);
			wanted--;
		}
	}
}

int main(int argc, char **argv)
{
	static struct ring rings[RINGS];
	long count, more;
	int fd, pipes[RINGS][2];

	CHECK(argc == 4);
	count = atol(argv[2]) / RINGS;
	more = atol(argv[3]);
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	for (int i = 0; i < RINGS; i++) {
		struct ring *r = &rings[i];

		setup(r, ENTRIES, count + 1);
		CHECK(pipe(pipes[i]) == 0);
		prepare(r, pipes[i][0], byte, 0, 0);
		for (long n = 0; n < count; n++)
			prepare(r, fd, byte + 1, n ? 0 : IOSQE_IO_DRAIN, 1);
		submit(r, 0);
	}
	for (int i = 0; i < RINGS; i++) {
		CHECK(write(pipes[i][1], "y", 1) == 1);
		finish(&rings[i], count + 1);
	}
	for (long n = 0; n < more; n++)
		prepare(&rings[0], fd, byte + 1, 0, 1);
	submit(&rings[0], 0);
	finish(&rings[0], more);
	printf("%ld\n", good);
	return 0;
}
