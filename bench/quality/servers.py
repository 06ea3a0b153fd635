"""Real MCP servers: `mcp-server-time` and `mcp-server-git`, called for real through the gateway.

Each call meets the same world: a fresh copy is laid out after every call that could have changed
it. A correction is right when it gives the gold call's result and leaves its state. Of times only
what the caller chose is compared (zones, time of day, difference), never the clock; a new commit is
compared by its tree, parents and message. The servers are processes of their own behind one
gateway, over stdio, without a network. `bench.quality.mistakes` calls five more of them.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastmcp import Client

from aftercall.gateway.config import GatewayConfig
from aftercall.gateway.server import build_gateway
from aftercall.models import Execution, SuggestResponse, Tool, ToolAnnotations, ToolSpec
from aftercall.reflection import ReflectionPolicy
from bench.quality.damage import damaged, damages_of
from bench.quality.sessions import GoldCall, Session
from bench.quality.trial import Damage, Json, Trial, Verdict

REPOSITORY = "projects/shop"
"""As the calls name it: relative to the git server's own folder, so that runs are the same."""

_AGENT = "bench"
_WHEN = "2026-03-02T09:00:00+00:00"
_PLAIN_GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C"}
"""Without the settings and the language of whoever runs it."""
_NEW_COMMIT = "<a new commit>"


@dataclass(frozen=True, slots=True)
class Effect:
    """What a call did, as text that is the same for the same effect; or what the tool said."""

    result: str = ""
    state: str = ""
    error: Json | None = None


def available() -> bool:
    """Whether both servers and git are installed."""
    servers = ("mcp_server_time", "mcp_server_git")
    return all(find_spec(name) for name in servers) and shutil.which("git") is not None


@dataclass(frozen=True, slots=True)
class More:
    """Servers beside the two: their configuration, what they find in the world, and its state."""

    configuration: Callable[[Path], Json]
    """The `mcpServers` of a folder, whose `projects` is the world."""
    make: Callable[[Path], None]
    state: Callable[[Path], str]


