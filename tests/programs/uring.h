/* A ring of io_uring, as the kernel alone offers it. */
#ifndef URING_H
#define URING_H

#include <errno.h>
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

struct ring {
	int fd;
	unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	unsigned queued;
};

/* With room for so many submissions and completions. */
static inline void setup(struct ring *r, unsigned entries, unsigned completions)
{
	struct io_uring_params p = {.flags = IORING_SETUP_CQSIZE, .cq_entries = completions};
	char *sq, *cq;

	memset(r, 0, sizeof(*r));
	r->fd = syscall(__NR_io_uring_setup, entries, &p);
	CHECK(r->fd >= 0);
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

/* Submits what is prepared, and waits for so many completions. */
static inline void submit(struct ring *r, unsigned wait)
{
	unsigned n = r->queued;

	__atomic_store_n(r->sq_tail, *r->sq_tail + n, __ATOMIC_RELEASE);
	r->queued = 0;
	CHECK(syscall(__NR_io_uring_enter, r->fd, n, wait, wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0) == (long)n);
}

#endif
