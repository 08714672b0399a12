/*
 * An exactly known mix of system calls on files in a directory: `posix_mix DIR`.
 *
 * Every call is made through syscall(2), so that its name is the kernel's, and counted where it is made. Two threads and
 * a child (this program, executed again) take part; their counts are in the same shared memory. Linked statically: the
 * loader makes no calls before main. At its end it prints with one write
 *
 *   {"pid":..,"child":..,"calls":{"read":n,..},"errors":{"openat":n,..},"bytes":{"read":n,..}}
 *
 * That write is among the calls, its own length is not among the bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls whose result is a number of bytes. */
#define DATA(X) X(read) X(write) X(pread64) X(pwrite64) X(readv) X(writev) X(preadv) X(pwritev) X(preadv2) X(pwritev2)
/* clang-format off */
#define OTHER(X)                                                                                                      \
	X(open) X(openat) X(openat2) X(creat) X(close) X(lseek) X(fsync) X(fdatasync) X(truncate) X(ftruncate)        \
	X(fallocate) X(rename) X(renameat) X(renameat2) X(unlink) X(unlinkat) X(stat) X(lstat) X(fstat) X(newfstatat) \
	X(statx) X(dup) X(dup2) X(dup3) X(fcntl)
#define INDEX(name) I_##name,
#define NAME(name) #name,
enum { DATA(INDEX) N_DATA, I_after = N_DATA - 1, OTHER(INDEX) N_CALLS };
static const char *const NAMES[] = {DATA(NAME) OTHER(NAME)};
/* clang-format on */

struct truth {
	long calls, errors, bytes;
};

static struct truth *shared; /* N_CALLS of them, in memory that the threads and the child have too */

static long call(int index, long number, const long *a)
{
	long result = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	__atomic_add_fetch(&shared[index].calls, 1, __ATOMIC_RELAXED);
	if (result < 0)
		__atomic_add_fetch(&shared[index].errors, 1, __ATOMIC_RELAXED);
	else if (index < N_DATA)
		__atomic_add_fetch(&shared[index].bytes, result, __ATOMIC_RELAXED);
	return result;
}

#define SYS(name, ...) call(I_##name, SYS_##name, (const long[6]){__VA_ARGS__})
#define P(pointer)     ((long)(pointer))

static void expect(int line, const char *what, long result, long wanted)
{
	if (result == wanted)
		return;
	fprintf(stderr, "posix_mix.c:%d: %s gave %ld (%s) and not %ld\n", line, what, result, strerror(errno), wanted);
	_exit(1);
}

/* A call that must return exactly this. */
#define IS(wanted, name, ...) expect(__LINE__, #name, SYS(name, __VA_ARGS__), wanted)
/* A call that must fail with this error. */
#define FAILS(error, name, ...) (IS(-1, name, __VA_ARGS__), expect(__LINE__, #name " errno", errno, error))

static int opened(int line, long fd)
{
	if (fd < 0)
		expect(line, "an open", fd, 0);
	return (int)fd;
}

/* A call that makes a descriptor. */
#define FD(name, ...) opened(__LINE__, SYS(name, __VA_ARGS__))

enum {
	BLOCK = 4096,
	BLOCKS = 16,
	THREADS = 2,
	THREAD_BLOCKS = 50,
	CLOSED = 900
};

static char buffer[BLOCK];

