"""Which version of a tool is in force: asked of the service, and of the files of this machine.

This machine goes first: its promotions file before the service's promotions, definitions of this
program before registered ones. While the service is away, these and tools that it named before are
what there is.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

from aftercall.client import AsyncClient, Client
from aftercall.errors import (
    ConfigurationError,
    NotFoundError,
    ProtocolError,
    RateLimitedError,
    ServiceFailedError,
    ServiceTimeoutError,
    ServiceUnreachableError,
)
from aftercall.executors.protocol import evolved_file_of, implementation_of
from aftercall.json_values import content_hash
from aftercall.models import BestTool, FoundTools, Promotion, RankedTool, Tool, ToolSpec
from aftercall.models.tools import same_version
from aftercall.promotions_file import promoted_tool, read_promotions
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

T = TypeVar("T")
AWAY = (ServiceUnreachableError, ServiceFailedError, RateLimitedError, ProtocolError)
"""What means that the service cannot be asked now."""
PAUSE_S = 5.0
"""Seconds for which a service that gave no answer is not asked again."""
_MAX_SEEN = 2_000
"""Tools of the service that are remembered; names come from agents and must not grow forever."""
_LEAST_SHARE = 0.2
"""Of a scenario's words; a tool that holds fewer hardly fits, and is not to be run on a guess."""
_WORD = re.compile(r"[^\W_]+")


class ServiceLink:
    """Asks one service, in bounded time, and not again and again while it is away.

    Args:
        client: asks it; None for a toolbox without a service.
        timeout_s: longest wait for an answer, retries included, in seconds.
    """

    def __init__(self, client: AsyncClient | None, *, timeout_s: float) -> None:
        if isinstance(client, Client):
            raise ConfigurationError(
                "a toolbox asks through an AsyncClient, the synchronous Toolbox too; pass one that "
                "nothing else uses"
            )
        self.client = client
        self.service = cast("AsyncClient", _Linked(self))
        """The methods of the client, each in bounded time."""
        self._timeout_s = timeout_s
        self._paused_until = float("-inf")  # time.monotonic()
        self._problem = ""

    @property
    def redactor(self) -> Redactor | None:
        """Masks secrets in what goes to others: the client's."""
        return DEFAULT_REDACTOR if self.client is None else self.client.redactor

    async def ask(self, question: Callable[[AsyncClient], Awaitable[T]]) -> T:
        """The answer, or an `AftercallError`: unreachable also when it was so a moment ago."""
        if self.client is None:
            raise ServiceUnreachableError("this toolbox has no service; give it a client")
        if time.monotonic() < self._paused_until:
            raise ServiceUnreachableError(f"not asked again just now: {self._problem}")
        try:
            async with asyncio.timeout(self._timeout_s):
                return await question(self.client)
        except (TimeoutError, *AWAY) as error:
            self._paused_until = time.monotonic() + PAUSE_S
            if not isinstance(error, TimeoutError):
                self._problem = str(error)
                raise
            self._problem = f"no answer within {self._timeout_s:g} s"
            raise ServiceTimeoutError(self._problem) from error


@dataclass(frozen=True, slots=True)
class _Linked:
    link: ServiceLink

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        return lambda *args, **options: self.link.ask(
            lambda client: getattr(client, method)(*args, **options)
        )


