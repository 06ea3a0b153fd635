"""The benchmark's kinds of mistakes: each is made, is one, and is the same each time."""

import importlib
import random
from collections.abc import Sequence
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bench.quality.sessions import GoldCall, Session
from bench.quality.trial import Json, Trial, Verdict

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "file_name": {"type": "string", "pattern": r"^[a-z]+_[a-z]+\.txt$"},
        "user_id": {"type": "string", "pattern": r"^U\d{5}$"},
        "since": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"},
        "page": {"type": "number", "maximum": 100},
        "private": {"type": "boolean"},
        "reviewers": {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "string", "pattern": "^[a-z]{2,}$"},
        },
        "state": {"type": "string", "enum": ["open", "closed", "in_progress"]},
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path", "content"],
                "additionalProperties": False,
            },
        },
        "message": {"type": "string"},
        "comment": {"type": "string", "enum": ["long"]},
    },
    "required": ["file_name", "user_id", "since"],
    "additionalProperties": False,
}


def call_of(number: int, sequence: int) -> GoldCall:
    drawn = 3 * number + sequence
    parameters: Json = {
        "file_name": ("final_report.txt", "first_draft.txt")[drawn % 2],
        "user_id": f"U{12_345 + 678 * drawn}",
        "since": f"2026-03-{10 + drawn}",
        "page": 2 + drawn,
        "private": drawn % 3 == 0,
        "reviewers": ["ana", "ben"],
        "state": ("open", "closed", "in_progress")[drawn % 3],
        "files": [{"path": "a.py", "content": "x = 1"}],
        "message": "Add the report",
    }
    return GoldCall(
        f"session-{number}", sequence, "create_report", "reports", parameters, "Write it"
    )


class Reports:
    """Sessions of one tool, which takes what its schema allows."""

    def sessions(self) -> list[Session]:
        return [
            Session(f"session-{number}", tuple(call_of(number, at) for at in range(3)))
            for number in range(6)
        ]

    def schema_of(self, call: GoldCall) -> Json | None:
        return SCHEMA if call.tool == "create_report" else None

    async def trials_of(
        self, call: GoldCall, others: Sequence[Json], rng: random.Random
    ) -> list[Trial]:
        raise NotImplementedError(call, others, rng)  # the mistakes of `bench.quality.damage`


def error_of(_: GoldCall, parameters: Json) -> Json | None:
    for error in Draft202012Validator(SCHEMA).iter_errors(parameters):
        return {"type": "ToolError", "message": error.message}
    return None


def verdict(call: GoldCall, parameters: Json) -> Verdict:
    if error_of(call, parameters):
        return "fails"
    return "right" if parameters == call.parameters else "wrong success"


@pytest.fixture(scope="module")
def kinds() -> Any:
    """The module of all kinds, which imports frameworks: when a test needs it."""
    return importlib.import_module("bench.quality.kinds")


def make(kinds: Any) -> list[Trial]:
    """Every mistake that can be made of the calls of this world."""
    world = kinds.World("reports", Reports(), error_of, verdict, frozenset(("reports",)))
    return list(kinds.trials(world, world.dataset.sessions(), list(kinds.FAMILIES)))


@pytest.fixture(scope="module")
def made(kinds: Any) -> list[Trial]:
    """They are the same each time, so once will do for most tests."""
    return make(kinds)


def test_every_kind_makes_calls_that_the_tool_refuses(kinds: Any, made: list[Trial]) -> None:
    """What is sent is wrong, and what was meant is right; of one tool no call is another's.

    Later kinds are of the one half or the other, and not each can be made of this tool's calls.
    """
    later = ("agents", "fresh", "wild", "late", "sixth")
    families = {name: of for name, of in kinds.FAMILIES.items() if not name.startswith(later)}
    whole = {kind for of in families.values() for kind in of}
    assert len(whole) >= 32
    assert whole - {each.damage.kind for each in made} == {"another tool's call"}
    assert len({each.damage.kind for each in made} - whole) >= 8
    for each in made:
        call = call_of(0, each.sequence)
        assert each.error["message"]
        in_form = ("made-up id", "two calls mixed up", "impossible day")
        looked_up = each.damage.kind in in_form  # right in their form
        assert looked_up or error_of(call, each.damaged), each.damage
        assert error_of(call, each.gold) is None, each.damage


async def test_what_was_meant_is_right_save_where_nothing_can_be_known(
    kinds: Any, made: list[Trial]
) -> None:
    """In the families that should not be repaired no answer is right, not even the lucky one."""
    for each in made:
        guessed = each.damage.parameter in kinds.NEVER
        assert await each.judge(each.gold) == ("wrong success" if guessed else "right")


def test_the_mistakes_are_the_same_each_time(kinds: Any, made: list[Trial]) -> None:
    """So figures of two versions of the service can be compared."""
    assert [(each.damaged, each.damage) for each in make(kinds)] == [
        (each.damaged, each.damage) for each in made
    ]


def test_the_families_kept_for_the_end_are_of_other_mistakes_in_other_voices(kinds: Any) -> None:
    """So nothing of what the final table asks about was developed on."""
    from bench.quality import kinds_mixed as mixed

    assert set(kinds.KEPT) < kinds.FAMILIES.keys()
    assert not set(mixed.DEVELOPED.mistakes) & set(mixed.FINAL.mistakes)
    assert not set(mixed.DEVELOPED.voices) & set(mixed.FINAL.voices)


def test_every_part_that_is_left_out_is_there() -> None:
    """Of the ablation: a part of an old name would measure nothing, and look as if it earned 0."""
    from bench.quality import ablation

    for part in (*ablation.memory_parts(), *ablation.certainty_parts()):
        assert part.patches, part.name
        for owner, name, _ in part.patches:
            assert hasattr(owner, name), (part.name, name)
