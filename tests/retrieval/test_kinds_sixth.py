"""The sixth batch of mistakes: what it makes of calls, and how its servers speak."""

import json
import random

import pytest
from jsonschema import Draft202012Validator

from bench.quality.kinds_damage import Draw
from bench.quality.kinds_sixth import SIXTH
from bench.quality.sessions import GoldCall
from bench.quality.trial import Json

_CALLS: tuple[tuple[str, Json, Json], ...] = (
    ("return_items", {"order_id": "#W6247578", "item_ids": ["7441167885", "3478699712"],
                      "payment_method_id": "credit_card_9513926", "zip": "19122"}, {}),
    ("get_report", {"owner": "octo-org", "repo": "docs-site", "path": "src/app.py", "page": 3,
                    "start_date": "2026-03-14", "end_date": "2026-04-02", "language": "English",
                    "since": "2026-10-05T02:00:00Z", "method": "get_labels", "branch": "main",
                    "organization": "Northwind", "duration_hours": 12},
     {"method": {"enum": ["get", "get_labels", "get_files"]}}),
    ("push_files", {"files": [{"path": "a.md", "content": "A"}], "message": "Add"}, {}),
)  # fmt: skip


def _draws() -> list[Draw]:
    found = []
    for tool, sent, more in _CALLS:
        types = {str: "string", int: "integer", list: "array"}
        properties = {name: {"type": types[type(value)]} for name, value in sent.items()} | more
        schema = {"properties": properties, "required": list(sent), "additionalProperties": False}
        before = GoldCall("s", 0, "get_user", "shop", {"order_id": "#W1", "email": "a@b.c"}, "",
                          result={"payment_method_id": "credit_card_9513926"})  # fmt: skip
        others = [dict.fromkeys(sent, "another")]
        call = GoldCall("s", 1, tool, "shop", sent, "")
        found.append(Draw(call, schema, others, [before], random.Random(tool)))  # noqa: S311
    return found


@pytest.mark.parametrize("kept", [False, True])
def test_every_kind_makes_a_wrong_call(kept: bool) -> None:
    """Each kind makes something else of at least one of three calls, and never the call itself."""
    for family in SIXTH.makers(kept=kept).values():
        for kind, maker in family.items():
            made = [(draw, each) for draw in _draws() for each in maker(draw)]
            assert made, kind
            assert all(each.sent != draw.sent for draw, each in made if each.error), kind


def test_the_halves_share_no_kind_and_no_voice() -> None:
    """What is kept is not seen while developing, save that mistakes are combined in both."""
    halves = [SIXTH.makers(kept=kept) for kept in (False, True)]
    names = [{kind for family in half.values() for kind in family} for half in halves]
    assert names[0] & names[1] == set(SIXTH.together)
    voices = [SIXTH.half_of(SIXTH.voices, kept=kept).keys() for kept in (False, True)]
    assert not voices[0] & voices[1]
    assert len(voices[0] | voices[1]) == len(SIXTH.voices)


@pytest.mark.parametrize("name", SIXTH.voices)
def test_a_voice_words_every_fault(name: str) -> None:
    """Missing, unknown, of the wrong type, of no list: each is worded, as JSON where it is JSON."""
    schema = {"properties": {"to": {"type": "string"}, "n": {"type": "integer"}, "of": {"enum":
              ["a", "b"]}}, "required": ["to"], "additionalProperties": False}  # fmt: skip
    for sent in ({}, {"to": "x", "copy": "y"}, {"to": "x", "n": "3"}, {"to": "x", "of": "c"}):
        text = SIXTH.voices[name]("send_mail", list(Draft202012Validator(schema).iter_errors(sent)))
        assert text.strip()
        if text.startswith("{"):
            assert json.loads(text)
