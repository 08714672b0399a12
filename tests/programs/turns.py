"""Takes turns at waiting: `turns.py FILE MODE...`, 8 s in each mode.

Each millisecond, sync: writes and waits for the device. read: a quick read.
"""

import os
import sys
import time

fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.pwrite(fd, b"x" * 4096, 0)
for mode in sys.argv[2:]:
    end = time.monotonic() + 8
    while time.monotonic() < end:
        if mode == "sync":
            os.pwrite(fd, b"y" * 4096, 0)
            os.fsync(fd)
        else:
            os.pread(fd, 1, 0)
        time.sleep(0.001)
