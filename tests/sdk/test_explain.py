"""Validation errors in sentences: path, problem, cure, and never the value."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from aftercall.explain import explain_error
from aftercall.models import Execution, WireModel
from service.errors import MAX_MESSAGE, safe_message
from tests.service.running_service import execution


def explained(model: type[WireModel], value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)
    return explain_error(caught.value, model)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tool_nam": 1}, "unknown field `tool_nam`; did you mean `toolName`?"),
        ({"Parameters": 1}, "unknown field `Parameters`; did you mean `parameters`?"),
        ({"zzz": 1}, "unknown field `zzz`; known are agent, serverName"),
        ({"attempt": 0}, "attempt: should be greater than or equal to 1"),
        ({"attempt": True}, "attempt: should be a valid integer"),
        ({"outcome": "ok"}, "outcome: should be 'success' or 'failure'"),
        ({"parameters": None}, "parameters: must be a JSON object, not null"),
        ({"parameters": {"a": {"b": [1, float("nan")]}}}, "parameters: a.b.1 is nan"),
    ],
)
def test_each_fault_is_one_sentence(fields: dict[str, Any], said: str) -> None:
    """Without the noise of the library that found it."""
    message = explained(Execution, execution(**fields))
    assert said in message
    assert "Value error" not in message
    assert "Input" not in message


def test_messages_are_masked_valid_and_bounded() -> None:
    """Whatever a caller put into the names of its fields."""
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"  # noqa: S105  # it only looks like one
    assert secret not in safe_message(f"unknown field `{secret}`")
    assert safe_message("a\ud800\0b") == "a\ufffd\ufffdb"
    assert len(safe_message("word " * 1000)) == MAX_MESSAGE


def test_no_message_names_a_package_that_is_not_published() -> None:
    """Aftercall is on no package index: what installs it names the checkout."""
    root = Path(__file__).parents[2]
    for room in ("sdk", "service", "retrieval", "ingest", "mongo", "embeddings"):
        for file in (root / room).rglob("*.py"):
            wrong = re.findall(r"install[^\n`]* '?aftercall(?:-service)?[\['` ]", file.read_text())
            assert not wrong, file
