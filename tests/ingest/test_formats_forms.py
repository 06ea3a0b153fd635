"""Forms of agents, frameworks and tracers: what `forms.toml` says is read of each."""

import copy
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Execution
from ingest.formats.calls import Given, LeftOut
from ingest.formats.detection import LOOK_BYTES, look_at
from service.imports import read_calls
from tests.ingest import agent_forms, forms
from tests.ingest.transcripts import AT

LINES = forms.LINES | agent_forms.LINES
DOCUMENTS = forms.DOCUMENTS | agent_forms.DOCUMENTS
FILES = {
    **{form: "\n".join(each if isinstance(each, str) else json.dumps(each) for each in values)
       for form, values in LINES.items()},
    **{form: json.dumps(value) for form, value in DOCUMENTS.items()},
    **{f"{form}, over many lines": json.dumps(value, indent=1)
       for form, value in DOCUMENTS.items()},
}  # fmt: skip


def read_file(text: str) -> tuple[list[Execution], list[Any]]:
    """Executions by their ids, once each, and what else is told."""
    raw = text.encode()
    placed = list(read_calls(io.BytesIO(raw), look_at(raw[:LOOK_BYTES]), Given(at=AT)))
    executions = {p.read.execution_id: p.read for p in placed if isinstance(p.read, Execution)}
    rest = [(p.where, p.read) for p in placed if not isinstance(p.read, Execution)]
    return list(executions.values()), rest


@pytest.mark.parametrize("form", FILES)
def test_calls_and_failures_of_each_form_are_read(form: str) -> None:
    """A failure and a success, with name and arguments; nothing is left out."""
    executions, rest = read_file(FILES[form])
    assert not rest
    assert [each.outcome for each in executions] == ["failure", "success"]
    if "commands" in form:
        assert [each.parameters for each in executions] == [{"command": "lss"}, {"command": "ls"}]
        return
    assert [(each.tool_name, each.parameters) for each in executions] == [
        ("lookup", {"city": "Os"}),
        ("lookup", {"city": "Oslo"}),
    ]
    assert "unknown city" in executions[0].error.message
    assert "sun" in json.dumps(executions[1].result)
    text = FILES[form]
    if '"s1"' in text:
        assert {each.session_id for each in executions} == {"s1"}
    if '"geo"' in text or "geo__" in text:
        assert {each.server_name for each in executions} == {"geo"}


@pytest.mark.parametrize("form", FILES)
def test_a_file_read_again_or_grown_gives_the_same_ids(form: str) -> None:
    """So nothing counts twice."""
    first, _ = read_file(FILES[form])
    again, _ = read_file(FILES[form])
    assert [each.execution_id for each in first] == [each.execution_id for each in again]
    if form in LINES and form != "harmony":
        lines = FILES[form].splitlines()
        shorter = [read_file("\n".join(lines[:end]))[0] for end in range(1, len(lines))]
        ids = {each.execution_id for each in first}
        assert {each.execution_id for executions in shorter for each in executions} <= ids


RUNNING: list[Any] = [
    {"type": "item.started", "item": {"id": "i1", "type": "mcp_tool_call", "server": "geo",
                                      "tool": "lookup", "status": "in_progress"}},
    {"info": {"id": "s"}, "messages": [{"parts": [{"type": "tool", "callID": "c1", "tool": "bash",
                                                   "state": {"status": "running"}}]}]},
    {"parts": [{"type": "tool-lookup", "toolCallId": "c1", "state": "input-available"}]},
    {"type": "tool_call", "subtype": "started", "call_id": "c1",
     "tool_call": {"readToolCall": {"args": {"path": "x"}}}},
    {"text": "<|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>"},
]  # fmt: skip