class Resolver:
    """Finds tools by id, namespace or scenario, in the versions that are in force here.

    `tools` are definitions of this program, by tool id; the promotions file need not be there yet.
    """

    def __init__(
        self, service: AsyncClient, tools: Mapping[str, ToolSpec], promotions_file: Path | None
    ) -> None:
        self._service = service
        self._own = {tool_id: as_tool(tool_id, spec) for tool_id, spec in tools.items()}
        # What the service named, for when it is away: originals (False) by id, what it had in force
        # (True) under an id or a namespace.
        self._seen: dict[tuple[str, bool], Tool] = {}
        self._promotions_file = promotions_file
        self._stamp: tuple[int, int, int] | None = None
        self._promotions: dict[str, Promotion] = {}

    def add(self, tool_id: str, spec: ToolSpec) -> None:
        """Add a definition of this program."""
        self._own[tool_id] = as_tool(tool_id, spec)

    def known(self) -> list[Tool]:
        """All originals that are known here, each once."""
        seen = {tool_id: tool for (tool_id, in_force), tool in self._seen.items() if not in_force}
        return list((seen | self._own).values())

    def promotions(self) -> Mapping[str, Promotion]:
        """What the promotions file holds now; nothing without one."""
        if self._promotions_file is None:
            return {}
        stamp = None
        with suppress(OSError):  # reading it says what is wrong
            found = self._promotions_file.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp is None or stamp != self._stamp:
            self._promotions = read_promotions(self._promotions_file, missing_ok=True)
            self._stamp = stamp
        return self._promotions

    def version_here(self, tool_id: str) -> str | None:
        """The version that this machine's promotions file lets run for a tool, if it does."""
        entry = self.promotions().get(tool_id)
        return None if entry is None or entry.evolved_file is None else entry.evolved_version

    async def original(self, tool_id: str) -> Tool:
        """A tool as it is registered; raises as `AsyncToolbox.get_tool`."""
        return self._own.get(tool_id) or await self._asked(tool_id, use_evolved=False)

    async def in_force(self, tool_id: str) -> Tool:
        """The promoted version of a tool, or the tool itself; raises as `AsyncToolbox.get_tool`."""
        entry = self.promotions().get(tool_id)
        if entry is not None:
            return in_place_of(await self._meant_by(tool_id, entry), entry, self.known())
        try:
            offered = await self._asked(tool_id, use_evolved=True)
        except (NotFoundError, *AWAY):
            if tool_id not in self._own:
                raise
            offered = self._own[tool_id]
        return await self._here(offered)

    async def best(self, namespace: str, scenario: str, *, use_rag: bool) -> BestTool:
        """The fittest of a namespace, and all that were compared."""
        best = await self._service.best_tool(namespace, scenario, use_rag=use_rag)
        ranked = await self._ranked(best.candidates)
        return best.model_copy(update={"tool": await self._here(best.tool), "candidates": ranked})

    async def find(self, scenario: str, tags: Sequence[str] | None, limit: int) -> FoundTools:
        """Tools for a scenario, best first."""
        found = await self._service.find_tools(scenario, tags=tags, limit=limit)
        return found.model_copy(update={"candidates": await self._ranked(found.candidates)})

    async def _ranked(self, ranked: Sequence[RankedTool]) -> list[RankedTool]:
        for each in ranked:
            self._remember(each.tool.tool_id, each.tool)
        return [each.model_copy(update={"tool": await self._here(each.tool)}) for each in ranked]

    async def _here(self, offered: Tool) -> Tool:
        """A tool as the service offers it, or what this machine has instead."""
        tool = self._ours(offered)
        promotions = self.promotions()
        if not promotions:
            return tool
        try:
            original = await self.original(original_id(tool)) if tool.is_evolved else tool
        except (NotFoundError, *AWAY):
            return tool
        entry = entry_for(original, promotions)
        return tool if entry is None else in_place_of(original, entry, self.known())

    def _ours(self, offered: Tool) -> Tool:
        """A tool of the service by this program's definition, where there is one.

        Of a promoted version that is no tool of its own, version and file are the service's.
        """
        own = self._own.get(offered.tool_id)
        if own is None:
            # Another id for a tool of this program: its claims about itself are the program's.
            names = (offered.server_name, offered.name)
            for each in self._own.values():
                if (each.server_name, each.name) == names:
                    return offered.model_copy(update={"annotations": each.annotations})
            return offered
        if not offered.is_evolved:
            return own
        file = evolved_file_of(offered)
        implementation = {**implementation_of(own), "evolved_file": file}
        changes = {"version": offered.version, "is_evolved": True, "implementation": implementation}
        return own.model_copy(update=changes) if file else offered

    async def _meant_by(self, name: str, entry: Promotion) -> Tool:
        with suppress(NotFoundError, *AWAY):
            return await self.original(name)
        known = self.known()
        with suppress(NotFoundError, *AWAY):
            offered = await self._asked(name, use_evolved=True)
            known.append(await self.original(original_id(offered)))
        meant = (tool for tool in known if entry_for(tool, {name: entry}) is not None)
        # Seed 002: the promotions file alone makes a tool.
        alone = as_tool(name, ToolSpec(name=name, version=entry.original_version))
        return next(meant, alone)

    async def _asked(self, tool_id: str, *, use_evolved: bool) -> Tool:
        try:
            tool = await self._service.get_tool(tool_id, use_evolved=use_evolved)
        except AWAY as error:
            known = self._own.get(tool_id) or self._seen.get((tool_id, False))
            if use_evolved:
                known = self._seen.get((tool_id, True), known)
            if known is not None:
                return known
            raise ServiceUnreachableError(
                f"the tool {tool_id!r} is not known here, and the service cannot be asked: {error}"
            ) from error
        self._remember(tool.tool_id, tool)
        if use_evolved:
            self._remember(tool_id, tool, in_force=True)
        return tool

    def _remember(self, name: str, tool: Tool, *, in_force: bool = False) -> None:
        if in_force or not tool.is_evolved:  # its original is what a promotion is applied to
            self._seen.pop((name, in_force), None)
            self._seen[name, in_force] = tool
            if len(self._seen) > _MAX_SEEN:
                del self._seen[next(iter(self._seen))]


