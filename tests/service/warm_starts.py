"""The `aftercall` command in a process of its own, without a second of imports for each start.

A process that has imported what the commands need forks for each of them. A fork has its own
descriptors, environment and folder, is killed and waited for as any process is, and runs the same
`main` to its end. It needs Linux, which tells of a fork's end (`pidfd_open`).
"""

import atexit
import functools
import gc
import importlib
import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
_MOST = 100_000
"""Bytes of a request, which is a command line and an environment."""


class WarmStart(subprocess.Popen[str]):
    """`python -m aftercall.cli WORDS` as a fork of a warm process, with pipes for its three files.

    It may open `files` files, where that is given, be the `main` of another module, and write into
    a file.
    """

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        files: int | None = None,
        main: str = "aftercall.cli",
        output: IO[bytes] | int = subprocess.PIPE,
    ) -> None:
        self._asked = {"words": words, "environ": dict(environ), "files": files, "main": main}
        self._forker = _forker(environ.get("LD_PRELOAD", ""))
        source = subprocess.PIPE if output == subprocess.PIPE else subprocess.DEVNULL
        super().__init__(words, stdin=source, stdout=output, stderr=output, text=True)

    def _execute_child(self, *given: Any) -> None:
        """Instead of a fork of this process: `given` are Popen's own arguments, with the pipes."""
        standard_input, output, errors = given[10], given[13], given[15]
        self._told, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            ends = [standard_input, output, errors, theirs.fileno()]
            socket.send_fds(self._forker, [json.dumps(self._asked).encode()], ends)
        self._close_pipe_fds(*given[10:16])  # type: ignore[attr-defined]
        self.pid = int(self._told.recv(16))
        self._child_created = True

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        lock = self._waitpid_lock  # type: ignore[attr-defined]
        if self.returncode is None and lock.acquire(blocking=False):
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid == self.pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                lock.release()
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        self._told.setblocking(not wait_flags & os.WNOHANG)
        try:
            said = self._told.recv(16)
        except BlockingIOError:
            return 0, 0
        self._told.close()
        # Where the warm process was killed nobody knows how the fork ended.
        return self.pid, int(said or signal.SIGKILL)


@functools.cache
def _forker(preload: str) -> socket.socket:
    """The socket that the warm process of this one listens at, which has a library before all."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        words = [sys.executable, "-m", "tests.service.warm_starts", str(theirs.fileno())]
        environ = os.environ | ({"LD_PRELOAD": preload} if preload else {})
        process = subprocess.Popen(
            words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environ
        )
    atexit.register(process.wait)
    atexit.register(mine.close)
    return mine


def _import_all() -> None:
    """What most commands import; a process that forks has no thread yet."""
    importlib.import_module("aftercall.cli")
    for name in ("server", "context", "imports", "archive", "nightly", "rebuild"):
        importlib.import_module(f"service.{name}")
    gc.collect()
    gc.freeze()


def _fork_for_ever(requests: socket.socket) -> dict[str, Any] | None:
    """Returns in each fork what it was asked for, and nothing in the end."""
    waiting = selectors.DefaultSelector()
    waiting.register(requests, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fd == requests.fileno():
                asked, ends, _, _ = socket.recv_fds(requests, _MOST, 4)
                if not asked:
                    return None
                pid = os.fork()
                if not pid:
                    for place, end in enumerate(ends[:3]):
                        os.dup2(end, place)
                    for end in ends:
                        os.close(end)
                    for others in (each.data for each in waiting.get_map().values() if each.data):
                        others[1].close()
                    waiting.close()
                    requests.close()
                    known: dict[str, Any] = json.loads(asked)
                    return known
                for end in ends[:3]:
                    os.close(end)
                teller = socket.socket(fileno=ends[3])
                teller.send(str(pid).encode())
                waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, teller))
            else:
                pid, teller = key.data
                _, status = os.waitpid(pid, 0)
                teller.send(str(status).encode())
                teller.close()
                waiting.unregister(key.fileobj)
                os.close(key.fd)


def _run() -> int:
    _import_all()
    asked = _fork_for_ever(socket.socket(fileno=int(sys.argv[1])))
    if asked is None:
        return 0
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(asked["environ"])
    tempfile.tempdir = None
    if asked["files"] is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (asked["files"], asked["files"]))
    sys.argv = ["aftercall", *asked["words"]]
    exit_code: int = importlib.import_module(asked["main"]).main()
    return exit_code


if __name__ == "__main__":
    sys.exit(_run())
