"""The data of `bench.quality.rewrites`: forms of change, calls to leave alone, mends told again."""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from aftercall.json_patch import same_json
from bench.quality.laws.case import Case, KeyPath, Past, leaves, value_at
from bench.quality.trial import Json

FOLDER = Path(__file__).parent / "rewrites"
TAUGHT = 2
"""Pairs of a form that are taught; the others are asked for."""
_BETWEEN = " -> "
_PLACE = re.compile(r"%\{([^}]+)\}")
_WORDS = (
    "harbour", "walnut", "glacier", "lantern", "meadow", "copper", "violin", "pepper", "canyon",
    "saddle", "orchid", "timber", "raven", "marble", "willow", "amber", "falcon", "ginger",
    "basalt", "cedar", "dune", "ember", "fjord", "granite", "heron", "island", "juniper",
    "kettle", "linen", "mallow", "nectar", "opal", "prairie", "quarry", "reed", "sorrel",
    "thistle", "umber", "valley", "wren", "yarrow", "zephyr",
)  # fmt: skip
Pair = tuple[Json, Json]
"""A failed call and the call that worked."""


@dataclass(frozen=True, slots=True)
class Told:
    """Calls of a tool that failed with an error, and what mended them."""

    name: str
    tool: str
    server: str
    error: str
    pairs: tuple[Pair, ...]

    def lessons(self, pairs: Sequence[Pair], schema: Json | None = None) -> tuple[Past, ...]:
        """Return sessions of agents with a key each; each fails and mends one of the pairs."""
        return tuple(
            past for at, pair in enumerate(pairs) for past in self._lesson(at, pair, schema)
        )

    def _lesson(self, at: int, pair: Pair, schema: Json | None) -> Iterator[Past]:
        failed, mended = pair
        of = (f"agent-{at}", f"{self.tool}-{at}", self.tool, self.server)
        key = f"key-{at}"
        yield Past(*of, failed, error_about(self.error, failed), schema, principal=key)
        yield Past(*of, mended, None, schema, principal=key)

    def asked(
        self, call: Json, right: tuple[Json, ...] | None, history: tuple[Past, ...],
        schema: Json | None = None,
    ) -> Case:  # fmt: skip
        """Return the question of another agent, with a key of its own, after the same error."""
        return Case(
            "rewrites", self.name, self.tool, self.server, call, error_about(self.error, call),
            schema, right, history=history, agent="asker", session=f"asker-{self.tool}",
            principal="key-asker",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form(Told):
    """A form of change; in all of its pairs the same becomes of the leaves."""

    family: str
    change: str
    opaque: bool
    """Whether the error says nothing of use."""
    other: Json | None
    """A right call of the tool that the lesson must not touch."""

    @property
    def schema(self) -> Json:
        """The schema that the right calls have in common."""
        return schema_of([mended for _, mended in self.pairs] + [self.other] * bool(self.other))


@dataclass(frozen=True, slots=True)
class Trap(Told):
    """What was taught, and a call that it must not touch."""

    kind: str
    theirs: tuple[Any, ...]
    """Values of others that must not be proposed."""
    question: Case


@dataclass(frozen=True, slots=True)
class Mend(Told):
    """A mend that is told again and again, by other agents about other values."""

    states: bool
    """Whether the error itself states the change."""

    def failures(self, pairs: Sequence[Pair], schema: Json | None = None) -> tuple[Past, ...]:
        """Return sessions of agents that send what mended the others, and fail again."""
        return tuple(
            replace(past, session=f"{past.session}-again", agent=f"{past.agent}-again",
                    principal=f"{past.principal}-again",
                    error=error_about(self.error, past.call), is_repair=past.error is None)
            for past in self.lessons(pairs, schema)
        )  # fmt: skip


def forms() -> list[Form]:
    """Return all forms of change."""
    return [
        Form(**_told(row, "pairs"), family=row["family"], change=row["change"],
             opaque=row.get("opaque", False), other=_json(row.get("other")))
        for row in _rows("form")
    ]  # fmt: skip


def traps() -> list[Trap]:
    """Return all traps."""
    return [_trap(row) for row in _rows("trap")]


def _trap(row: Json) -> Trap:
    told = _told(row, "taught")
    of = {"name": row["name"], "tool": row.get("asked_tool", row["tool"]),
          "server": row.get("asked_server", row["server"]),
          "error": row.get("asked_error", row["error"]), "pairs": ()}  # fmt: skip
    question = Told(**of).asked(json.loads(row["asked"]), None, ())
    return Trap(**told, kind=row["kind"], theirs=tuple(row.get("theirs", ())), question=question)


def mends(count: int) -> list[Mend]:
    """Return the mends of so many agents each; the asker's own is one more, the last."""
    return [
        Mend(**{**_told(row), "pairs": tuple(_filled(row, at) for at in range(count + 1))},
             states=row["states"])
        for row in _rows("mend")
    ]  # fmt: skip


def _filled(row: Json, number: int) -> Pair:
    word, figure = _WORDS[number % len(_WORDS)], 101 + 37 * number
    failed, mended = (
        json.loads(row[name].replace("$w", word).replace("$n", str(figure)))
        for name in ("failed", "mended")
    )
    return failed, mended


def _rows(name: str) -> list[Json]:
    file = {"form": "forms", "trap": "traps", "mend": "evidence"}[name]
    found: list[Json] = tomllib.loads((FOLDER / f"{file}.toml").read_text(encoding="utf-8"))[name]
    return found


def _told(row: Json, pairs: str | None = None) -> Json:
    lines = row[pairs].strip().splitlines() if pairs else ()
    split = (map(json.loads, line.split(_BETWEEN)) for line in lines)
    told = {name: row[name] for name in ("name", "tool", "server", "error")}
    return {**told, "pairs": tuple((failed, mended) for failed, mended in split)}


def _json(text: str | None) -> Json | None:
    return None if text is None else json.loads(text)


def error_about(error: str, call: Json) -> Json:
    """Return the error with the values of the call that it quotes."""
    return {"message": _PLACE.sub(lambda found: str(value_at(call, _path(found[1]))), error)}


def _path(text: str) -> KeyPath:
    return tuple(int(key) if key.isdecimal() else key for key in text.split("."))


def changes_of(failed: Json, mended: Json) -> set[str]:
    """Return what becomes of the leaves: `-path` gone, `+path` new, `~path` another value."""
    before, after = (
        {".".join(map(str, path)): value for path, value in leaves(call)}
        for call in (failed, mended)
    )
    changed = {path for path in before.keys() & after.keys()
               if not same_json(before[path], after[path])}  # fmt: skip
    return {
        *(f"-{path}" for path in before.keys() - after.keys()),
        *(f"+{path}" for path in after.keys() - before.keys()),
        *(f"~{path}" for path in changed),
    }


def is_change(text: str, found: set[str]) -> bool:
    """Return whether changes are those of a form: all of them, and no others."""
    wanted = text.split()
    tokens = [each.removeprefix("?") for each in wanted]
    needed = [each for each in wanted if not each.startswith("?")]
    return all(any(_matches(each, token) for token in tokens) for each in found) and all(
        any(_matches(each, token) for each in found) for token in needed
    )


def _matches(found: str, token: str) -> bool:
    return found.count(".") == token.count(".") and fnmatchcase(found, token)


def schema_of(values: Sequence[Any]) -> Json:
    """Return a closed schema of JSON values: what all have is required."""
    kinds = sorted({_type_of(value) for value in values})
    schema: Json = {"type": kinds[0] if len(kinds) == 1 else kinds}
    holders = [value for value in values if isinstance(value, dict)]
    if holders:
        names = dict.fromkeys(name for each in holders for name in each)
        schema["properties"] = {
            name: schema_of([each[name] for each in holders if name in each]) for name in names
        }
        schema["required"] = [name for name in names if all(name in each for each in holders)]
        schema["additionalProperties"] = False
    items = [item for value in values if isinstance(value, list) for item in value]
    if items:
        schema["items"] = schema_of(items)
    return schema


def _type_of(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array",
             dict: "object", type(None): "null"}  # fmt: skip
    return names[type(value)]
