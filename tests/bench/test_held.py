"""The mistakes that were put aside as data: they are whole, and are asked as they were made."""

from collections import Counter
from typing import Any, get_args

import pytest

from bench.quality import held
from bench.quality.sessions import GoldCall, Session
from bench.quality.tables import UNREPAIRABLE
from bench.quality.trial import Json, Verdict
from bench.quality.worlds import NAMES, World, read_texts

EACH_WORLD = pytest.mark.parametrize("name", NAMES)
MOST_BYTES = 3 * 1024 * 1024


@EACH_WORLD
def test_each_world_has_cases_of_every_part_and_what_taught_before_them(name: str) -> None:
    """Of each part some hold no right repair, and of the last batch only the check asks."""
    cases = list(held.rows(f"{name}.cases"))
    parts = set(get_args(held.Part))
    assert {row["part"] for row in cases if row["family"] == UNREPAIRABLE} == parts
    assert {row["part"] for row in held.rows(f"{name}.taught")} == parts
    assert {row["part"] for row in cases if row["family"] == "sixth, kept"} == {"check"}
    assert all(row["error"]["message"] for row in cases)


@EACH_WORLD
def test_no_session_is_fitted_on_and_checked(name: str) -> None:
    sessions: dict[str, set[str]] = {}
    for row in held.rows(f"{name}.cases"):
        sessions.setdefault(row["part"], set()).add(row["session"])
    assert not sessions["check"] & (sessions["fit 0"] | sessions["fit 1"])
    assert not sessions["fit 0"] & sessions["fit 1"]


def test_the_data_stays_small() -> None:
    assert sum(file.stat().st_size for file in held.FOLDER.iterdir()) < MOST_BYTES


@pytest.mark.parametrize(
    ("form", "call"),
    [
        ({"=": ""}, {"a": 1}),
        ({"dir": {"=": "/folder"}, "n": 2}, {"dir": "src", "n": 2}),
        ({"names": [{"=": "/items/1/name"}, "b"]}, {"names": ["x", "b"]}),
        ({"=": "/a~1b/c~0d"}, 7),
        ([{}, [], None, True], [{}, [], None, True]),
    ],
)
def test_a_reference_stands_for_what_the_right_call_has_there(form: Any, call: Any) -> None:
    right = {"a": 1, "folder": "src", "items": [{}, {"name": "x"}], "a/b": {"c~d": 7}}
    assert held.fill_references(form, right) == (right if form == {"=": ""} else call)


def test_spaces_in_a_text_of_json_are_not_what_is_meant() -> None:
    assert read_texts({"a": '{"b": [1,2]}'}) == read_texts({"a": '{"b":[1, 2]}'})
    assert read_texts("{no json") == "{no json"


class Folders:
    """One session of two calls."""

    def sessions(self) -> list[Session]:
        calls = tuple(
            GoldCall("s", at, "list", "files", {"dir": f"src/{at}"}, "") for at in range(2)
        )
        return [Session("s", calls)]

    def schema_of(self, call: GoldCall) -> Json | None:
        return {"properties": {name: {} for name in call.parameters}}


def verdict(call: GoldCall, parameters: Json) -> Verdict:
    return "right" if parameters == call.parameters else "wrong success"


async def test_a_case_is_asked_in_its_session_and_judged_by_what_was_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The calls before it are earlier ones; nothing is right where nothing can be known."""
    row = {
        "part": "check", "session": "s", "at": 1, "kind": "renamed", "family": "names",
        "sent": {"folder": {"=": "/dir"}}, "meant": {"dir": "lib"}, "error": {"message": "no"},
    }  # fmt: skip
    guess = row | {"family": UNREPAIRABLE}
    monkeypatch.setattr(held, "rows", lambda _: iter((row, guess, row | {"part": "fit 0"})))
    world = World("files", Folders(), verdict)
    known, unknown = held.held_trials(world, "check")
    assert (known.damaged, known.gold) == ({"folder": "lib"}, {"dir": "lib"})
    assert [call.sequence for call in known.earlier] == [0]
    assert await known.judge({"dir": "lib"}) == "right"
    assert await unknown.judge({"dir": "lib"}) == "wrong success"


def test_kinds_are_many_and_each_is_of_several_tools() -> None:
    """So no answer to one tool decides a figure."""
    sessions: dict[str, set[str]] = {}
    counts = Counter(row["kind"] for row in held.rows("BFCL.cases"))
    for row in held.rows("BFCL.cases"):
        sessions.setdefault(row["kind"], set()).add(row["session"])
    assert len(counts) > 150
    usual = [kind for kind, count in counts.items() if count >= 10]
    assert all(len(sessions[kind]) > 3 for kind in usual)
