/*
 * Each system call of the catalog at least once, on files in a directory: `posix_all DIR`.
 *
 * Every call is made through syscall(2), so that its name is the kernel's, and counted where it is made. Linked statically:
 * the loader makes no calls before main. At its end it writes {"calls":{"read":n,..}} to DIR/truth.json, calls that it does
 * not count. Calls on memory without a file and on pipes are made, too, and not counted: they are none on files.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "truth.h"

/* Younger than the C library's headers. */
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat	  463
#define SYS_getxattrat	  464
#define SYS_listxattrat	  465
#define SYS_removexattrat 466
#endif

enum {
	BLOCK = 4096,
	FAR = 300 /* a descriptor that nothing else gets */
};

/* A call, counted. What it returns matters only where a comment has it: strace sees the same errors. */
#define SYS(name, ...) (tally("sys", #name, 1), syscall(SYS_##name, __VA_ARGS__))
#define FD(name, ...)  descriptor(SYS(name, __VA_ARGS__))
#define HERE	       AT_FDCWD

static char buffer[BLOCK];

static int descriptor(long fd)
{
	CHECK(fd >= 0);
	return (int)fd;
}

static void data(void)
{
	struct iovec two[2] = {{buffer, 1000}, {buffer, 500}};
	int fd = FD(openat, HERE, "data", O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(SYS(write, fd, buffer, BLOCK) == BLOCK);
	SYS(pwrite64, fd, buffer, BLOCK, BLOCK);
	SYS(writev, fd, two, 2);
	SYS(pwritev, fd, two, 2, 100, 0);
	SYS(pwritev2, fd, two, 2, 100, 0, 0);
	SYS(lseek, fd, 0, SEEK_SET);
	CHECK(SYS(read, fd, buffer, BLOCK) == BLOCK);
	SYS(pread64, fd, buffer, 100, 7);
	SYS(readv, fd, two, 2);
	SYS(preadv, fd, two, 2, 100, 0);
	SYS(preadv2, fd, two, 2, 100, 0, 0);
	SYS(fsync, fd);
	SYS(fdatasync, fd);
	SYS(sync_file_range, fd, 0, BLOCK, SYNC_FILE_RANGE_WRITE);
	SYS(syncfs, fd);
	SYS(sync, 0);
	SYS(readahead, fd, 0, BLOCK);
	SYS(fadvise64, fd, BLOCK, 0, POSIX_FADV_DONTNEED);
	SYS(ftruncate, fd, 3 * BLOCK);
	SYS(truncate, "data", 2 * BLOCK);
	SYS(fallocate, fd, 0, 0, 4 * BLOCK);
	int to = FD(openat, HERE, "copy", O_RDWR | O_CREAT | O_TRUNC, 0644), ends[2];
	SYS(lseek, fd, 0, SEEK_SET);
	CHECK(SYS(copy_file_range, fd, NULL, to, NULL, 100, 0) == 100);
	CHECK(SYS(sendfile, to, fd, NULL, 200) == 200);
	CHECK(!pipe(ends));
	CHECK(SYS(splice, fd, NULL, ends[1], NULL, 300, 0) == 300);
	CHECK(SYS(splice, ends[0], NULL, to, NULL, 300, 0) == 300);
	close(ends[0]);
	close(ends[1]);
	SYS(close, to);
	SYS(flock, fd, LOCK_EX);
	SYS(flock, fd, LOCK_UN);
	SYS(close, fd);
}

static void mappings(void)
{
	int fd = FD(openat, HERE, "data", O_RDWR, 0);
	char *at = (char *)SYS(mmap, NULL, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, BLOCK);
	CHECK(at != MAP_FAILED);
	SYS(close, fd);
	at[0] = 'm';
	SYS(msync, at + BLOCK, BLOCK, MS_SYNC);
	SYS(madvise, at, 2 * BLOCK, MADV_WILLNEED);
	at = (char *)SYS(mremap, at, 2 * BLOCK, BLOCK, MREMAP_MAYMOVE, NULL);
	SYS(munmap, at, BLOCK);
	CHECK(SYS(mmap, NULL, BLOCK, PROT_READ, MAP_SHARED, FAR, 0) == -1);

	at = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	madvise(at, BLOCK, MADV_WILLNEED);
	munmap(at, 2 * BLOCK);
	munmap(at, 2 * BLOCK);
}

static void opens(void)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};
	struct {
		struct file_handle head;
		unsigned char bytes[128];
	} handle = {.head.handle_bytes = 128};
	int mount;
	SYS(close, FD(open, "data", O_RDONLY));
	SYS(close, FD(creat, "made", 0644));
	SYS(close, FD(openat2, HERE, "data", &how, sizeof(how)));
	int dir = FD(open, ".", O_RDONLY | O_DIRECTORY);
	CHECK(!SYS(name_to_handle_at, HERE, "data", &handle, &mount, 0));
	long fd = SYS(open_by_handle_at, dir, &handle, O_RDWR);
	if (fd >= 0)
		SYS(close, fd);
	fd = FD(memfd_create, "memory", MFD_CLOEXEC);
	CHECK(SYS(write, fd, buffer, 100) == 100);
	SYS(close, fd);
	SYS(getdents64, dir, buffer, BLOCK);
	SYS(getdents, dir, buffer, BLOCK);
	SYS(fchdir, dir);
	SYS(close, dir);
	SYS(chdir, ".");
	SYS(chdir, "no/such");
	CHECK(SYS(execve, "no/such", NULL, NULL) == -1);
	CHECK(SYS(execveat, HERE, "no/such", NULL, NULL, 0) == -1);
}

