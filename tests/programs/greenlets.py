"""Calls (`bsearch`, with a callback) in greenlets, which copy slices of one stack away and back: greenlets.py HOW DIR.

turns: four greenlets begin a call each, one after the other, and end them in that order
outer: a greenlet begins a call inside one of the main program, which returns first
waits: `turns`, once DIR/go is there
"""

import ctypes
import os
import sys
import time

import greenlet

HOW, DIR = sys.argv[1:]
LIBC = ctypes.CDLL(None)
LIBC.bsearch.restype = ctypes.c_void_p
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
KEY = ctypes.c_int(1)
ARRAY = (ctypes.c_int * 1)(1)
main = greenlet.getcurrent()
ended = []


def search(called_back):
    function = CALLBACK(lambda _a, _b: called_back() or 0)
    return bool(LIBC.bsearch(ctypes.byref(KEY), ARRAY, ctypes.c_size_t(1), ctypes.c_size_t(4), function))


def run(name):
    assert search(main.switch)
    ended.append(name)


def turns():
    all = [greenlet.greenlet(run) for _ in range(4)]
    for number, one in enumerate(all):
        one.switch(number)
    for one in all:
        one.switch()
    assert ended == [0, 1, 2, 3]


def outer():
    inner = greenlet.greenlet(run)
    assert search(lambda: inner.switch("inner"))
    inner.switch()
    assert ended == ["inner"]


if HOW == "waits":
    with open(os.path.join(DIR, "pid.new"), "w") as file:
        file.write(str(os.getpid()))
    os.rename(os.path.join(DIR, "pid.new"), os.path.join(DIR, "pid"))
    while not os.path.exists(os.path.join(DIR, "go")):
        time.sleep(0.01)
{"turns": turns, "outer": outer, "waits": turns}[HOW]()
print("done")
