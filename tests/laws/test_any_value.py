"""Laws over any value that Hypothesis finds: beside a fault, and inside what is moved."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.quality.brain import open_brain
from bench.quality.laws.asking import Asker, Reply
from bench.quality.laws.case import Case
from embeddings.embedders import HashingEmbedder

Json = dict[str, Any]
TOLERANCE = 0.05
EXAMPLES = 60

TEXT: Json = {"type": "string"}
ELEMENT: Json = {
    "type": "object", "properties": {"path": TEXT, "contents": TEXT},
    "required": ["path", "contents"], "additionalProperties": False,
}  # fmt: skip
FILES: Json = {
    "type": "object", "properties": {"files": {"type": "array", "items": ELEMENT}, "note": {}},
    "required": ["files"], "additionalProperties": False,
}  # fmt: skip
MESSAGE = (
    "1 validation error for write_files\nfiles.0.path\n  Field required [type=missing, "
    "input_type=dict]\n    For further information visit https://errors.pydantic.dev/2.11/v/missing"
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | TEXTS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS, below, max_size=3),
    max_leaves=8,
)


class Blocking:
    """A memory that is asked from tests that are not asynchronous, as Hypothesis wants them."""

    def __init__(self, runner: asyncio.Runner, asker: Asker) -> None:
        self._runner, self._asker = runner, asker

    def reply(self, case: Case) -> Reply:
        return self._runner.run(self._asker.reply(case))


@pytest.fixture(scope="module")
def product() -> Iterator[Blocking]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        brain = runner.run(stack.enter_async_context(open_brain(HashingEmbedder())))
        yield Blocking(runner, Asker(brain))
        runner.run(stack.aclose())


def case_of(call: Json) -> Case:
    error = {"type": "ToolError", "message": MESSAGE}
    return Case("any", "any", "write_files", "server", call, error, FILES)


@settings(max_examples=EXAMPLES)
@given(text=TEXTS)
def test_a_text_beside_a_renamed_key_is_the_callers(product: Blocking, text: str) -> None:
    """Whatever it holds, byte for byte, after the call and before it, and through the SDK."""
    reply = product.reply(case_of({"files": [{"file_path": "a.py", "contents": text}]}))
    repaired = [each for each in (*reply.repairs, reply.before, reply.sent) if each is not None]
    assert {each["files"][0]["contents"] for each in repaired} <= {text}
    assert reply.repaired is not None


@settings(max_examples=EXAMPLES)
@given(text=TEXTS)
def test_a_text_under_a_renamed_key_is_moved_as_it_is(product: Blocking, text: str) -> None:
    """The name was wrong, not the value."""
    call = {"files": [{"path": "a.py", "Contents": text}]}
    case = case_of(call).with_message(MESSAGE.replace("files.0.path", "files.0.contents"))
    reply = product.reply(case)
    assert reply.repaired == {"files": [{"path": "a.py", "contents": text}]}


@settings(max_examples=EXAMPLES)
@given(value=VALUES)
def test_any_value_beside_the_fault_changes_nothing(product: Blocking, value: Any) -> None:
    """The schema takes any `note`; so nothing is wrong with it."""
    files = [{"file_path": "a.py", "contents": "x = 1"}]
    alone, both = (
        product.reply(case_of(call)) for call in ({"files": files}, {"files": files, "note": value})
    )
    assert alone.repaired is not None
    assert both.repaired == {**alone.repaired, "note": value}
    assert both.change_class == alone.change_class
    assert abs(both.confidence - alone.confidence) <= TOLERANCE


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_the_order_of_names_changes_nothing(product: Blocking, data: st.DataObject) -> None:
    """Of a call's parameters, of an element's and of the schema's."""
    element = {"file_path": "a.py", "contents": "x = 1"}
    members = {"files": [element], "note": "walnut"}
    base = product.reply(case_of(members))
    names = data.draw(st.permutations(list(members)))
    inner = data.draw(st.permutations(list(element)))
    turned = {name: members[name] for name in names}
    turned["files"] = [{name: element[name] for name in inner}]
    properties = {name: FILES["properties"][name] for name in reversed(FILES["properties"])}
    changed = replace(case_of(turned), schema={**FILES, "properties": properties})
    reply = product.reply(changed)
    assert reply.repaired == base.repaired
    assert (reply.change_class, reply.confidence) == (base.change_class, base.confidence)
