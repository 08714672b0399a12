/*
 * A 32-bit program without any library: `short32 DIR`. It makes the calls whose arguments a 32-bit task has otherwise.
 * tests/live/calls/syscalls_kinds.rs knows their sizes.
 */
struct vector {
	void *base;
	unsigned length;
};

/* arch/x86/entry/syscalls/syscall_32.tbl */
enum {
	EXIT = 1,
	READ = 3,
	WRITE = 4,
	OPEN = 5,
	CLOSE = 6,
	UNLINK = 10,
	CHDIR = 12,
	OLD_MMAP = 90,
	MUNMAP = 91,
	LLSEEK = 140,
	READV = 145,
	WRITEV = 146,
	PREAD64 = 180,
	PWRITE64 = 181,
	MMAP2 = 192,
	TRUNCATE64 = 193,
	FTRUNCATE64 = 194,
	STAT64 = 195,
	FCNTL64 = 221,
	READAHEAD = 225,
	SENDFILE64 = 239,
	FADVISE64_64 = 272,
	OPENAT = 295,
	SYNC_FILE_RANGE = 314,
	FALLOCATE = 324,
	PREADV = 333,
	COPY_FILE_RANGE = 377
};

static long sixth __attribute__((used));

static long call(long number, long a, long b, long c, long d, long e, long f)
{
	long result;

	sixth = f;
	__asm__ volatile("push %%ebp\n\tmov sixth, %%ebp\n\tint $0x80\n\tpop %%ebp"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory");
	return result;
}

static char buffer[8192];

__attribute__((used)) void begin(long *stack)
{
	struct vector two[2] = {{buffer, 1000}, {buffer, 500}};
	long *argv = stack + 1;
	unsigned long long at = 0, from_at = 4096;
	long old[6] = {0, 4096, 1, 1, 0, 4096};

	call(CHDIR, argv[1], 0, 0, 0, 0, 0);
	long fd = call(OPENAT, -100, (long)"short", 0100000 | 02 | 0100 | 01000, 0644, 0, 0);
	call(WRITE, fd, (long)buffer, 8192, 0, 0, 0);
	/* beyond what 32 bits hold: 1 << 32 | 4096 */
	call(PWRITE64, fd, (long)buffer, 100, 4096, 1, 0);
	call(PREAD64, fd, (long)buffer, 200, 4096, 1, 0);
	call(LLSEEK, fd, 1, 50, (long)&at, 0, 0);
	call(WRITEV, fd, (long)two, 2, 0, 0, 0);
	call(PREADV, fd, (long)two, 2, 50, 1, 0);
	call(FTRUNCATE64, fd, 7, 1, 0, 0, 0);
	call(TRUNCATE64, (long)"short", 8192, 0, 0, 0, 0);
	call(FALLOCATE, fd, 1, 4096, 2, 8192, 0);
	call(READAHEAD, fd, 4096, 0, 100, 0, 0);
	call(FADVISE64_64, fd, 4096, 3, 8192, 1, 4);
	call(SYNC_FILE_RANGE, fd, 4096, 0, 100, 0, 2);
	long mapped = call(MMAP2, 0, 4096, 1, 1, fd, 1);
	call(MUNMAP, mapped, 4096, 0, 0, 0, 0);
	old[4] = fd;
	mapped = call(OLD_MMAP, (long)old, 0, 0, 0, 0, 0);
	call(MUNMAP, mapped, 4096, 0, 0, 0, 0);
	/* memory without a file */
	mapped = call(MMAP2, 0, 4096, 1, 0x22, -1, 0);
	call(MUNMAP, mapped, 4096, 0, 0, 0, 0);
	call(FCNTL64, fd, 3, 0, 0, 0, 0);
	long to = call(OPEN, (long)"other", 02 | 0100 | 01000, 0644, 0, 0, 0);
	call(SENDFILE64, to, fd, (long)&from_at, 1000, 0, 0);
	call(COPY_FILE_RANGE, fd, (long)&from_at, to, 0, 500, 0);
	call(STAT64, (long)"short", (long)buffer, 0, 0, 0, 0);
	call(CLOSE, to, 0, 0, 0, 0, 0);
	call(CLOSE, fd, 0, 0, 0, 0, 0);
	call(UNLINK, (long)"no/such", 0, 0, 0, 0, 0);
	call(READ, 99, (long)buffer, 10, 0, 0, 0);
	call(EXIT, 0, 0, 0, 0, 0, 0);
}

__asm__(".globl _start\n_start:\n\tmov %esp, %eax\n\tand $-16, %esp\n\tsub $12, %esp\n\tpush %eax\n\tcall begin\n");
