"""Where the cases of the laws come from.

Written cases and those of the field have the error in the words of their server. Of real schemas
(GitHub's tools, Seal-Tools) and generated ones, right calls are damaged at any depth, and the error
is rendered in the words of a library that a hash of the tool's name draws.
"""

import json
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from aftercall.models import ToolAnnotations
from bench import data
from bench.quality import github, seal
from bench.quality.damage import damaged, damages_of
from bench.quality.laws import generated
from bench.quality.laws.case import Case, KeyPath, objects, put_at, schema_at, value_at
from bench.quality.laws.complaints import errors_of
from bench.quality.laws.dialects import DIALECTS, refusal
from bench.quality.sessions import GoldCall
from bench.quality.trial import TWO, Damage, Json

_KNOWN = ("renamed key", "wrong type", "changed case", "unexpected parameter", TWO)
"""Damages of which the right call is the undamaged one; of others nobody can know it."""
_WRITTEN = Path(__file__).parents[1] / "written"
_MENDS = 16
_PER_CALL = 4


def written_cases() -> Iterator[Case]:
    """Yield the cases of all written sets."""
    for file in sorted(_WRITTEN.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            gold = row["gold"]
            yield _given(row, "written", () if gold is None else (gold,))


def field_cases() -> Iterator[Case]:
    """Yield the cases of the field: reports about MCP servers, agents and frameworks."""
    for name in ("mcp", "frameworks"):
        for row in _lines(f"field/{name}.jsonl"):
            yield _given(row, "field", tuple(row["gold"]))


def dialect_cases() -> Iterator[Case]:
    """Yield the calls that real libraries refused, with all right ones."""
    for name in ("go", "js", "jvm", "rust"):
        for row in _lines(f"dialects/{name}.jsonl"):
            if isinstance(row["call"], dict):
                error = row["error"]
                text = error if isinstance(error, str) else json.dumps(error)
                row |= {"error": {"message": text}, "server": row["library"].split()[0]}
                yield _given(row, "dialects", tuple(row["gold"]))


def _lines(name: str) -> Iterator[Json]:
    if not data.is_there(name):
        return
    yield from map(json.loads, data.path(name).read_text(encoding="utf-8").splitlines())


def _given(row: Json, source: str, right: tuple[Json, ...]) -> Case:
    error = {name: value for name, value in row["error"].items() if value is not None}
    hints = row.get("annotations")
    known = {key: value for key, value in (hints or {}).items() if key.endswith("Hint")}
    return Case(
        source, row["id"], row["tool"], row["server"], row["call"],
        {"type": "ToolError", "message": "", **error}, row["schema"], right,
        None if hints is None else ToolAnnotations.model_validate(known),
        row.get("context") or "",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A damage and the path of the object that it is done to."""

    path: KeyPath
    damage: Damage


def damage_call(call: Json, place: Place) -> Json | None:
    """Return the call with a damage in it; None where it cannot have it."""
    try:
        holder = value_at(call, place.path)
    except (LookupError, TypeError):
        return None
    sent = damaged(holder, place.damage) if isinstance(holder, dict) else None
    changed: Json | None = None if sent is None else put_at(call, place.path, sent)
    return changed


def damaged_cases(of: Case, rng: random.Random, siblings: Sequence[Json] = ()) -> Iterator[Case]:
    """Yield cases of a right call, each damaged in one way that its schema refuses.

    `of` holds the right call. `siblings` are other right calls of the tool: the same damage done
    to them is what other agents sent.
    """
    assert of.schema is not None
    places = [
        Place(path, damage)
        for path, holder in objects(of.call)
        if holder and (part := schema_at(of.schema, path)) is not None
        for damage in damages_of(holder, part, (), rng)
    ]
    rng.shuffle(places)
    dialect = dialect_of(of.tool)
    for place in places:
        sent = damage_call(of.call, place)
        error = None if sent is None else refusal(dialect, of.tool, of.schema, sent)
        if sent is None or error is None:
            continue
        pairs = ((damage_call(each, place), each) for each in siblings)
        mends = tuple((wrong, right) for wrong, right in pairs if wrong is not None)[:_MENDS]
        right = (of.call,) if place.damage.kind in _KNOWN else None
        yield replace(
            of, name=f"{of.name} {place.damage.name}", call=sent, error=error, right=right,
            dialect=dialect, mends=mends,
        )  # fmt: skip


def dialect_of(tool: str) -> str:
    """Return the library whose words a tool's server uses."""
    return sorted(DIALECTS)[zlib.crc32(tool.encode()) % len(DIALECTS)]


def _right(source: str, call: GoldCall, schema: Json) -> Case:
    name = f"{call.session}/{call.sequence}"
    return Case(source, name, call.tool, call.server, call.parameters, {"message": ""}, schema,
                context=call.context)  # fmt: skip


def github_cases() -> Iterator[Case]:
    """Yield damaged calls of GitHub's tools."""
    if not github.available():
        return
    rng = random.Random("laws/github")
    for session in github.GitHub().sessions():
        for call in session.calls:
            schema = github.schemas()[call.tool]
            right = _right("github", call, schema)
            yield from islice(damaged_cases(right, rng), _PER_CALL)


def seal_cases() -> Iterator[Case]:
    """Yield damaged calls of Seal-Tools."""
    if not seal.available():
        return
    rng = random.Random("laws/seal")
    for session in seal.Seal().sessions():
        for call in session.calls:
            schema = seal.schemas()[call.tool]
            right = _right("seal", call, schema)
            yield from islice(damaged_cases(right, rng), _PER_CALL)


def right_calls(seed: str) -> Iterator[Case]:
    """Yield generated tools of depth 1 to 5 with a right call each, without end."""
    number = 0
    while True:
        number += 1
        rng = random.Random(f"laws/{seed}/{number}")
        tool = generated.make_tool(rng, 1 + number % 5)
        call = generated.make_call(rng, tool.schema)
        if not errors_of(tool.schema, call):
            yield Case("generated", f"{seed}-{number}", tool.name, tool.server, call,
                       {"message": ""}, tool.schema)  # fmt: skip


def generated_cases(seed: str = "bench") -> Iterator[Case]:
    """Yield damaged calls of generated tools, without end."""
    for right in right_calls(seed):
        rng = random.Random(f"damage/{right.name}")
        assert right.schema is not None
        siblings = [generated.make_call(rng, right.schema) for _ in range(_MENDS)]
        yield from islice(damaged_cases(right, rng, siblings), _PER_CALL)


SOURCES: dict[str, Callable[[], Iterator[Case]]] = {
    "written": written_cases, "field": field_cases, "dialects": dialect_cases,
    "github": github_cases, "seal": seal_cases, "generated": generated_cases,
}  # fmt: skip
_POOL = 3_000
"""Most cases that are drawn from one source, before they are shuffled."""


def stream(chosen: Sequence[str] = tuple(SOURCES), most: int = _POOL) -> Iterator[Case]:
    """Yield the cases of the chosen sources in turn, each source shuffled; the same each time."""
    pools: list[list[Any]] = []
    for name in chosen:
        pool = list(islice(SOURCES[name](), most))
        random.Random(f"laws/{name}").shuffle(pool)
        pools.append(pool[::-1])
    while any(pools):
        for pool in pools:
            if pool:
                yield pool.pop()
