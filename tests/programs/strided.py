"""Reads a file from the device: `strided.py FILE PAUSE HOW...`. Prints how, a checksum of what was read, and the seconds.

PAUSE: seconds between two reads.
forward, backward: 4 KiB of each 64. down: 4 KiB after 4 KiB from the end. along: from the begin. cached: as forward, what is
in the page cache.
"""

import os
import sys
import time
import zlib

PAGE, FAR = 4096, 65536
fd = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(fd).st_size
OFFSETS = {
    "forward": range(0, size, FAR),
    "cached": range(0, size, FAR),
    "backward": range(size - FAR, -1, -FAR),
    "down": range(size - PAGE, -1, -PAGE),
    "along": range(0, size, PAGE),
}
pause = float(sys.argv[2])
for how in sys.argv[3:]:
    if how == "cached":
        while os.read(fd, 1 << 20):
            pass
    else:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    begun, seen = time.perf_counter(), 0
    for offset in OFFSETS[how]:
        seen = zlib.crc32(os.pread(fd, PAGE, offset), seen)
        if pause:
            time.sleep(pause)
    print(how, seen, f"{time.perf_counter() - begun:.3f}", flush=True)
