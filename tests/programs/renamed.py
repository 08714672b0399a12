# Files that change their names while they are not open, by another process and by this program. Prints what
# /proc has of descriptors whose files have changed places.
import ctypes, json, os, sys, time

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def write(name, size, flags=os.O_APPEND):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    os.write(fd, b"x" * size)
    return fd


os.chdir(sys.argv[1])
os.makedirs("d/s")
for name in ["x", "d/s/in", "one", "other"]:
    os.close(write(name, 1))

fds = [write(name, 1) for name in ["a", "b"]]
assert ctypes.CDLL(None).renameat2(AT_FDCWD, b"a", AT_FDCWD, b"b", RENAME_EXCHANGE) == 0
for size, fd in enumerate(fds):
    os.write(fd, b"x" * size)
print(json.dumps([os.readlink(f"/proc/self/fd/{fd}") for fd in fds]))

open("go", "w").close()
while not os.path.exists("went"):
    time.sleep(0.01)
for size, name in enumerate(["y", "e/s/in", "one", "other", "x"]):
    os.close(write(name, 10 * size + 1))