def as_tool(tool_id: str, spec: ToolSpec) -> Tool:
    """A definition as a tool."""
    schema = spec.input_schema
    return Tool(
        **{name: getattr(spec, name) for name in ToolSpec.model_fields},
        tool_id=tool_id,
        schema_hash=None if schema is None else content_hash(schema),
        updated_at=datetime.now(UTC),
    )


def entry_for(tool: Tool, promotions: Mapping[str, Promotion]) -> Promotion | None:
    """The entry that stands in for a tool: under its id, else under its namespace.

    Of the tools in a namespace it is one that evolved from no other, and has the original version
    that the entry names.
    """
    if tool.tool_id in promotions:
        return promotions[tool.tool_id]
    entry = promotions.get(tool.namespace or "")
    if entry is None or tool.evolved_from is not None:
        return None
    is_meant = tool.version is None or same_version(tool.version, entry.original_version)
    return entry if is_meant else None


def in_place_of(original: Tool, entry: Promotion, known: Iterable[Tool] = ()) -> Tool:
    """The version that an entry puts in the place of a tool.

    For an entry without a file it is the tool among `known` that evolved from the original.
    """
    if entry.evolved_file is not None:
        return promoted_tool(original, entry)
    for tool in known:
        is_its = same_version(tool.version or "", entry.evolved_version)
        if is_its and tool.evolved_from == original.tool_id:
            return tool.model_copy(update={"is_evolved": True})
    raise ConfigurationError(
        f"{original.tool_id!r} is promoted to {entry.evolved_version} without a file, and no tool "
        "of that version is known here; register it with evolvedFrom, or name a file"
    )


def original_id(tool: Tool) -> str:
    """The id of the tool that a promoted version stands in for; an original's own."""
    is_registered = tool.is_evolved and evolved_file_of(tool) is None
    return (tool.evolved_from if is_registered else None) or tool.tool_id


def rank_by_words(
    scenario: str, tools: Iterable[Tool], tags: Sequence[str] | None
) -> list[tuple[Tool, float]]:
    """Tools that share words with a scenario, best first, for want of the service's ranking.

    The score is the share of the scenario's words that name, namespace, description and tags of the
    tool hold, 0 to 1. Left out are tools that hold less than a fifth of them, that have none of the
    tags, or a negative tag (`not-for-x`) for one of the tags or for words of the scenario.
    """
    asked, wanted = _words(scenario), set(tags or ())
    ranked = []
    for tool in tools:
        excluded = {t.removeprefix("not-for-") for t in tool.negative_tags if t[:8] == "not-for-"}
        if wanted and not wanted.intersection(tool.tags):
            continue
        if excluded & wanted or any(_words(each) <= asked for each in excluded):
            continue
        says = _words(
            " ".join([tool.tool_id, tool.name, tool.namespace or "", tool.description, *tool.tags])
        )
        score = len(asked & says) / len(asked) if asked else 0.0
        if score >= _LEAST_SHARE:
            ranked.append((tool, score))
    return sorted(ranked, key=lambda entry: (-entry[1], entry[0].tool_id))


def _words(text: str) -> set[str]:
    words = _WORD.findall(text.casefold())
    # Of ASCII words those of one or two letters ("a", "to") say little; "犬" says much.
    return {word.removesuffix("s") for word in words if len(word) > 2 or not word.isascii()}
