"""Harmony text, fuzzed: any chunking gives the same items, memory and work are bounded."""

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.harmony import HarmonyCall, HarmonyItem, HarmonyParser, HarmonyResult, HarmonyText
from aftercall.harmony.parser import NAMES
from tests.growth import growth
from tests.sdk.strategies import json_values

LIMIT = 60
"""Bytes of a payload here: small, so that short examples pass it."""

MARKERS = [f"<|{name}|>" for name in NAMES]
PARTS = [
    *MARKERS, "<", "<|", "|>", "<|end", "<|message|", "assistant", "user", "tool", " ", "\n",
    "analysis", "final", "commentary", " to=functions.a", " to=python", " to=assistant", "to=",
    "functions.a", "json", "code", '{"tool":"a","arguments":{', '"', "\\", "\\\"", '":"', "{", "}",
    "}}", "[", "1", ",", "x" * 30, "é", "\U0001f600", "\ud83d", "\ude00", "\0", "y" * 700,
    "<|start|>assistant<|channel|>commentary to=functions.a<|message|>", '{"a":"', '"}<|call|>',
    '<|channel|>tool<|message|>{"', "<|start|>functions.a to=assistant<|message|>", "{}<|end|>",
]  # fmt: skip

soups = st.lists(st.sampled_from(PARTS) | st.text(max_size=5), max_size=40).map("".join)
sizes = st.lists(st.integers(0, 20), min_size=1, max_size=10)


def chunks_of(text: str, sizes: list[int]) -> list[str]:
    """The text, cut by the sizes over and over; an empty chunk now and then."""
    chunks = []
    at = number = 0
    while at < len(text):
        size = sizes[number % len(sizes)] or number % 2
        chunks.append(text[at : at + size])
        at += size
        number += 1
    return chunks


def read(chunks: list[str], max_payload_bytes: int = LIMIT) -> list[HarmonyItem]:
    parser = HarmonyParser(max_payload_bytes)
    return [item for chunk in chunks for item in parser.feed(chunk)] + parser.close()


def joined(items: list[HarmonyItem]) -> list[HarmonyItem]:
    """Adjacent pieces of one message as one."""
    made: list[HarmonyItem] = []
    for item in items:
        last = made[-1] if made else None
        if (
            isinstance(item, HarmonyText)
            and isinstance(last, HarmonyText)
            and last.message == item.message
        ):
            assert (last.channel, last.role) == (item.channel, item.role)
            made[-1] = HarmonyText(item.channel, last.text + item.text, item.role, item.message)
        else:
            made.append(item)
    return made


@settings(max_examples=500)
@given(text=soups, sizes=sizes, limit=st.sampled_from([1, 7, LIMIT, 8192]))
def test_any_chunking_gives_the_same_items(text: str, sizes: list[int], limit: int) -> None:
    """Of any soup of markers, JSON, halves of both and arbitrary text; and nothing is raised."""
    whole = joined(read([text], limit))
    assert joined(read(list(text), limit)) == whole
    assert joined(read(chunks_of(text, sizes), limit)) == whole


plain = st.text(st.characters(exclude_characters="<"), min_size=1, max_size=20)
marked = st.lists(st.sampled_from([*MARKERS, '"', "\\", "x"]) | plain, max_size=6).map("".join)
arguments = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
    json_values
    | marked.map(lambda text: text.encode("utf-8", "replace").decode().replace("\0", "")),
    max_size=3,
)
names = st.sampled_from(["a", "web-search", "get_weather"])


