"""Garbage: what a service that holds much for long asks of the collector and of the C library."""

import contextlib
import ctypes
import gc

_YOUNG_OBJECTS = 10_000
"""New objects that make the garbage collector look at the young ones; Python's own is 700."""


_M_ARENA_MAX = -8
"""Of `mallopt`, in glibc's malloc.h."""

_ARENAS = 2
"""glibc's own is eight per core, and what a thread freed in one serves no other."""


def few_arenas() -> None:
    """Before threads are started: let them share the memory that they free.

    The service has a dozen threads; with arenas of their own it holds some 20 MiB more while a
    history is recorded (`bench/service.py`). Other libraries of C have no such call.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def settle_memory() -> None:
    """Once all is loaded: keep the garbage collector from what stays, and give back what is free.

    A look of the collector at all that is loaded takes 200 ms. What is read from the store are many
    small objects without cycles: at Python's own threshold the collector took two thirds of the
    time of reading them (`bench/known_tools.py`). Loading the model leaves 20 MiB of freed memory
    that glibc keeps; other libraries of C have no such call.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