@asynccontextmanager
async def open_servers(more: More | None = None) -> AsyncIterator["Servers"]:
    """Start the servers behind a gateway; they and their world are gone at the end."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pristine, world = folder / "pristine", folder / "projects"
        pristine.mkdir()
        _make_repository(pristine / "shop")
        configuration = configuration_of(folder)
        if more is not None:
            more.make(pristine)
            configuration |= more.configuration(folder)
        shutil.copytree(pristine, world)
        for each in configuration.values():
            each["aftercall"] = {"errorPattern": ""}  # by the servers' own word alone
        log = stack.enter_context((folder / "servers.log").open("w", encoding="utf-8"))
        kept = _Kept()
        gateway = build_gateway(
            GatewayConfig.from_dict({"mcpServers": configuration}),
            client=_NoService(),
            recorder=kept,
            policy=ReflectionPolicy(disabled_agents=frozenset([_AGENT])),
            errlog=log,
        )
        client: Client[Any] = await stack.enter_async_context(Client(gateway))
        tools = {tool.name: tool for tool in await client.list_tools()}
        yield Servers(
            client=client, kept=kept, pristine=pristine, world=world,
            state_of=more.state if more else _nothing_more,
            commits=frozenset(_git(pristine / "shop", "rev-list", "--all").split()),
            schemas={name: tool.input_schema for name, tool in tools.items()},
            hints={
                name: ToolAnnotations.model_validate(tool.annotations.model_dump())
                for name, tool in tools.items() if tool.annotations
            },
        )  # fmt: skip


@dataclass(slots=True)
class Servers:
    """The running servers. `executed` counts the calls that really went to one."""

    client: Client[Any]
    kept: "_Kept"
    pristine: Path
    world: Path
    state_of: Callable[[Path], str]
    commits: frozenset[str]
    schemas: dict[str, Json]
    hints: dict[str, ToolAnnotations]
    executed: int = 0
    _effects: dict[str, Effect] = field(default_factory=dict)

    def sessions(self) -> list[Session]:
        """The gold calls."""
        return [
            Session(name, tuple(self._call(name, at, row) for at, row in enumerate(rows)))
            for name, rows in _sessions().items()
        ]

    def schema_of(self, call: GoldCall) -> Json | None:
        """The tool's input schema, as its server lists it."""
        return self.schemas[f"{call.server}_{call.tool}"]

    async def trials_of(
        self, call: GoldCall, others: Sequence[Json], rng: random.Random
    ) -> list[Trial]:
        """The damages that make the call fail."""
        damages = list(damages_of(call.parameters, self.schema_of(call), others, rng))
        return [trial for each in damages if (trial := await self.trial_of(call, each))]

    async def trial_of(self, call: GoldCall, damage: Damage) -> Trial | None:
        """The trial of a damaged call; None where it does not fail or cannot have the damage."""
        sent = damaged(call.parameters, damage)
        effect = None if sent is None else await self.run(call.server, call.tool, sent)
        if sent is None or effect is None or effect.error is None:
            return None
        return Trial(
            session=call.session, tool=call.tool, server=call.server, damaged=sent,
            gold=call.parameters, error=effect.error, context=call.context,
            schema=self.schemas[f"{call.server}_{call.tool}"], damage=damage,
            judge=partial(self.judge, call),
        )  # fmt: skip

    async def judge(self, call: GoldCall, parameters: Json) -> Verdict:
        """What the parameters do in the place of the gold call's."""
        effect = await self.run(call.server, call.tool, parameters)
        if effect.error is not None:
            return "fails"
        meant = await self.run(call.server, call.tool, call.parameters)
        return "right" if effect == meant else "wrong success"

    async def run(self, server: str, tool: str, parameters: Json) -> Effect:
        """What the call does to a fresh repository; the same call is executed only once."""
        key = json.dumps([server, tool, parameters], sort_keys=True)
        if key not in self._effects:
            self._effects[key] = await self._execute(f"{server}_{tool}", parameters)
        return self._effects[key]

    async def _execute(self, exposed: str, parameters: Json) -> Effect:
        self.executed += 1
        self.kept.executions.clear()
        meta = {"aftercall/agent": _AGENT, "aftercall/session": _AGENT}
        try:
            result = await self.client.call_tool(
                exposed, parameters, meta=meta, raise_on_error=False
            )
            error = self.kept.executions[-1].error
            if error is not None:
                return Effect(error=error.model_dump(mode="json", exclude_none=True))
            return self.effect_of(exposed, result.content, result.structured_content or {})
        finally:
            self.restore(exposed)

    def effect_of(self, exposed: str, content: Sequence[Any], structured: Json) -> Effect:
        """What a call did that has succeeded just now."""
        if exposed.startswith("time_"):
            return Effect(_what_was_asked(structured))
        text = "\n".join(getattr(block, "text", "") for block in content)
        state = "" if self._reads(exposed) else self._state()
        return Effect(_without_counts(text, self.commits), state)

    def restore(self, exposed: str) -> None:
        """The world as it was, unless the tool only reads."""
        if not self._reads(exposed):
            shutil.rmtree(self.world)
            shutil.copytree(self.pristine, self.world)

    def _reads(self, exposed: str) -> bool:
        return exposed in self.hints and bool(self.hints[exposed].read_only_hint)

    def _state(self) -> str:
        return _state_of(self.world / "shop") + self.state_of(self.world)

    def _call(self, session: str, sequence: int, row: tuple[str, Json, str]) -> GoldCall:
        name, given, context = row
        server, tool = name.split(".")
        parameters = {"repo_path": REPOSITORY, **given} if server == "git" else given
        return GoldCall(session, sequence, tool, server, parameters, context)


class _Kept:
    """Takes the executions as the gateway records them."""

    def __init__(self) -> None:
        self.executions: list[Execution] = []

    def record(self, execution: Execution) -> None:
        self.executions.append(execution)


class _NoService:
    """A service that takes tools and is never asked: the benchmark's caller is not reflected on."""

    async def suggest(
        self, execution: Execution, *, limit: int = 3, annotations: ToolAnnotations | None = None
    ) -> SuggestResponse:
        del execution, limit, annotations
        raise RuntimeError("calls of the benchmark are recorded, not asked about")

    async def put_tool(self, tool_id: str, spec: ToolSpec) -> Tool:
        return Tool(**dict(spec), tool_id=tool_id, updated_at=datetime.now(UTC))

    async def ready(self) -> bool:
        return True