@st.composite
def messages(draw: st.DrawFn) -> tuple[str, HarmonyItem]:
    """A message as a model should write it, and what it should be read as, but for its number."""
    kind = draw(st.sampled_from(["text", "pseudo", "real", "result"]))
    end = draw(st.sampled_from(["<|end|>", "<|call|>", "<|return|>"]))
    if kind == "text":
        channel, text = draw(st.sampled_from(["analysis", "commentary", "final"])), draw(plain)
        wire = f"<|start|>assistant<|channel|>{channel}<|message|>{text}{end}"
        return wire, HarmonyText(channel, text)
    name, given_arguments = draw(names), draw(arguments)
    payload = json.dumps(given_arguments, ensure_ascii=draw(st.booleans()))
    if kind == "result":
        wire = f"<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>{payload}"
        result = HarmonyResult(tool=name, text=payload)
        return f"{wire}<|end|>", result
    if kind == "pseudo":
        payload = f'{{"tool":"{name}","arguments":{payload}}}'
        call = HarmonyCall(
            tool=name, channel="tool", arguments=given_arguments, payload=payload[:200]
        )
        return f"<|start|>assistant<|channel|>tool<|message|>{payload}{end}", call
    recipient = f"functions.{name}"
    header = draw(
        st.sampled_from(
            [
                f"assistant to={recipient}<|channel|>commentary",
                f"assistant<|channel|>commentary to={recipient} <|constrain|>json",
                f"assistant<|channel|>commentary to={recipient} json",
            ]
        )
    )
    call = HarmonyCall(
        tool=name, recipient=recipient, channel="commentary", arguments=given_arguments,
        payload=payload[:200],
    )  # fmt: skip
    return f"<|start|>{header}<|message|>{payload}{end}", call


def unnumbered(items: list[HarmonyItem]) -> list[HarmonyItem]:
    return [
        HarmonyText(item.channel, item.text, item.role) if isinstance(item, HarmonyText) else item
        for item in joined(items)
    ]


@given(conversation=st.lists(messages(), max_size=6), sizes=sizes)
def test_well_formed_streams_are_read_as_they_were_meant(
    conversation: list[tuple[str, HarmonyItem]], sizes: list[int]
) -> None:
    """Messages of all kinds in any order, with markers in the strings of their payloads."""
    stream = "".join(wire for wire, _ in conversation)
    items = read(chunks_of(stream, sizes), 100_000)
    assert unnumbered(items) == [item for _, item in conversation]


@given(
    before=st.lists(messages(), max_size=2),
    broken=st.sampled_from(
        [
            '<|channel|>tool<|message|>{"tool":"b","arguments":{<|end|>',
            '<|channel|>commentary to=functions.b<|message|>{"a": 5 kg}<|call|>',
            "<|channel|>commentary to=functions.b<|message|>{" + " " * 10_000 + "<|call|>",
        ]
    ),
    after=st.lists(messages(), max_size=2),
    sizes=sizes,
)
def test_a_broken_call_takes_nothing_else_with_it(
    before: list[tuple[str, HarmonyItem]],
    broken: str,
    after: list[tuple[str, HarmonyItem]],
    sizes: list[int],
) -> None:
    """It is one error; all before and after it is read as if it were not there."""
    wires = [*(wire for wire, _ in before), broken, *(wire for wire, _ in after)]
    items = unnumbered(read(chunks_of("".join(wires), sizes), 8192))
    error = items.pop(len(before))
    assert (error.tool, error.arguments) == ("b", None)
    assert items == [item for _, item in [*before, *after]]


# --- bounds


@pytest.mark.parametrize("unit", ["x", "<|channel|>x", '<|channel|>tool<|message|>{"<|end|>', "\\"])
@pytest.mark.parametrize(
    "opening",
    [
        "<|start|>",
        "<|channel|>final<|message|>",
        '<|channel|>tool<|message|>{"tool":"a","arguments":{"b":"',
        "<|start|>functions.a to=assistant<|message|>",
    ],
)
def test_memory_is_bounded_by_the_limit(opening: str, unit: str) -> None:
    """Whatever never ends: a header, a text, a payload, a string, markers within markers."""
    parser = HarmonyParser(1000)
    parser.feed(opening)
    most = 0
    for at in range(0, 20_000, 100):
        parser.feed((unit * 100)[at % len(unit) :][:100])
        most = max(most, len(pickle.dumps(vars(parser))))
    assert most <= 10_000


@pytest.mark.parametrize("unit", ['<|channel|>tool<|message|>\\"', "a<|channel|>", *PARTS[:12]])
def test_work_grows_with_the_input_and_no_faster(unit: str) -> None:
    """Eight times as much, repeated, takes nowhere near 64 times as long."""
    work = growth(lambda size: read([unit * (size // len(unit))], 8192), 10_000, times=8)
    assert work < 32
