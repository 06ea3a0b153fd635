"""Standard input that a signal can end.

MCP's stdio server reads it in a thread, and a thread that waits in `read` cannot be called off:
after SIGTERM the process would stay until its client says something. So the input goes through a
pipe of ours. Closing the pipe looks to the server like its client leaving, which is the one way
of ending that every part of it handles well.
"""

import os
import threading
from types import TracebackType
from typing import Self

_CHUNK_BYTES = 1 << 16


class StdinGate:
    """A context manager; while open, descriptor 0 is the reading end of a pipe."""

    def __init__(self) -> None:
        self._source = -1
        self._writing_end = -1

    def __enter__(self) -> Self:
        self._source = os.dup(0)
        reading_end, self._writing_end = os.pipe()
        os.dup2(reading_end, 0)
        os.close(reading_end)
        threading.Thread(target=self._pass_on, name="aftercall-stdin", daemon=True).start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """End the input; what comes later is read and dropped. May be called twice."""
        # Not closed but replaced: the thread may be writing, and a closed number could by then
        # belong to some other file.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._writing_end)
        os.close(nowhere)

    def _pass_on(self) -> None:
        try:
            while chunk := os.read(self._source, _CHUNK_BYTES):
                unwritten = memoryview(chunk)
                while unwritten:
                    unwritten = unwritten[os.write(self._writing_end, unwritten) :]
        except OSError:
            pass  # the terminal has gone, or the server does not read any more
        self.end()