def _nothing_more(_: Path) -> str:
    return ""


def configuration_of(folder: Path) -> Json:
    """The `mcpServers` of the two."""
    return {
        "time": {
            "command": sys.executable,
            "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"],
        },
        "git": {
            "command": sys.executable,
            "args": ["-m", "mcp_server_git", "--repository", REPOSITORY],
            "cwd": str(folder),
            "env": _PLAIN_GIT,
        },
    }


# What calls do


def _what_was_asked(told: Json) -> str:
    """The part of the time server's answer that does not move with the clock."""
    if "time_difference" not in told:
        return str(told["timezone"])
    ends = [(told[end]["timezone"], told[end]["datetime"][11:16]) for end in ("source", "target")]
    return json.dumps([*ends, told["time_difference"]])


def _without_counts(text: str, known: frozenset[str]) -> str:
    """Without new commits' hashes, and how many calls a server has had."""
    text = re.sub(r'"thoughtHistoryLength": \d+', "", text)
    return re.sub(r"\b[0-9a-f]{40}\b", lambda at: at[0] if at[0] in known else _NEW_COMMIT, text)


def _state_of(repository: Path) -> str:
    """Refs (by their commits' trees, parents and messages), HEAD, index and working tree."""
    refs = "--format=%(refname) %(tree) %(parent) %(contents)"
    return "\n".join(
        (
            _git(repository, "for-each-ref", refs),
            (repository / ".git" / "HEAD").read_text(encoding="utf-8"),
            _git(repository, "ls-files", "--stage"),
            _git(repository, "status", "--porcelain"),
        )
    )


def _make_repository(folder: Path) -> None:
    """A web shop's repository: branches, tags, and staged, changed and new files."""
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _git(folder, "config", "user.name", "Bench")
    _git(folder, "config", "user.email", "bench@example.org")
    _write(folder, "README.md", "# Shop\n")
    _write(folder, "src/app.py", "def main():\n    pass\n")
    _write(folder, "src/cart.py", "ITEMS = []\n")
    _write(folder, "docs/guide.md", "Guide\n")
    _commit(folder, "Begin the shop")
    for number, subject in enumerate(("Add prices", "Add taxes", "Fix rounding"), start=1):
        _write(folder, "CHANGES.md", "".join(f"- change {n}\n" for n in range(number + 1)))
        _commit(folder, subject)
        _git(folder, "tag", f"v1.{number}")
    for branch, file in (
        ("feature/login", "src/login.py"), ("fix/checkout", "src/checkout.py"),
        ("release/2.0", "VERSION"), ("develop", "src/debug.py"),
    ):  # fmt: skip
        _git(folder, "checkout", "--quiet", "-b", branch, "main")
        _write(folder, file, f"# {branch}\n")
        _commit(folder, f"Start {branch}")
    _git(folder, "checkout", "--quiet", "main")
    _git(folder, "update-ref", "refs/remotes/origin/main", "main")
    _write(folder, "src/cart.py", "ITEMS: list[str] = []\n")
    _git(folder, "add", "src/cart.py")
    _write(folder, "README.md", "# The shop\n\nSells things.\n")
    _write(folder, "docs/guide.md", "Guide\n\nSecond page\n")
    _write(folder, "notes.txt", "to do\n")
    _write(folder, "src/search.py", "def search():\n    pass\n")


def _write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def _commit(folder: Path, message: str) -> None:
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "-m", message)


def _git(folder: Path, *arguments: str) -> str:
    """Run git as if at one moment, so that the same commits have the same hashes."""
    dates = {"GIT_AUTHOR_DATE": _WHEN, "GIT_COMMITTER_DATE": _WHEN}
    environment = {**os.environ, **_PLAIN_GIT, **dates}
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, env=environment
    ).stdout


_CALLS = Path(__file__).with_name("servers_sessions.json")


def _sessions() -> dict[str, list[tuple[str, Json, str]]]:
    """Return by session: tool, parameters (git's repository is added), and the user's words.

    The words are empty where nothing is known.
    """
    found: dict[str, list[tuple[str, Json, str]]] = json.loads(_CALLS.read_text(encoding="utf-8"))
    return found
