/*
 * Puts itself under a strict seccomp filter and does stdio: `seccomp filter|strict FILE LINES`.
 *
 * The filter ends the process for every system call that the C library does not need for that. What the kernel has a
 * process do for return probes (`uretprobe`, number 335, and `uprobe`, 336) is not among them. `strict` is the mode that
 * allows read, write, exit and sigreturn alone.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read),
		ALLOW(SYS_write),
		ALLOW(SYS_openat),
		ALLOW(SYS_close),
		ALLOW(SYS_newfstatat),
		ALLOW(SYS_lseek),
		ALLOW(SYS_brk),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	char line[64];
	int lines, read = 0;

	if (argc != 4)
		return 2;
	int strict = !strcmp(argv[1], "strict");
	lines = atoi(argv[3]);
	FILE *file = fopen(argv[2], "w");
	/* The C library asks for the file's kind before the first write. */
	if (!file || fprintf(file, "line 0\n") < 0 || fflush(file))
		return 1;
	if (strict ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) : filter())
		return 1;
	for (int i = 1; i < lines; i++)
		if (fprintf(file, "line %d\n", i) < 0)
			return 1;
	if (fflush(file))
		return 1;
	if (strict)
		syscall(SYS_exit, 0); /* not exit_group */
	if (fclose(file) || !(file = fopen(argv[2], "r")))
		return 1;
	while (fgets(line, sizeof(line), file))
		read++;
	return fclose(file) || read != lines;
}
