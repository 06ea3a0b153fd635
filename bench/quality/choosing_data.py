"""Questions about tools, and which tools are right: MetaTool and Seal-Tools, split by a hash.

MetaTool (MIT, HowieHwong/MetaTool): 199 plugins, imbalanced, so everything is averaged over tools.
Of its two descriptions the short one is taken: the long one is the plugin's prompt for the model
and is missing for some. Seal-Tools (Apache-2.0, fairyshine/Seal-Tools): 4,076 functions with
schemas; most questions ask for several.
"""

import hashlib
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aftercall.models import Tool
from bench import data

SETS = {"metatool": "MetaTool", "sealtools": "Seal-Tools"}
LOOKED_AT = 400
"""Questions of MetaTool that ADR 3 looked at for two choices; they are in no test."""

_TIME = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for, and the names of the tools that are right."""

    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class ChoosingSet:
    """A set's tools, and its questions in two halves."""

    name: str
    tools: list[Tool]
    train: list[Question]
    test: list[Question]


def files_of(name: str) -> tuple[str, str]:
    """Return the names of a set's files: of its tools, and of its questions."""
    return f"{name}.tools.jsonl.gz", f"{name}.queries.jsonl.gz"


def left_out(name: str) -> str:
    """Return the line that says that a set is not there."""
    return data.left_out(SETS[name], *files_of(name))


def load(name: str) -> ChoosingSet | None:
    """A set by its name in `SETS`; None where its files are not there."""
    tools, questions = files_of(name)
    if not data.is_there(tools, questions):
        return None
    rows = list(data.rows(questions))
    looked_at: set[str] = set()
    if name == "metatool":
        sample = random.Random(1).sample(rows, LOOKED_AT)  # as `random.seed(1)` and `random.sample`
        looked_at = {row["query"] for row in sample}
    asked = [Question(row["query"], frozenset(row["relevant"])) for row in rows]
    return ChoosingSet(
        SETS[name],
        [_tool(row) for row in data.rows(tools)],
        [each for each in asked if _place(each.text) < 0.5],
        [each for each in asked if _place(each.text) >= 0.5 and each.text not in looked_at],
    )


def _tool(row: dict[str, Any]) -> Tool:
    return Tool(
        tool_id=row["tool"], name=row["tool"], description=row["description"],
        input_schema=row.get("schema"), updated_at=_TIME,
    )  # fmt: skip


def _place(text: str) -> float:
    """A number in [0, 1) that stands for the text, so that nobody chooses its half."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32
