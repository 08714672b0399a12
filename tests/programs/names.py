# Files that get, change and lose their names while they are open. Prints what fstat(2) returns of each, by what it is.
import json, os, sys

work, truth = sys.argv[1], {}
os.chdir(work)


def report(what, fd):
    s = os.fstat(fd)
    dev = os.major(s.st_dev) << 20 | os.minor(s.st_dev)
    truth[what] = {"ino": s.st_ino, "dev": dev, "blksize": s.st_blksize, "size": s.st_size, "nlink": s.st_nlink}


def again(fd):
    """Opened by the name that every descriptor has."""
    return os.open(f"/proc/self/fd/{fd}", os.O_RDWR)


fd = os.open("removed", os.O_RDWR | os.O_CREAT, 0o600)
os.write(fd, b"a" * 100)
os.unlink("removed")
os.write(fd, b"a" * 11)
report("removed", fd)
os.close(fd)

fd = os.open("before", os.O_RDWR | os.O_CREAT, 0o600)
os.rename("before", "after")
os.write(fd, b"b" * 200)
report("renamed", fd)
os.close(fd)

os.mkdir("dir")
fd = os.open("dir/in", os.O_RDWR | os.O_CREAT, 0o600)
os.rename("dir", "moved")
os.write(fd, b"c" * 300)
report("in a renamed directory", fd)
os.close(fd)

fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(fd, b"d" * 400)
report("without a name", fd)
os.close(fd)

fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(fd, b"e" * 500)
here = os.open(".", os.O_RDONLY)
os.link(f"/proc/self/fd/{fd}", "named", src_dir_fd=here, follow_symlinks=True)
named = os.open("named", os.O_RDWR | os.O_APPEND)
os.write(named, b"e" * 50)
report("named later", named)
os.close(named)
os.close(fd)

fd = os.memfd_create("in memory")
other = again(fd)
os.write(other, b"f" * 600)
report("memfd", other)
os.close(other)
os.close(fd)

# The same name, another file.
for n in range(2):
    fd = os.open("again", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, b"g" * (700 + n))
    report(f"again {n}", fd)
    if n == 0:
        keep = fd
        os.unlink("again")
    else:
        os.close(fd)
os.close(keep)

print(json.dumps(truth))
