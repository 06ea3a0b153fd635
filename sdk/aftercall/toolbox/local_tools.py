"""What a toolbox knows without the service: tools of this program, tools seen, promotions."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from aftercall.json_values import content_hash
from aftercall.models import Promotion, Tool, ToolSpec
from aftercall.promotions_file import read_promotions

_MAX_SEEN = 1_000
"""Tools of the service that are remembered; names come from agents and must not grow forever."""

_LEAST_SHARE = 0.2
"""Of a scenario's words; a tool that holds fewer hardly fits, and is not to be run on a guess."""

_WORD = re.compile(r"[^\W_]+")


class LocalTools:
    """Tools by id, and the promotions file, which is read anew whenever it has changed.

    Args:
        tools: definitions of this program; they go before what the service has.
        promotions: the file `.tool_promotions.json`, which need not be there yet.
    """

    def __init__(self, tools: Mapping[str, ToolSpec], promotions: Path | None) -> None:
        self._own = {tool_id: as_tool(tool_id, spec) for tool_id, spec in tools.items()}
        self._seen: OrderedDict[str, Tool] = OrderedDict()
        self._offered: OrderedDict[str, Tool] = OrderedDict()
        self._promotions_file = promotions
        self._stamp: tuple[int, int, int] | None = None
        self._promotions: dict[str, Promotion] = {}

    def own(self, tool_id: str) -> Tool | None:
        """A definition of this program."""
        return self._own.get(tool_id)

    def known(self, tool_id: str) -> Tool | None:
        """A definition of this program, or the tool as the service last had it."""
        return self._own.get(tool_id) or self._seen.get(tool_id)

    def own_named(self, server_name: str | None, name: str) -> Tool | None:
        """A definition of this program by the names that calls of the tool are recorded under."""
        named = (t for t in self._own.values() if (t.server_name, t.name) == (server_name, name))
        return next(named, None)

    def offered(self, name: str) -> Tool | None:
        """What the service last had in force under an id or the name of a namespace."""
        return self._offered.get(name) or self.known(name)

    def all(self) -> list[Tool]:
        """All originals that are known, each once."""
        return list((self._seen | self._own).values())

    def add(self, tool_id: str, spec: ToolSpec) -> None:
        """Add a definition of this program."""
        self._own[tool_id] = as_tool(tool_id, spec)

    def remember(self, tools: Iterable[Tool], *, asked: str | None = None) -> None:
        """Keep what the service said, for when it is away.

        Args:
            tools: as registered or promoted.
            asked: the id or namespace that they were the answer to, as what is in force.
        """
        for tool in tools:
            if not tool.is_evolved:  # its original is what a promotion is applied to
                _keep(self._seen, tool.tool_id, tool)
            if asked is not None:
                _keep(self._offered, asked, tool)

    def promotions(self) -> Mapping[str, Promotion]:
        """What the promotions file holds now; nothing without one.

        Raises:
            PromotionsFileError: it is malformed.
        """
        if self._promotions_file is None:
            return {}
        try:
            found = self._promotions_file.stat()
        except FileNotFoundError:
            self._stamp, self._promotions = None, {}
            return {}
        except OSError:
            return read_promotions(self._promotions_file)  # which says what is wrong
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp != self._stamp:
            self._promotions = read_promotions(self._promotions_file, missing_ok=True)
            self._stamp = stamp
        return self._promotions


def as_tool(tool_id: str, spec: ToolSpec) -> Tool:
    """A definition as a tool."""
    fields = {name: getattr(spec, name) for name in ToolSpec.model_fields}
    schema = spec.input_schema
    return Tool(
        **fields,
        tool_id=tool_id,
        schema_hash=None if schema is None else content_hash(schema),
        updated_at=datetime.now(UTC),
    )


def _keep(kept: OrderedDict[str, Tool], name: str, tool: Tool) -> None:
    kept[name] = tool
    kept.move_to_end(name)
    if len(kept) > _MAX_SEEN:
        kept.popitem(last=False)


def rank_by_words(
    scenario: str, tools: Iterable[Tool], tags: Sequence[str] | None
) -> list[tuple[Tool, float]]:
    """Tools that share words with a scenario, best first, for want of the service's ranking.

    The score is the share of the scenario's words that name, namespace, description and tags of the
    tool hold, 0 to 1. Left out are tools that hold less than a fifth of them, that have none of the
    tags, or a negative tag (`not-for-x`) for one of the tags or for words of the scenario.
    """
    asked = _words(scenario)
    wanted = set(tags or ())
    ranked = []
    for tool in tools:
        if wanted and not wanted.intersection(tool.tags):
            continue
        if any(_excludes(tag, asked, wanted) for tag in tool.negative_tags):
            continue
        says = _words(
            " ".join([tool.tool_id, tool.name, tool.namespace or "", tool.description, *tool.tags])
        )
        score = len(asked & says) / len(asked) if asked else 0.0
        if score >= _LEAST_SHARE:
            ranked.append((tool, score))
    return sorted(ranked, key=lambda entry: (-entry[1], entry[0].tool_id))


def _excludes(negative_tag: str, asked: set[str], wanted: set[str]) -> bool:
    what = negative_tag.removeprefix("not-for-")
    return what != negative_tag and (what in wanted or _words(what) <= asked)


def _words(text: str) -> set[str]:
    words = _WORD.findall(text.casefold())
    # Of ASCII words those of one or two letters ("a", "to") say little; "犬" says much.
    return {word.removesuffix("s") for word in words if len(word) > 2 or not word.isascii()}
