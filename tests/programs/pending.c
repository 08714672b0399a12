/*
 * Operations of io_uring that all wait at once: reads of a file that may not begin before one of a pipe has ended, on two rings,
 * and some more when these are over. Prints how many reads of the file gave what they should.
 *
 * pending FILE COUNT MORE
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(x)                                                                                                       \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #x, strerror(errno));                           \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#define ENTRIES 4096
#define RINGS	2

struct ring {
	int fd, pipes[2];
	unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask, queued;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static char byte[2];
static long good;

static void setup(struct ring *r, unsigned completions)
{
	struct io_uring_params p = {.flags = IORING_SETUP_CQSIZE, .cq_entries = completions};
	char *sq, *cq;

	r->fd = syscall(__NR_io_uring_setup, ENTRIES, &p);
	CHECK(r->fd >= 0 && pipe(r->pipes) == 0);
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED,
		  r->fd, IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		       IORING_OFF_SQES);
	CHECK(sq != MAP_FAILED && cq != MAP_FAILED && r->sqes != MAP_FAILED);
	r->sq_tail = (unsigned *)(sq + p.sq_off.tail);
	r->sq_mask = (unsigned *)(sq + p.sq_off.ring_mask);
	r->sq_array = (unsigned *)(sq + p.sq_off.array);
	r->cq_head = (unsigned *)(cq + p.cq_off.head);
	r->cq_tail = (unsigned *)(cq + p.cq_off.tail);
	r->cq_mask = (unsigned *)(cq + p.cq_off.ring_mask);
	r->cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
}

static void submit(struct ring *r)
{
	unsigned n = r->queued;

	__atomic_store_n(r->sq_tail, *r->sq_tail + n, __ATOMIC_RELEASE);
	r->queued = 0;
	CHECK(syscall(__NR_io_uring_enter, r->fd, n, 0, 0, NULL, 0) == (long)n);
}

/* A read of one byte. */
static void prepare(struct ring *r, int fd, void *to, int flags, uint64_t name)
{
	unsigned slot = (*r->sq_tail + r->queued++) & *r->sq_mask;

	r->sqes[slot] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ, .fd = fd, .addr = (uintptr_t)to, .len = 1, .flags = flags, .user_data = name};
	r->sq_array[slot] = slot;
	if (r->queued == ENTRIES)
		submit(r);
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
	int fd;

	CHECK(argc == 4);
	count = atol(argv[2]) / RINGS;
	more = atol(argv[3]);
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	for (int i = 0; i < RINGS; i++) {
		struct ring *r = &rings[i];

		setup(r, count + 1);
		prepare(r, r->pipes[0], byte, 0, 0);
		for (long n = 0; n < count; n++)
			prepare(r, fd, byte + 1, n ? 0 : IOSQE_IO_DRAIN, 1);
		submit(r);
	}
	for (int i = 0; i < RINGS; i++) {
		CHECK(write(rings[i].pipes[1], "y", 1) == 1);
		finish(&rings[i], count + 1);
	}
	for (long n = 0; n < more; n++)
		prepare(&rings[0], fd, byte + 1, 0, 1);
	submit(&rings[0]);
	finish(&rings[0], more);
	printf("%ld\n", good);
	return 0;
}