static void descriptors(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 100};
	int fd = FD(openat, HERE, "data", O_RDWR, 0);
	SYS(dup2, fd, FAR);
	SYS(dup3, fd, FAR + 1, O_CLOEXEC);
	CHECK(SYS(fcntl, fd, F_DUPFD, FAR + 2) == FAR + 2);
	CHECK(SYS(fcntl, fd, F_DUPFD_CLOEXEC, FAR + 3) == FAR + 3);
	SYS(fcntl, fd, F_SETFD, FD_CLOEXEC);
	SYS(fcntl, fd, F_GETFL, 0);
	SYS(fcntl, fd, F_SETFL, O_APPEND);
	SYS(fcntl, fd, F_SETLK, &lock);
	SYS(fcntl, fd, F_SETLKW, &lock);
	lock.l_type = F_UNLCK;
	SYS(fcntl, fd, F_OFD_SETLK, &lock);
	CHECK(!SYS(close_range, FAR + 1, FAR + 3, 0));
	CHECK(SYS(write, FAR + 2, buffer, 1) == -1);
	SYS(close, SYS(dup, FAR));
	SYS(close_range, FAR, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
	SYS(close_range, 2, 1, 0);
	SYS(close, FAR);
	SYS(close, fd);

	int ends[2];
	CHECK(!pipe(ends));
	CHECK(write(ends[1], buffer, 10) == 10);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	close(ends[0]);
	close(ends[1]);
}

static void names(void)
{
	int dir = FD(open, ".", O_RDONLY | O_DIRECTORY);
	SYS(mkdir, "d", 0755);
	SYS(mkdirat, dir, "e", 0755);
	SYS(mkdir, "no/such", 0755);
	SYS(rmdir, "d");
	SYS(unlinkat, dir, "e", AT_REMOVEDIR);
	SYS(link, "data", "hard");
	SYS(linkat, dir, "data", dir, "harder", 0);
	SYS(symlink, "data", "soft");
	SYS(symlinkat, "data", dir, "softer");
	CHECK(SYS(readlink, "soft", buffer, BLOCK) == 4);
	CHECK(SYS(readlinkat, dir, "softer", buffer, BLOCK) == 4);
	SYS(mknod, "fifo", S_IFIFO | 0644, 0);
	SYS(mknodat, dir, "other", S_IFIFO | 0644, 0);
	SYS(rename, "hard", "moved");
	SYS(renameat, dir, "moved", dir, "hard");
	SYS(renameat2, dir, "hard", dir, "moved", 0);
	SYS(unlink, "moved");
	SYS(unlinkat, dir, "harder", 0);
	SYS(unlink, "no/such");
	SYS(access, "data", R_OK);
	SYS(access, "no/such", R_OK);
	SYS(faccessat, dir, "data", R_OK);
	SYS(faccessat2, dir, "data", R_OK, 0);
	SYS(access, "/proc/self/maps", R_OK);
	SYS(access, "/sys/kernel", R_OK);
	SYS(close, dir);
}

