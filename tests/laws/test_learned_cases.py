"""The cases of learning that were measured from outside, asked of the whole product."""

from typing import Any

import pytest

from bench.quality.brain import open_brain
from bench.quality.laws.asking import Asker, Reply
from bench.quality.laws.case import Case, Past
from embeddings.embedders import HashingEmbedder

Call = dict[str, Any]


def lessons(pairs: list[tuple[Call, Call]], message: str) -> tuple[Past, ...]:
    """Sessions of agents that met an error and mended their calls."""
    return tuple(
        past
        for at, (failed, mended) in enumerate(pairs)
        for past in (
            Past(f"agent {at}", f"session {at}", "tool", "server", failed, error(message)),
            Past(f"agent {at}", f"session {at}", "tool", "server", mended),
        )
    )


def error(message: str) -> Call:
    """An error of the tool."""
    return {"type": "ToolError", "message": message}


async def asked(
    call: Call, message: str, pairs: list[tuple[Call, Call]], taught: str | None = None
) -> Reply:
    """The answer to another agent."""
    case = Case(
        "learned", "case", "tool", "server", call, error(message), None, None,
        history=lessons(pairs, taught or message), agent="asker", session="asked",
    )  # fmt: skip
    async with open_brain(HashingEmbedder()) as brain:
        return await Asker(brain).reply(case)


async def test_a_filter_that_moved_keeps_its_text() -> None:
    pairs = [
        ({"filter": {"text": text, "on": 1}}, {"filter": {"on": 1, "match": {"body": text}}})
        for text in ("late trains", "wet floors")
    ]
    reply = await asked({"filter": {"text": "lost keys", "on": 1}}, "bad filter", pairs)
    assert reply.repaired == {"filter": {"on": 1, "match": {"body": "lost keys"}}}


async def test_another_error_in_the_same_envelope_is_another_error() -> None:
    pairs = [({"path": p}, {"path": p, "encoding": "latin-1"}) for p in ("a.txt", "b.txt")]
    said = '{"ok": false, "error": "Cannot decode byte"}'
    other = '{"ok": false, "error": "Render engine crashed"}'
    assert (await asked({"path": "c.txt"}, said, pairs)).repaired is not None
    assert (await asked({"path": "c.txt"}, other, pairs, said)).repaired is None


async def test_the_next_one_on_a_list_is_nobodys_repair() -> None:
    pairs = [({"name": "Zoe Ott"}, {"name": "Ann Lee"})] * 2
    assert (await asked({"name": "Zoe Ott"}, "no such person", pairs)).repaired is None


async def test_another_refusal_does_not_change_a_setting() -> None:
    pairs = [({"region": "eu"}, {"region": "us"})] * 2
    reply = await asked(
        {"region": "eu"}, "Command purge wants a ticket number", pairs, "region eu is closed"
    )
    assert reply.repaired is None


async def test_codes_are_written_large_and_names_are_left_alone() -> None:
    pairs = [({"at": code}, {"at": code.upper()}) for code in ("sfo", "zrh", "lhr", "oslo")]
    assert (await asked({"at": "bcn"}, "unknown code", pairs)).repaired == {"at": "BCN"}
    assert (await asked({"at": "rms_draft"}, "unknown code", pairs)).repaired is None


@pytest.mark.parametrize(
    ("pairs", "call", "meant"),
    [
        (
            [({"context": old}, {"context": "inCluster"}) for old in ("prod-eu", "dev2", "stage")],
            {"context": "prod-us"}, {"context": "inCluster"},
        ),
        (
            [({"service": code}, {"service": {"id": code, "type": "svc"}})
             for code in ("PX7", "QA1", "BB3")],
            {"service": "ZK4"}, {"service": {"id": "ZK4", "type": "svc"}},
        ),
        (
            [({"store_ids": [42, 117]}, {"store_ids": ["0042", "0117"]}),
             ({"store_ids": [8]}, {"store_ids": ["0008"]}),
             ({"store_ids": [33, 7]}, {"store_ids": ["0033", "0007"]})],
            {"store_ids": [5, 901]}, {"store_ids": ["0005", "0901"]},
        ),
        (
            [({"q": q}, {"q": q, "policy": {"kind": "lax", "retries": 2}}) for q in ("ab", "cd")],
            {"q": "ef"}, {"q": "ef", "policy": {"kind": "lax", "retries": 2}},
        ),
        ([({"q": q}, {"q": q, "tags": []}) for q in ("ab", "cd")], {"q": "ef"},
         {"q": "ef", "tags": []}),
    ],
)  # fmt: skip
async def test_what_others_did_is_done_to_other_values(
    pairs: list[tuple[Call, Call]], call: Call, meant: Call
) -> None:
    assert (await asked(call, "request was refused: E17", pairs)).repaired == meant


async def test_a_stated_bound_stays_stated_however_often_it_was_mended() -> None:
    message = "topK must be less than or equal to 10"
    told = []
    for times in (0, 1, 2, 8, 20):
        pairs: list[tuple[Call, Call]] = [({"topK": 50}, {"topK": 10})] * times
        reply = await asked({"topK": 70}, message, pairs)
        assert reply.repaired == {"topK": 10}
        told.append(reply.suggested.suggestions[0])
    assert [each.change_class for each in told] == ["lossy"] * len(told)
    assert all("error" in each.evidence.sources for each in told)
    assert [each.confidence for each in told] == sorted(each.confidence for each in told)
    assert len({each.safe for each in told}) == 1
