/* System calls. */
#include <fcntl.h>
#include <sys/uio.h>

static int fd[HANDLES];
static struct stat status;

/* The call succeeds. */
static inline long long good(const char *call, long long result)
{
	if (result < 0)
		fail("%s: %s", call, strerror(errno));
	return result;
}

/* The call returns what it returned in the trace. */
static inline void same(const char *call, long long expected, long long result)
{
	if (good(call, result) != expected)
		fail("%s returned %lld, and %lld in the trace", call, result, expected);
}

/* The data in one piece. */
static inline const struct iovec *vector(long long bytes)
{
	static struct iovec piece;

	piece.iov_base = buffer;
	piece.iov_len = (size_t)bytes;
	return &piece;
}

static inline void finish(void)
{
	(void)fd;
	(void)status;
}
