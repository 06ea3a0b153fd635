"""Garbage: what a service that holds much for long asks of the collector and of the C library."""

import contextlib
import ctypes
import gc

_YOUNG_OBJECTS = 10_000
"""New objects that make the garbage collector look at the young ones; Python's own is 700."""


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
