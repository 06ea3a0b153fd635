"""The service of a gateway: the one that answers, else one that a gateway starts on this machine.

Files that are locked in the data folder decide, since a lock ends with its process however that
ends: every gateway holds `gateways.lock`, together with the others; a gateway that starts the
service holds `starting.lock` alone, so the others wait and find it. A service that was started so
(`aftercall serve --linger`) takes `gateways.lock` when no one held it for a while, and ends.
"""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from aftercall.cli import discover_commands
from aftercall.client import AsyncClient
from aftercall.errors import AftercallError
from aftercall.explain import HOW_TO_SERVE
from aftercall.files import GATEWAYS_LOCK, data_folder
from aftercall.places import try_lock, unlock_file

LINGER_S = 300.0
"""Seconds that the service stays after the last gateway left."""
_LOOK_EVERY_S = 5.0
_START_WITHIN_S = 60.0
"""Until it listens: on a busy machine the imports alone take seconds."""
WAITED_FOR_S = 20.0
"""Longest time that calls which look wrong or fail wait for a service that is being started; it
takes 2 to 5 seconds, and some 15 on a busy machine. MCP clients wait a minute for a call."""
_LOOKED_WITHIN_S = 2.0
"""The service in use is stated where a connection opens; a client waits no longer for it."""
_POLL_S = 0.1
_AFTER_A_FAILURE_S = 60.0
_PASSED_ON = re.compile(
    "PATH$|HOME$|USER$|LANG$|LC_|TZ$|TMPDIR$|XDG_|AFTERCALL_|PYTHON|VIRTUAL_ENV$|LD_|DYLD_|SSL_"
)
LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


class LocalService:
    """Looks for the service at `url`, starts one where it may, and states what is in use.

    Only a service on this machine is started: at another address there is someone else's.
    `say` gets a sentence each time that something else is in use than before.
    """

    def __init__(
        self,
        url: str,
        *,
        say: Callable[[str], None],
        linger_s: float = LINGER_S,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.url = url
        self._say = say
        self._linger_s = linger_s
        # A server's secrets, which its client put into this process's environment, stay here.
        self._environ = {key: each for key, each in environ.items() if _PASSED_ON.match(key)}
        self._folder = data_folder(environ)
        self._looked = asyncio.Event()
        self._settled = asyncio.Event()
        self._waited_until = 0.0
        self.in_use = f"the service at {url} is being looked for"
        """What is in use, in a sentence without its full stop."""

    @contextlib.asynccontextmanager
    async def use_service(self) -> AsyncIterator["LocalService"]:
        """Looked for and kept there, in the background, until the block ends."""
        self._mark_unsettled()
        keeping = asyncio.create_task(self._keep_running(), name="aftercall-service")
        try:
            yield self
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])

    async def wait_looked(self) -> str:
        """Return what is in use, after `_LOOKED_WITHIN_S` at the latest."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._looked.wait(), _LOOKED_WITHIN_S)
        return self.in_use

    @property
    def patience_s(self) -> float:
        """Seconds that a call may wait for a service that is being started; 0 when none is."""
        if self._settled.is_set():
            return 0.0
        return max(0.0, self._waited_until - asyncio.get_running_loop().time())

    async def wait_settled(self) -> None:
        """Wait until the service answers or does not start, for `patience_s` at most."""
        if patience_s := self.patience_s:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), patience_s)

    def _mark_unsettled(self) -> None:
        self._settled.clear()
        self._waited_until = asyncio.get_running_loop().time() + WAITED_FOR_S

    async def _keep_running(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            address, cannot = urlsplit(self.url), ""
            if address.scheme != "http" or address.hostname not in LOCAL_HOSTS:
                cannot = "it is not on this machine, so it has to be started there"
            elif "serve" not in discover_commands():
                cannot = HOW_TO_SERVE
            else:
                try:
                    await stack.enter_async_context(self._hold_lock(GATEWAYS_LOCK, alone=False))
                except OSError as error:
                    cannot = f"{self._folder} cannot be used: {error.strerror or error}"
            was_there = False
            while True:
                pause_s = _LOOK_EVERY_S
                problem = await self._find_problem()
                if problem and not cannot and problem != _OTHER:
                    problem = await self._start_service()
                    pause_s = _AFTER_A_FAILURE_S if problem else _LOOK_EVERY_S
                elif not problem and not was_there:
                    self._note_use(f"using the service at {self.url}")
                if problem:
                    self._note_use(
                        f"no service at {self.url} ({cannot or problem}): calls pass through "
                        "without advice, and are kept to be recorded later"
                    )
                self._settled.set()
                was_there = not problem
                await asyncio.sleep(pause_s)

    def _note_use(self, sentence: str) -> None:
        if sentence != self.in_use:
            self.in_use = sentence
            self._say(sentence)
        self._looked.set()

    async def _find_problem(self, *, ready: bool = False) -> str:
        """Why the service that is to be there is not, or is not `ready` yet; or nothing."""
        try:
            async with AsyncClient(self.url, retries=0, connect_timeout_s=1.0) as client:
                is_there = await (client.ready() if ready else client.healthy())
        except AftercallError:
            return _OTHER
        return "" if is_there else "nothing answers there"

    async def _start_service(self) -> str:
        """Start it, alone among the gateways; why it does not run, or nothing."""
        async with self._hold_lock("starting.lock", alone=True):
            if not await self._find_problem():
                self._note_use(f"using the service at {self.url}")  # another gateway was first
                return ""
            self._note_use(
                f"starting a service at {self.url}; until it answers, calls that look wrong or "
                f"fail wait for it, {WAITED_FOR_S:g} s at most"
            )
            self._mark_unsettled()
            log = self._folder / "serve.log"
            process = self._start_process(log)
            until = asyncio.get_running_loop().time() + _START_WITHIN_S
            while process.poll() is None:
                # It listens before it has opened its data, which may fail.
                if not await self._find_problem(ready=True):
                    break
                if asyncio.get_running_loop().time() > until and await self._find_problem():
                    return f"the one that was started does not answer; see {log}"
                await asyncio.sleep(_POLL_S)
            else:
                said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                last = said[-1] if said else f"it said nothing; see {log}"
                return f"the one that was started has ended: {last}"
            process.returncode = 0  # it is meant to outlive this process, which Popen warns of
            self._note_use(
                f"using the service at {self.url}, which this gateway started (log: {log}); it "
                f"ends {self._linger_s:g} s after the last gateway left"
            )
            return ""

    def _start_process(self, log: Path) -> "subprocess.Popen[bytes]":
        address = urlsplit(self.url)
        words = [sys.executable, "-P", "-m", "aftercall.cli", "serve"]
        words += ["--host", address.hostname or "", "--port", str(address.port or 80)]
        words += ["--linger", f"{self._linger_s:g}", "--log-level", "warning"]
        begin_anew = log.exists() and log.stat().st_size > 1 << 20
        with log.open("wb" if begin_anew else "ab") as output:
            # In a session of its own: what ends this gateway must not end what others use.
            return subprocess.Popen(  # noqa: S603  # our own command; no shell
                words,
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @contextlib.asynccontextmanager
    async def _hold_lock(self, name: str, *, alone: bool) -> AsyncIterator[None]:
        """Asks again and again, since who waits for a lock in a thread cannot be called off."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        while (descriptor := try_lock(self._folder / name, alone=alone)) is None:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        try:
            yield
        finally:
            unlock_file(descriptor)


_OTHER = "another program answers there"
