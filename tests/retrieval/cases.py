"""Builders for failed calls, shared by the tests of the answers."""

from typing import Any

from aftercall.models import Execution, ExecutionError, Tool, ToolAnnotations
from retrieval.answers.answer import Answer, Question, answer
from retrieval.answers.proposers.case import Case
from retrieval.knowledge.reading.reader import read_error
from retrieval.knowledge.rows.documents import SeedEntry
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.tool.rules import SignatureKnowledge
from retrieval.knowledge.values.parameters import view_of_schema

READS = ToolAnnotations(read_only_hint=True)


def make_case(
    parameters: dict[str, Any],
    message: str,
    *,
    schema: dict[str, Any] | None = None,
    profile: ToolProfile | None = None,
    signature: SignatureKnowledge | None = None,
    seeds: tuple[SeedEntry, ...] = (),
    writes: bool = False,
    code: str | None = None,
) -> Case:
    """A case as the suggester would gather it."""
    view = view_of_schema(schema) if schema is not None else None
    if view is None and profile is not None and profile.successes:
        view = profile.make_view()
    return Case(
        parameters=parameters,
        reading=read_error(ExecutionError(message=message, code=code), parameters),
        view=view,
        profile=profile,
        signature=signature,
        seeds=seeds,
        writes=writes,
        schema=schema,
    )


def answer_to(case: Case, message: str = "", annotations: ToolAnnotations = READS) -> Answer:
    """The answer to a case, with the usual limit."""
    question = Question(case, ExecutionError(message=message), annotations)
    return answer(question, limit=3)


def object_schema(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    """A JSON Schema for arguments; a type name stands for a property of that type."""
    return {
        "type": "object",
        "properties": {
            name: {"type": part} if isinstance(part, str) else part
            for name, part in properties.items()
        },
        "required": list(properties) if required is None else required,
    }


def an_execution(**fields: Any) -> Execution:
    """A valid execution; whatever is given replaces its fields."""
    defaults: dict[str, Any] = {
        "execution_id": "00000000-0000-4000-8000-000000000001",
        "timestamp": "2026-02-20T14:30:00Z",
        "agent": "ada",
        "server_name": "srv",
        "tool_name": "search",
        "parameters": {"query": "x"},
        "outcome": "success",
        "session_id": "s-1",
    }
    return Execution.model_validate(defaults | fields)


def tool(name: str, namespace: str | None = "docs", **fields: Any) -> Tool:
    """A registered tool of the server `srv`."""
    defaults = {
        "toolId": f"id-{name}", "name": name, "namespace": namespace, "serverName": "srv",
        "updatedAt": "2026-02-20T14:30:00Z",
    }  # fmt: skip
    return Tool.model_validate(defaults | fields)
