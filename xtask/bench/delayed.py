"""A file system with one file of zeros whose reads take some time each, many at once: `delayed.py DIR MIB SECONDS`.

Needs FUSE and the package python3-fusepy. `fusermount -u DIR` ends it.
"""

import errno
import stat
import sys
import time

from fusepy import FUSE, FuseOSError, Operations

DIR, SIZE, DELAY = sys.argv[1], int(sys.argv[2]) << 20, float(sys.argv[3])


class Delayed(Operations):
    """What the kernel asks of the file `data`."""

    def getattr(self, path, fh=None):
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        if path == "/data":
            return {"st_mode": stat.S_IFREG | 0o644, "st_nlink": 1, "st_size": SIZE}
        raise FuseOSError(errno.ENOENT)

    def readdir(self, path, fh):
        return [".", "..", "data"]

    def read(self, path, size, offset, fh):
        time.sleep(DELAY)
        return bytes(max(0, min(size, SIZE - offset)))


FUSE(Delayed(), DIR, foreground=True, allow_other=True, max_background=64)
