"""Methods: found in parameters, told only when they are common knowledge."""

from typing import Any

import pytest

from aftercall.models import Tool
from retrieval.knowledge.rows.health import KnownHealth, MethodTallies, Tally
from retrieval.knowledge.rows.health_signals import (
    common_methods,
    is_earlier,
    method_of,
    stated_methods,
)
from tests.retrieval.health.health_samples import NOW


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"action": "create_issue", "title": "x"}, ("action", "create_issue")),
        ({"op": "a", "method": "GET"}, ("method", "GET")),
        ({"command": "git.log"}, ("command", "git.log")), ({"command": "rm -rf build"}, None),
        ({"method": "x" * 65}, None), ({"method": 3}, None), ({"method": "métier"}, None),
        ({"title": "create"}, None), ({}, None),
    ],
)  # fmt: skip
def test_a_method_is_an_identifier_under_a_known_name(
    parameters: dict[str, Any], found: tuple[str, str] | None
) -> None:
    """The first name of the list counts; sentences and command lines do not."""
    assert method_of(parameters) == found


def test_the_parameter_does_not_depend_on_the_order_of_calls() -> None:
    """`method` comes before `action`, whichever was seen first."""
    assert is_earlier("action", None)
    assert is_earlier("method", "action")
    assert not is_earlier("action", "method")


def test_a_schema_states_methods() -> None:
    """By the enum of such a parameter; junk in its place states none."""

    def tool(schema: dict[str, Any] | None) -> Tool:
        return Tool(tool_id="t", name="t", updated_at=NOW, input_schema=schema)

    schema = {"properties": {"action": {"enum": ["open", "close", 3]}, "title": {"enum": ["x"]}}}
    assert stated_methods(tool(schema)) == {"open", "close"}
    for junk in (None, {}, {"properties": []}, {"properties": {"action": {"enum": "open"}}}):
        assert stated_methods(tool(junk)) == frozenset()
    assert stated_methods(None) == frozenset()


def test_what_one_session_alone_called_is_not_told() -> None:
    """It may be its own data; a schema or a second session makes it common knowledge."""
    known = KnownHealth(
        methods={
            "private": MethodTallies(successes=Tally.from_moments([NOW, NOW, NOW]), sessions=["a"]),
            "stated": MethodTallies(successes=Tally.from_moments([NOW]), sessions=["a"]),
            "shared": MethodTallies(failures=Tally.from_moments([NOW, NOW]), sessions=["a", "b"]),
        }
    )
    assert list(common_methods(known, frozenset({"stated"}))) == ["shared", "stated"]
