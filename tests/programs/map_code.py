"""Maps each of these files as code, as a loader of libraries does, and ends."""

import mmap
import os
import sys

mapped = []
for path in sys.argv[1:]:
    file = os.open(path, os.O_RDONLY)
    mapped.append(mmap.mmap(file, 65536, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC))
print(len(mapped), "mapped")