static void attributes(void)
{
	struct stat st;
	struct statx stx;
	struct statfs fs;
	struct timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
	int fd = FD(openat, HERE, "data", O_RDWR, 0);
	SYS(stat, "data", &st);
	SYS(lstat, "soft", &st);
	SYS(fstat, fd, &st);
	SYS(newfstatat, HERE, "data", &st, 0);
	SYS(newfstatat, fd, "", &st, AT_EMPTY_PATH);
	SYS(statx, HERE, "data", 0, STATX_BASIC_STATS, &stx);
	SYS(statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx);
	SYS(statfs, "data", &fs);
	SYS(fstatfs, fd, &fs);
	SYS(chmod, "data", 0600);
	SYS(fchmod, fd, 0640);
	SYS(fchmodat, HERE, "data", 0644);
	SYS(fchmodat2, HERE, "data", 0644, 0);
	SYS(chown, "data", -1, -1);
	SYS(fchown, fd, -1, -1);
	SYS(lchown, "soft", -1, -1);
	SYS(fchownat, HERE, "data", -1, -1, 0);
	SYS(utime, "data", NULL);
	SYS(utimes, "data", NULL);
	SYS(futimesat, HERE, "data", NULL);
	SYS(utimensat, HERE, "data", times, 0);
	SYS(utimensat, fd, NULL, times, 0); /* futimens */
	SYS(close, fd);
}

static void extended(void)
{
	struct {
		unsigned long value;
		unsigned size, flags;
	} args = {(unsigned long)buffer, 3, 0};
	int fd = FD(openat, HERE, "data", O_RDWR, 0);
	SYS(setxattr, "data", "user.a", "abc", 3, 0);
	SYS(lsetxattr, "data", "user.b", "abcd", 4, 0);
	SYS(fsetxattr, fd, "user.c", "abcde", 5, 0);
	SYS(getxattr, "data", "user.a", buffer, BLOCK);
	SYS(lgetxattr, "data", "user.b", buffer, BLOCK);
	SYS(fgetxattr, fd, "user.c", buffer, BLOCK);
	SYS(getxattr, "data", "user.none", buffer, BLOCK);
	SYS(listxattr, "data", buffer, BLOCK);
	SYS(llistxattr, "data", buffer, BLOCK);
	SYS(flistxattr, fd, buffer, BLOCK);
	SYS(removexattr, "data", "user.a");
	SYS(lremovexattr, "data", "user.b");
	SYS(fremovexattr, fd, "user.c");
	SYS(setxattrat, HERE, "data", 0, "user.d", &args, sizeof(args));
	SYS(getxattrat, HERE, "data", 0, "user.d", &args, sizeof(args));
	SYS(listxattrat, HERE, "data", 0, buffer, BLOCK);
	SYS(removexattrat, HERE, "data", 0, "user.d");
	SYS(close, fd);
}

int main(int argc, char **argv)
{
	char text[8192] = "{\"calls\":";
	CHECK(argc == 2);
	SYS(chdir, argv[1]);
	data();
	mappings();
	opens();
	descriptors();
	names();
	attributes();
	extended();
	truth_calls(text, sizeof(text) - 2, "sys");
	strcat(text, "}");
	int fd = openat(HERE, "truth.json", O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	return truth_write(fd, text) || close(fd) ? 1 : 0;
}
