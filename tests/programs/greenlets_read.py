"""Four greenlets, each in a call of a C function that calls back, where the next greenlet runs: they return in the order of
their calls, not in the reverse of it."""

import ctypes

import greenlet

libc = ctypes.CDLL(None)
libc.bsearch.restype = ctypes.c_void_p
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
reads = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
libc.fopencookie.restype = ctypes.c_void_p
libc.fread.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
libc.fread.restype = ctypes.c_size_t


class Functions(ctypes.Structure):
    _fields_ = [("read", reads), ("write", ctypes.c_void_p), ("seek", ctypes.c_void_p), ("close", ctypes.c_void_p)]


libc.fopencookie.argtypes = [ctypes.c_void_p, ctypes.c_char_p, Functions]
main = greenlet.getcurrent()
done = []


def read(number):
    """A read of a stream of its own, which comes back to the main greenlet before it ends."""

    def back(cookie, buffer, size):
        main.switch()
        ctypes.memset(buffer, 97 + number, size)
        return size

    callback = reads(back)
    stream = libc.fopencookie(None, b"r", Functions(read=callback))
    buffer = ctypes.create_string_buffer(8)
    got = libc.fread(buffer, 1, 8, stream)
    done.append((number, got, buffer.raw[:8]))


greenlets = [greenlet.greenlet(read) for _ in range(4)]
for number, one in enumerate(greenlets):
    one.switch(number)
for one in greenlets:
    one.switch()
print(done)
