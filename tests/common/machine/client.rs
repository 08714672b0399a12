//! What the clients of file systems do that are served elsewhere: calls that each need a request.

/// Python: `written` makes a file and writes to two places of it, `gone` looks at it, and takes it away.
pub const PYTHON: &str = "
import os, threading
def written(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(fd, b'x' * 10000, 0)
    os.pwrite(fd, b'y' * 500, 20000)
    os.fsync(fd)
    os.close(fd)
def gone(path, bytes):
    fd = os.open(path, os.O_RDONLY)
    os.pread(fd, bytes, 4096)
    os.close(fd)
    try: os.stat(path + '.missing')
    except FileNotFoundError: pass
    os.mkdir(path + '.d')
    os.listdir(path + '.d')
    os.rename(path, path + '.new')
    os.unlink(path + '.new')
    print(threading.get_native_id(), flush=True)
";
