"""Seal-Tools: 4,076 tools and calls of them, which nothing was fitted on or developed with.

Each query is a session of a user's words and the right calls. Nothing can be executed, so that a
correction is right when it equals the right call. A tool's server refuses in the voice that a hash
of its name draws, and half of them refuse unknown names. Apache-2.0; see `bench/README.md`.
"""

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from bench import data
from bench.quality import voices
from bench.quality.damage import damaged, damages_of
from bench.quality.kinds_words import words_of
from bench.quality.sessions import GoldCall, Session
from bench.quality.trial import Json, Trial, Verdict
from retrieval.knowledge.values.scalars import same_value

FILES = _TOOLS, _QUERIES = "sealtools.tools.jsonl.gz", "sealtools.queries.jsonl.gz"
SERVER = "seal"
_EMPTY = frozenset(
    re.findall(
        r"\w+",
        """the of a an to for be in on and or is that this which you want will used use are from
        with by it as its specific specified desired""",
    )
)


def available() -> bool:
    """Whether the tools and queries are there."""
    return data.is_there(*FILES)


@cache
def schemas() -> dict[str, Json]:
    """Input schemas by tool."""
    return {
        row["tool"]: {**row["schema"], **({"additionalProperties": False} if _half(row) else {})}
        for row in data.rows(_TOOLS)
    }


def _half(row: Json) -> bool:
    return hashlib.sha256(row["tool"].encode()).digest()[0] % 2 == 0


class Seal:
    """The queries as sessions; calls that do not fit their schemas are left out."""

    def sessions(self) -> list[Session]:
        """The sessions."""
        found = []
        for row in data.rows(_QUERIES):
            fit = [
                each
                for each in row["calls"]
                if each["parameters"] and not errors_of(each["tool"], each["parameters"])
            ]
            calls = tuple(
                GoldCall(row["id"], at, each["tool"], SERVER, each["parameters"], row["query"])
                for at, each in enumerate(fit)
            )
            found.append(Session(row["id"], calls))
        return found

    def schema_of(self, call: GoldCall) -> Json | None:
        """The tool's input schema."""
        return schemas()[call.tool]

    async def trials_of(
        self, call: GoldCall, others: Sequence[Json], rng: random.Random
    ) -> list[Trial]:
        """The damages that the schema refuses: what the memory has seen mended."""
        found = []
        for damage in damages_of(call.parameters, schemas()[call.tool], others, rng):
            sent = damaged(call.parameters, damage)
            error = None if sent is None else error_of(call, sent)
            if sent is not None and error is not None:
                found.append(
                    Trial(call.session, call.tool, SERVER, sent, call.parameters, error,
                          call.context, schemas()[call.tool], damage, _nobody)
                )  # fmt: skip
        return found


async def _nobody(_: Json) -> Verdict:
    raise NotImplementedError("damages of the history are not judged")


def errors_of(tool: str, parameters: Json) -> list[Any]:
    """What is wrong with a call by its schema."""
    return sorted(_validator(tool).iter_errors(parameters), key=str)


@cache
def _validator(tool: str) -> Draft202012Validator:
    return Draft202012Validator(schemas()[tool])


def error_of(call: GoldCall, parameters: Json) -> Json | None:
    """What the tool's server says, in one of the voices known while developing."""
    errors = errors_of(call.tool, parameters)
    rng = random.Random(f"voice/{call.tool}")
    return voices.said(rng.choice(voices.KNOWN), call.tool, errors) if errors else None


def verdict(call: GoldCall, parameters: Json) -> Verdict:
    """Whether a correction is the right call."""
    if same_value(parameters, call.parameters):
        return "right"
    return "fails" if errors_of(call.tool, parameters) else "wrong success"


def names_elsewhere(name: str, of: Json) -> list[str]:
    """Names that other tools give to a parameter which they describe in the same words.

    There are none where Seal-Tools is not there.
    """
    if not available():
        return []
    mine = "".join(words_of(name)).lower()
    found = _named().get((_said(of.get("description", "")), str(of.get("type"))), ())
    return sorted(other for other in found if "".join(words_of(other)).lower() != mine)


@cache
def _named() -> dict[tuple[frozenset[str], str], set[str]]:
    found: dict[tuple[frozenset[str], str], set[str]] = defaultdict(set)
    for schema in schemas().values():
        for name, of in schema["properties"].items():
            found[_said(of["description"]), str(of.get("type"))].add(name)
    return found


def _said(description: str) -> frozenset[str]:
    """The words of a description without examples and small words."""
    plain = re.sub(r"\(.*?\)|\be\.g\..*", "", description.lower())
    return frozenset(w.rstrip("s") for w in re.findall(r"[a-z]+", plain) if w not in _EMPTY)
