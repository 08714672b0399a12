/*
 * Executes a program as a service of systemd with these settings would run: `filtered NUMBER,NUMBER,... PROGRAM ARGUMENTS...`.
 *
 * The numbers are the system calls that SystemCallFilter= allows; all others fail with EPERM (SystemCallErrorNumber=). Calls
 * of another architecture end the process (SystemCallArchitectures=native), clone3 is not there and takes glibc to clone
 * (RestrictNamespaces=), and no memory becomes executable (MemoryDenyWriteExecute=) where the kernel has that, since 6.3.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	MOST = 4096,
	SET_MDWE = 65, /* PR_SET_MDWE */
	REFUSE_EXEC_GAIN = 1
};

static struct sock_filter code[MOST];
static unsigned short length;

static void add(struct sock_filter instruction)
{
	if (length == MOST)
		exit(2);
	code[length++] = instruction;
}

/* Calls of this number get this verdict. */
static void decide(unsigned number, unsigned verdict)
{
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
	decide(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	for (char *at = argv[1]; *at; at += *at == ',')
		decide(strtoul(at, &at, 10), SECCOMP_RET_ALLOW);
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));

	struct sock_fprog program = {length, code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 2;
	(void)prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("filtered");
		return 2;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 2;
}
