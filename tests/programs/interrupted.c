/*
 * Calls that a signal interrupts: `interrupted DIR`. A child holds the locks until the parent was interrupted.
 *
 * The parent waits four times: flock, restarted; fcntl, restarted; flock, not restarted, then once more, which is refused;
 * the handler of the first two writes to a file. At last an x32 call, which most kernels do not know.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

static int notes;

static void note(int signal)
{
	(void)signal;
	CHECK(write(notes, "interrupted", 11) == 11);
}

static void on_alarm(int flags)
{
	struct sigaction action = {.sa_handler = note, .sa_flags = flags};

	CHECK(!sigaction(SIGALRM, &action, NULL));
}

/* A child that has both locks, and lets them go when it gets a byte. */
static pid_t holder(const char *name, int *go_on)
{
	int ready[2], go[2];
	char byte;

	CHECK(!pipe(ready) && !pipe(go));
	pid_t pid = fork();
	if (!pid) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		int fd = open(name, O_RDWR);

		close(go[1]);
		CHECK(!flock(fd, LOCK_EX) && !fcntl(fd, F_SETLK, &lock));
		CHECK(write(ready[1], "r", 1) == 1);
		/* the parent is interrupted once a second */
		CHECK(read(go[0], &byte, 1) == 1);
		sleep(3);
		_exit(0);
	}
	close(go[0]);
	CHECK(read(ready[0], &byte, 1) == 1);
	*go_on = go[1];
	return pid;
}

int main(int argc, char **argv)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int go_on;

	CHECK(argc == 2 && !chdir(argv[1]));
	notes = open("notes", O_WRONLY | O_CREAT | O_TRUNC, 0644);
	int fd = open("locked", O_RDWR | O_CREAT | O_TRUNC, 0644);
	on_alarm(SA_RESTART);
	for (int i = 0; i < 2; i++) {
		pid_t pid = holder("locked", &go_on);
		CHECK(write(go_on, "g", 1) == 1);
		alarm(1);
		CHECK(i ? !fcntl(fd, F_SETLKW, &lock) : !flock(fd, LOCK_EX));
		CHECK(waitpid(pid, NULL, 0) == pid);
		flock(fd, LOCK_UN);
		lock.l_type = F_UNLCK;
		CHECK(!fcntl(fd, F_SETLK, &lock));
		lock.l_type = F_WRLCK;
	}
	on_alarm(0);
	pid_t pid = holder("locked", &go_on);
	alarm(1);
	CHECK(flock(fd, LOCK_EX) == -1 && errno == EINTR);
	CHECK(flock(fd, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
	CHECK(write(go_on, "g", 1) == 1);
	CHECK(waitpid(pid, NULL, 0) == pid);

	char bytes[10];
	syscall(0x40000000 | SYS_pread64, fd, bytes, sizeof(bytes), 0);
	close(fd);
	close(notes);
	return 0;
}
