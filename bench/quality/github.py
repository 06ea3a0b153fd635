"""GitHub's tools: real input schemas, right calls that fit them, damaged and validated.

Nothing can be executed here, so a correction is right when it equals the gold call. Half of the
tools speak as MCP's Python SDK does (`jsonschema`), half as its TypeScript SDK does (ajv). The
latter refuse unknown names, as strict zod objects do, and their schemas say so; GitHub's own are
silent about them. Damages inside of objects and lists have kinds of their own, `nested ...`, and
name their place by a JSON Pointer. The schemas (MIT, github/github-mcp-server) are one of the data
sets of `bench/README.md`.
"""

import copy
import gzip
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import relevance

from bench import data
from bench.quality.damage import damaged, damages_of
from bench.quality.sessions import GoldCall, Session
from bench.quality.trial import Damage, Json, Trial, Verdict
from retrieval.knowledge.values.scalars import same_value

FILE = "github_mcp.tools.jsonl.gz"
SERVER = "github"
_SESSIONS = Path(__file__).with_name("held") / "github_sessions.jsonl.gz"
PLACES = (
    "octo-org", "hello", "docs-site", "billing-api", "rivet-labs", "parser", "rivet-cli", "acme",
    "web", "mobile-app", "infra", "Northwind", "Orders", "data-pipeline", "mkarlsson", "dotfiles",
    "chess-engine", "OpenHarbor", "harbor-ui", "Gateway",
)  # fmt: skip
"""The owners and repositories that there are."""
NESTED_KINDS = ("nested missing required", "nested renamed key", "nested wrong type")

_NESTED = "nested "


def available() -> bool:
    """Whether the schemas are there."""
    return data.is_there(FILE)


@cache
def schemas() -> dict[str, Json]:
    """Input schemas by tool, as the servers list them."""
    return {
        tool: {**row["schema"], "additionalProperties": False} if _is_ajv(tool) else row["schema"]
        for tool, row in _listed().items()
    }


class GitHub:
    """120 sessions of 4 to 8 calls each, which were made from the schemas and fit them."""

    def sessions(self) -> list[Session]:
        """Return the sessions of `held/github_sessions.jsonl.gz`, the same each time."""
        with gzip.open(_SESSIONS, "rt", encoding="utf-8") as lines:
            return [_session(json.loads(line)) for line in lines]

    def schema_of(self, call: GoldCall) -> Json | None:
        """The tool's input schema, as its server lists it."""
        return schemas()[call.tool]

    async def trials_of(
        self, call: GoldCall, others: Sequence[Json], rng: random.Random
    ) -> list[Trial]:
        """The damages that the schema refuses."""
        damages = _damages_of(call, others, rng)
        return [trial for each in damages if (trial := trial_of(call, each))]


def trial_of(call: GoldCall, damage: Damage) -> Trial | None:
    """The trial of a damaged call; None where it is still valid, or the damage does not apply."""
    sent = _damaged(call.parameters, damage)
    error = None if sent is None else error_of(call.tool, sent)
    if sent is None or error is None:
        return None
    return Trial(
        session=call.session, tool=call.tool, server=call.server, damaged=sent,
        gold=call.parameters, error=error, context=call.context, schema=schemas()[call.tool],
        damage=damage, judge=partial(judge, call),
    )  # fmt: skip


async def judge(call: GoldCall, parameters: Json) -> Verdict:
    """Whether the parameters are those of the gold call, or at least valid."""
    if same_value(parameters, call.parameters):
        return "right"
    return "fails" if error_of(call.tool, parameters) else "wrong success"


def error_of(tool: str, parameters: Json) -> Json | None:
    """What the tool's server says about the parameters; None where they are valid."""
    errors = sorted(_validator(tool).iter_errors(parameters), key=relevance, reverse=True)
    if not errors:
        return None
    if not _is_ajv(tool):
        said = "\n".join(error.message for error in errors)
        return {"type": "ToolError", "message": f"Input validation error: {said}"}
    errors.sort(key=lambda error: error.validator != "type")  # ajv looks at types first
    said = ", ".join(dict.fromkeys(line for error in errors for line in ajv_messages(error)))
    message = f"MCP error -32602: Invalid arguments for tool {tool}: {said}"
    return {"type": "McpError", "message": message, "code": "-32602"}