static void data_calls(const char *path)
{
	char other[BLOCK];
	struct iovec two[2] = {{buffer, 1000}, {other, 500}};
	memset(other, 'o', sizeof(other));
	int fd = FD(openat, AT_FDCWD, P(path), O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (int i = 0; i < BLOCKS; i++)
		IS(BLOCK, write, fd, P(buffer), BLOCK);
	IS(0, lseek, fd, 0, SEEK_SET);
	for (int i = 0; i < BLOCKS; i++)
		IS(BLOCK, read, fd, P(buffer), BLOCK);
	IS(0, read, fd, P(buffer), BLOCK); /* the end of the file */
	for (int i = 0; i < BLOCKS; i++)
		IS(BLOCK, pwrite64, fd, P(buffer), BLOCK, (long)i * 2 * BLOCK);
	IS(BLOCK, pread64, fd, P(buffer), BLOCK, 3 * BLOCK);
	IS(100, pread64, fd, P(buffer), BLOCK, (2 * BLOCKS - 1) * BLOCK - 100); /* short: the file ends there */
	IS(10, lseek, fd, 10, SEEK_SET);
	IS(1500, writev, fd, P(two), 2);
	IS(1510, lseek, fd, 0, SEEK_CUR);
	IS(10, lseek, fd, -1500, SEEK_CUR);
	IS(1500, readv, fd, P(two), 2);
	IS(1500, pwritev, fd, P(two), 2, 5000, 0);
	IS(1500, preadv, fd, P(two), 2, 5000, 0);
	IS(1500, pwritev2, fd, P(two), 2, 9000, 0, 0);
	IS(1500, preadv2, fd, P(two), 2, 9000, 0, 0);
	/* Offset -1 is the file position, which moves. */
	IS(0, lseek, fd, 0, SEEK_SET);
	IS(1500, pwritev2, fd, P(two), 2, -1, -1, 0);
	IS(1500, preadv2, fd, P(two), 2, -1, -1, 0);
	IS(3000, lseek, fd, 0, SEEK_CUR);
	IS(0, write, fd, P(buffer), 0);
	IS(0, fdatasync, fd);
	IS(0, fsync, fd);
	IS(0, close, fd);
}

static void opens(const char *path)
{
	struct open_how how = {.flags = O_RDONLY};
	IS(0, close, FD(open, P(path), O_RDWR | O_CREAT, 0644));
	IS(0, close, FD(creat, P(path), 0644));
	IS(0, close, FD(openat2, AT_FDCWD, P(path), P(&how), sizeof(how)));
	int fd = FD(openat, AT_FDCWD, P(path), O_RDWR, 0);
	IS(0, fallocate, fd, 0, 0, 8 * BLOCK);
	IS(0, ftruncate, fd, 2 * BLOCK);
	IS(0, truncate, P(path), BLOCK);

	/* Other names of one open file share its position. */
	int second = FD(dup, fd);
	IS(CLOSED, dup2, fd, CLOSED);
	IS(CLOSED + 1, dup3, fd, CLOSED + 1, O_CLOEXEC);
	int fifth = FD(fcntl, fd, F_DUPFD, 500);
	int sixth = FD(fcntl, fd, F_DUPFD_CLOEXEC, 600);
	IS(BLOCK, write, second, P(buffer), BLOCK);
	IS(BLOCK, lseek, sixth, 0, SEEK_CUR);
	IS(0, close, second);
	IS(0, close, CLOSED);
	IS(0, close, CLOSED + 1);
	IS(0, close, fifth);
	IS(0, close, sixth);
	IS(0, close, fd);
}

static void names(int dir, const char *path, const char *renamed)
{
	struct stat st;
	struct statx stx;
	const char *base = strrchr(path, '/') + 1, *new_base = strrchr(renamed, '/') + 1;
	IS(0, stat, P(path), P(&st));
	IS(0, lstat, P(path), P(&st));
	IS(0, newfstatat, dir, P(base), P(&st), AT_SYMLINK_NOFOLLOW);
	IS(0, statx, dir, P(base), 0, STATX_BASIC_STATS, P(&stx));
	int fd = FD(openat, dir, P(base), O_RDONLY, 0);
	IS(0, fstat, fd, P(&st));
	IS(0, close, fd);
	IS(0, rename, P(path), P(renamed));
	IS(0, renameat, dir, P(new_base), dir, P(base));
	IS(0, renameat2, dir, P(base), dir, P(new_base), RENAME_NOREPLACE);
	IS(0, unlink, P(renamed));
	fd = FD(openat, dir, P(base), O_WRONLY | O_CREAT, 0644);
	IS(0, unlinkat, dir, P(base), 0);
	IS(BLOCK, write, fd, P(buffer), BLOCK); /* to a file that has no name any more */
	IS(0, close, fd);
}

static void failures(int dir)
{
	struct stat st;
	struct statx stx;
	struct open_how how = {.flags = O_RDONLY};
	struct iovec one = {buffer, BLOCK};
	FAILS(ENOENT, open, P("no/such"), O_RDONLY);
	FAILS(ENOENT, openat, dir, P("no/such"), O_RDONLY);
	FAILS(ENOENT, openat2, dir, P("no/such"), P(&how), sizeof(how));
	FAILS(ENOENT, creat, P("no/such"), 0644);
	FAILS(ENOENT, stat, P("no/such"), P(&st));
	FAILS(ENOENT, lstat, P("no/such"), P(&st));
	FAILS(ENOENT, newfstatat, dir, P("no/such"), P(&st), 0);
	FAILS(ENOENT, statx, dir, P("no/such"), 0, STATX_BASIC_STATS, P(&stx));
	FAILS(ENOENT, truncate, P("no/such"), 0);
	FAILS(ENOENT, unlink, P("no/such"));
	FAILS(ENOENT, unlinkat, dir, P("no/such"), 0);
	FAILS(ENOENT, rename, P("no/such"), P("no/other"));
	FAILS(EBADF, read, CLOSED, P(buffer), BLOCK);
	FAILS(EBADF, write, CLOSED, P(buffer), BLOCK);
	FAILS(EBADF, pread64, CLOSED, P(buffer), BLOCK, 0);
	FAILS(EBADF, pwritev, CLOSED, P(&one), 1, 0, 0);
	FAILS(EBADF, close, CLOSED);
	FAILS(EBADF, lseek, CLOSED, 0, SEEK_SET);
	FAILS(EBADF, fsync, CLOSED);
	FAILS(EBADF, dup, CLOSED);
	FAILS(EFAULT, open, 8, O_RDONLY);
}

static int thread_fd;

static void *thread(void *argument)
{
	long first = P(argument) * THREAD_BLOCKS;
	for (long i = first; i < first + THREAD_BLOCKS; i++)
		IS(BLOCK, pwrite64, thread_fd, P(buffer), BLOCK, i * BLOCK);
	return NULL;
}

static void threads(const char *path)
{
	pthread_t all[THREADS];
	thread_fd = FD(openat, AT_FDCWD, P(path), O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (long i = 0; i < THREADS; i++)
		expect(__LINE__, "pthread_create", pthread_create(&all[i], NULL, thread, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
	IS(0, close, thread_fd);
}

/* Executed by the parent: one descriptor came along, the other was closed by the exec. */
static void child(int inherited, int closed)
{
	IS(BLOCK, write, inherited, P(buffer), BLOCK);
	FAILS(EBADF, write, closed, P(buffer), BLOCK);
	IS(0, close, inherited);
}

static int run_child(const char *path, int memory)
{
	char numbers[3][16];
	int inherited = FD(openat, AT_FDCWD, P(path), O_RDWR | O_CREAT | O_TRUNC, 0644);
	int closed = FD(openat, AT_FDCWD, P(path), O_RDWR | O_CLOEXEC, 0);
	pid_t pid = fork();
	if (pid == 0) {
		IS(100, write, inherited, P(buffer), 100); /* between fork and exec */
		snprintf(numbers[0], sizeof(numbers[0]), "%d", memory);
		snprintf(numbers[1], sizeof(numbers[1]), "%d", inherited);
		snprintf(numbers[2], sizeof(numbers[2]), "%d", closed);
		execl("/proc/self/exe", "posix_mix", "--child", numbers[0], numbers[1], numbers[2], NULL);
		_exit(127);
	}
	int status;
	expect(__LINE__, "waitpid", waitpid(pid, &status, 0), pid);
	expect(__LINE__, "the child's status", status, 0);
	/* The child moved the position that both share. */
	IS(100 + BLOCK, lseek, inherited, 0, SEEK_CUR);
	IS(0, close, inherited);
	IS(0, close, closed);
	return pid;
}

static void share(int memory)
{
	shared = mmap(NULL, N_CALLS * sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (shared == MAP_FAILED)
		expect(__LINE__, "mmap", -1, 0);
}

static char text[8192];
static size_t text_at;

#define REPORT(...) (text_at += (size_t)snprintf(text + text_at, sizeof(text) - text_at, __VA_ARGS__))

int main(int argc, char **argv)
{
	char path[4096], renamed[4096];
	memset(buffer, 'b', sizeof(buffer));
	if (argc == 5 && !strcmp(argv[1], "--child")) {
		share(atoi(argv[2]));
		child(atoi(argv[3]), atoi(argv[4]));
		return 0;
	}
	if (argc != 2) {
		fprintf(stderr, "usage: posix_mix DIR\n");
		return 2;
	}
	/* The first ftruncate is made before there is a place to count it. */
	int memory = memfd_create("truth", 0);
	if (memory < 0 || ftruncate(memory, N_CALLS * sizeof(*shared)))
		expect(__LINE__, "memfd_create", -1, 0);
	share(memory);
	shared[I_ftruncate].calls++;

	int dir = FD(openat, AT_FDCWD, P(argv[1]), O_RDONLY | O_DIRECTORY, 0);
	snprintf(path, sizeof(path), "%s/data", argv[1]);
	snprintf(renamed, sizeof(renamed), "%s/renamed", argv[1]);
	data_calls(path);
	snprintf(path, sizeof(path), "%s/opens", argv[1]);
	opens(path);
	names(dir, path, renamed);
	failures(dir);
	snprintf(path, sizeof(path), "%s/threads", argv[1]);
	threads(path);
	snprintf(path, sizeof(path), "%s/child", argv[1]);
	int pid = run_child(path, memory);
	IS(0, fcntl, dir, F_GETFD); /* not a call that makes a descriptor */
	IS(0, close, dir);

	shared[I_write].calls++; /* the one below */
	REPORT("{\"pid\":%d,\"child\":%d,\"calls\":{", getpid(), pid);
	for (int i = 0; i < N_CALLS; i++)
		REPORT("%s\"%s\":%ld", i ? "," : "", NAMES[i], shared[i].calls);
	REPORT("},\"errors\":{");
	for (int i = 0; i < N_CALLS; i++)
		REPORT("%s\"%s\":%ld", i ? "," : "", NAMES[i], shared[i].errors);
	REPORT("},\"bytes\":{");
	for (int i = 0; i < N_DATA; i++)
		REPORT("%s\"%s\":%ld", i ? "," : "", NAMES[i], shared[i].bytes);
	REPORT("}}\n");
	return write(1, text, text_at) == (ssize_t)text_at ? 0 : 1;
}