@pytest.mark.parametrize("value", RUNNING)
def test_a_call_without_its_end_is_left_out_and_told_of(value: Any) -> None:
    """Whatever its form; no success is made up, and nothing is a mistake of the file."""
    executions, rest = read_file(json.dumps(value))
    assert not executions
    assert [type(read) for _, read in rest] == [LeftOut]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places in a JSON value but its own."""
    if not isinstance(value, dict | list):
        return
    for key, held in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*place, key)
        yield from places(held, (*place, key))


PLACES = [(form, place) for form, value in DOCUMENTS.items() for place in places(value)]
JUNK = [None, 7, "x", "", "{", [], {}, [1], {"a": 1}, True, -1.5, 2**70, [["x"]], [{"type": []}]]


@given(at=st.sampled_from(PLACES), junk=st.sampled_from(JUNK))
def test_junk_at_any_place_breaks_no_reader(at: tuple[str, tuple[Any, ...]], junk: Any) -> None:
    """It is left out, and nothing is raised."""
    form, place = at
    value = copy.deepcopy(DOCUMENTS[form])
    held = value
    for key in place[:-1]:
        held = held[key]
    held[place[-1]] = junk
    read_file(json.dumps(value))


def test_a_trajectory_of_swe_agent_is_read_once() -> None:
    """Its steps are the calls, by the first word of each; the history tells the same again."""
    said = (("open main.py 3", "Error: File main.py not found"), ("open src/main.py", "[File]"))
    steps = [
        {"action": f"{action}\n", "observation": observation, "response": f"Look.\n{action}",
         "state": "{\"open_file\": \"n/a\"}", "thought": "Look.", "execution_time": 0.1,
         "query": [{"role": "user", "content": "Fix it"}]}
        for action, observation in said
    ]  # fmt: skip
    history: list[dict[str, Any]] = [{"role": "system", "content": "", "agent": "main"}]
    for number, (action, observation) in enumerate(said):
        name, *words = action.split()
        history += [
            {"role": "assistant", "content": "Look.", "thought": "Look.", "action": action,
             "agent": "main", "message_type": "action", "tool_calls": [
                 {"id": f"c{number}", "type": "function", "function": {
                     "name": name, "arguments": json.dumps({"path": words[0]})}}]},
            {"role": "tool", "content": observation, "agent": "main",
             "message_type": "observation", "tool_call_ids": [f"c{number}"]},
        ]  # fmt: skip
    whole = {"trajectory": steps, "history": history, "info": {"exit_status": "submitted"}}
    for document in (whole, {"trajectory": steps}):
        executions, _ = read_file(json.dumps(document))
        assert [each.tool_name for each in executions] == ["open", "open"]
        assert [each.outcome for each in executions] == ["failure", "success"]
        assert executions[1].parameters == {"action": "open src/main.py\n"}
        assert {each.agent for each in executions} == {"swe-agent"}


@pytest.mark.parametrize(
    "place", ["input.value", "tool_call.function.arguments", "tool.parameters"]
)
def test_arguments_of_openinference_are_read_wherever_they_stand(place: str) -> None:
    """In a file of spans, and in one row of Phoenix' table for each span."""
    attributes = {"openinference.span.kind": "tool", "tool.name": "lookup",
                  place: json.dumps({"city": "Oslo"}), "output.value": "sun"}  # fmt: skip
    span = {"name": "lookup", "context": {"trace_id": "s1", "span_id": "a"}, "attributes":
            attributes, "start_time": "2026-02-20T14:30:00Z", "status_code": "OK"}  # fmt: skip
    row = {"name": "lookup", "span_kind": "TOOL", "context.trace_id": "s1", "context.span_id": "a",
           "start_time": "2026-02-20T14:30:00Z", "status_code": "OK",
           **{f"attributes.{name}": value for name, value in attributes.items()}}  # fmt: skip
    for document in (span, row) if place != "tool.parameters" else (span,):
        [execution], _ = read_file(json.dumps(document))
        assert (execution.tool_name, execution.parameters) == ("lookup", {"city": "Oslo"})
        assert (execution.outcome, execution.session_id) == ("success", "s1")
