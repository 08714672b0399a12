/*
 * Moves data from file to file, and through pipes and sockets, and reports no counts: `copies DIR`. The calls are few
 * and their sizes fixed; tests/live/calls/syscalls_kinds.rs knows them.
 */
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "truth.h"

static char buffer[100000];

int main(int argc, char **argv)
{
	int ends[2], others[2], pair[2];
	off64_t in_at = 1000, out_at = 5000;
	off_t at = 7;
	struct iovec two[2] = {{buffer, 100}, {buffer, 23}};
	struct msghdr message = {.msg_iov = two, .msg_iovlen = 2};

	CHECK(argc == 2 && !chdir(argv[1]));
	CHECK(!pipe(ends) && !pipe(others) && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	int from = open("from", O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(write(from, buffer, sizeof(buffer)) == sizeof(buffer));
	lseek(from, 0, SEEK_SET);

	int to = open("copied", O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(copy_file_range(from, NULL, to, NULL, 40000, 0) == 40000);
	CHECK(copy_file_range(from, &in_at, to, &out_at, 3000, 0) == 3000);
	CHECK(copy_file_range(from, NULL, 999, NULL, 10, 0) == -1);
	close(to);

	to = open("sent", O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(sendfile(to, from, &at, 20000) == 20000);
	close(to);
	CHECK(sendfile(pair[0], from, &at, 600) == 600);

	to = open("spliced", O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(splice(from, &in_at, ends[1], NULL, 5000, 0) == 5000);
	CHECK(tee(ends[0], others[1], 2000, 0) == 2000);
	CHECK(splice(ends[0], NULL, to, NULL, 4000, 0) == 4000);
	close(to);

	CHECK(read(pair[1], buffer, 500) == 500);
	CHECK(recv(pair[1], buffer, 500, 0) == 100);
	CHECK(send(pair[1], buffer, 70, 0) == 70);
	CHECK(sendmsg(pair[1], &message, 0) == 123);
	CHECK(recvmsg(pair[0], &message, 0) == 123);
	CHECK(write(others[1], buffer, 10) == 10);
	close(from);
	return 0;
}
