"""Seal-Tools: 4,076 tools and calls of them.

Each query is a session of a user's words and the right calls. Nothing can be executed, so that a
correction is right when it equals the right call. Half of the servers, by a hash of the tool's
name, refuse unknown names. Apache-2.0; see `bench/README.md`.
"""

import hashlib
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from bench import data
from bench.quality.sessions import GoldCall, Session
from bench.quality.trial import Json, Verdict
from retrieval.knowledge.values.scalars import same_value

FILES = _TOOLS, _QUERIES = "sealtools.tools.jsonl.gz", "sealtools.queries.jsonl.gz"
SERVER = "seal"


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


def errors_of(tool: str, parameters: Json) -> list[Any]:
    """What is wrong with a call by its schema."""
    return sorted(_validator(tool).iter_errors(parameters), key=str)


@cache
def _validator(tool: str) -> Draft202012Validator:
    return Draft202012Validator(schemas()[tool])


def verdict(call: GoldCall, parameters: Json) -> Verdict:
    """Whether a correction is the right call."""
    if same_value(parameters, call.parameters):
        return "right"
    return "fails" if errors_of(call.tool, parameters) else "wrong success"