def ajv_messages(error: ValidationError) -> Iterator[str]:
    """The error in the words of ajv 8 (`allErrors`, `errorsText`), where `data` is the call."""
    for below in error.context or ():
        yield from ajv_messages(below)
    place = "/".join(["data", *map(str, error.absolute_path)])
    rule = str(error.validator)
    wanted: Any = error.validator_value
    found: Any = error.instance
    if rule == "required":
        names = [name for name in wanted if name not in found]
        yield from (f"{place} must have required property '{name}'" for name in names)
    elif rule == "type":
        yield f"{place} must be {','.join([wanted] if isinstance(wanted, str) else wanted)}"
    else:
        yield f"{place} must {_AJV_WORDS[rule].format(wanted)}"


_AJV_WORDS = {
    "enum": "be equal to one of the allowed values", "minimum": "be >= {}", "maximum": "be <= {}",
    "minLength": "NOT have fewer than {} characters",
    "maxLength": "NOT have more than {} characters",
    "minItems": "NOT have fewer than {} items", "maxItems": "NOT have more than {} items",
    "oneOf": "match exactly one schema in oneOf", "anyOf": "match a schema in anyOf",
    "additionalProperties": "NOT have additional properties",
}  # fmt: skip


@cache
def _listed() -> dict[str, Json]:
    return {row["tool"]: row for row in data.rows(FILE)}


@cache
def _validator(tool: str) -> Draft202012Validator:
    return Draft202012Validator(schemas()[tool])


def _is_ajv(tool: str) -> bool:
    return hashlib.sha256(tool.encode()).digest()[0] % 2 == 0


def _damages_of(call: GoldCall, others: Sequence[Json], rng: random.Random) -> Iterator[Damage]:
    yield from damages_of(call.parameters, schemas()[call.tool], others, rng)
    yield from _nested_damages_of(call, rng)


def _nested_damages_of(call: GoldCall, rng: random.Random) -> Iterator[Damage]:
    """One damage of each nested kind that the schema refuses, where there is one."""
    places = list(_objects(call.parameters))[1:]
    rng.shuffle(places)
    left = set(NESTED_KINDS)
    for pointer, found in places:
        for each in damages_of(found, None, (), rng):
            damage = replace(
                each, kind=_NESTED + each.kind, parameter=f"{pointer}/{each.parameter}"
            )
            if damage.kind in left and trial_of(call, damage):
                left.remove(damage.kind)
                yield damage


def _objects(value: Any, pointer: str = "") -> Iterator[tuple[str, Json]]:
    """All objects inside of the value with their JSON Pointers, outer ones first."""
    if isinstance(value, dict):
        yield pointer, value
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            yield from _objects(item, f"{pointer}/{key}")


def _damaged(parameters: Json, damage: Damage) -> Json | None:
    if not damage.kind.startswith(_NESTED):
        return damaged(parameters, damage)
    *above, name = damage.parameter.split("/")[1:]
    *outer, last = above
    sent = copy.deepcopy(parameters)
    holder = _at(sent, outer)
    key: Any = int(last) if isinstance(holder, list) else last
    plain = replace(damage, kind=damage.kind.removeprefix(_NESTED), parameter=name)
    changed = damaged(holder[key], plain)
    if changed is None:
        return None
    holder[key] = changed
    return sent


def _at(value: Any, tokens: Sequence[str]) -> Any:
    for token in tokens:
        value = value[int(token) if isinstance(value, list) else token]
    return value


def _session(row: Json) -> Session:
    calls = tuple(
        GoldCall(row["session"], at, each["tool"], SERVER, each["parameters"], each["context"])
        for at, each in enumerate(row["calls"])
    )
    return Session(row["session"], calls)
