"""Asks the kernel for variants of calls: asked.py FILE. Locks, flags, other descriptors, and places in a file."""

import fcntl, os, struct, sys

fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR | os.O_TRUNC)
os.write(fd, b"x" * 100000)
other = os.open(sys.argv[1], os.O_RDWR)


def fails(call, *args):
    try:
        call(*args)
    except OSError:
        return
    raise SystemExit(f"{call} {args} did not fail")


for _ in range(3):
    fcntl.lockf(fd, fcntl.LOCK_EX)
fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.lockf(fd, fcntl.LOCK_UN)
lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 10, 0)
fcntl.fcntl(fd, fcntl.F_GETLK, lock)
for owned in (fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLKW):
    fcntl.fcntl(fd, owned, lock)
fails(fcntl.fcntl, other, fcntl.F_OFD_SETLK, lock)
fcntl.flock(fd, fcntl.LOCK_SH)
fails(fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.flock(fd, fcntl.LOCK_UN)

fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND | os.O_NONBLOCK)
fcntl.fcntl(fd, fcntl.F_GETFL)
fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
fcntl.fcntl(fd, fcntl.F_GETFD)
os.close(fcntl.fcntl(fd, fcntl.F_DUPFD, 100))
os.close(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200))
fails(fcntl.fcntl, fd, fcntl.F_DUPFD, -1)
fails(fcntl.fcntl, 1000, fcntl.F_GETFL)
fails(fcntl.fcntl, fd, 12345)

copy = os.dup2(fd, 300)
os.dup2(copy, 301, inheritable=False)
fails(os.dup2, 1000, 302)

for place, whence in ((10, os.SEEK_SET), (-5, os.SEEK_CUR), (-1000, os.SEEK_END), (0, os.SEEK_DATA), (0, os.SEEK_HOLE)):
    os.lseek(fd, place, whence)
fails(os.lseek, fd, -1, os.SEEK_SET)
fails(os.lseek, fd, 5, 77)
fails(os.lseek, fd, 1 << 62, os.SEEK_DATA)
fails(os.lseek, 1000, 8, os.SEEK_SET)
