"""What other tools, and calls made before, show a failed call."""

from collections.abc import Sequence
from itertools import islice

from aftercall import models as m
from aftercall.change_classes import reads_only
from aftercall.tables import gather_values
from mongo.contents import StoredTool
from mongo.records import ToolKey
from retrieval.answers.advice.advise import is_outcome_unknown, looking_tool
from retrieval.answers.advice.first_calls import find_named_tool, implied_tool, may_name_tool
from retrieval.answers.proposers.case import (
    Candidate,
    Case,
    LookFirst,
    StatedFirst,
    profile_for,
    view_of,
)
from retrieval.answers.proposers.grounds import view_at
from retrieval.index.protocol import Hit
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.reading.category import refusal_of
from retrieval.knowledge.reading.reader import ErrorReading
from retrieval.knowledge.rows.documents import Document
from retrieval.knowledge.rows.principals import key_mark, principal_of
from retrieval.knowledge.tool.rules import ToolKnowledge

_MAX_TOOLS = 2_000
_MAX_SESSIONS = 120
_MAX_CALLED = 200


async def _other_tools(
    workspace: str, memory: Memory, hits: Sequence[Hit]
) -> tuple[Candidate, ...]:
    registered = await memory.list_first_tools(workspace, _MAX_TOOLS)
    documents = await memory.read_documents(workspace, [hit.document_id for hit in hits])
    found = gather_values(
        (ToolKey(workspace, document.server_name, document.tool_name), (hit, document))
        for hit in hits
        if (document := documents.get(hit.document_id)) is not None
        and document.tool_name is not None
    )
    known = {key: await memory.read_knowledge(key) for key in found}
    return tuple(
        _make_candidate(each, found.get(each.tool_key, []), known.get(each.tool_key))
        for each in registered
    )


def _make_candidate(
    stored: StoredTool, like: Sequence[tuple[Hit, Document]], knowledge: ToolKnowledge | None
) -> Candidate:
    by = set(map(key_mark, stored.principals))
    if not like:
        return Candidate(stored.tool, principals=frozenset(by))
    nearest, document = max(like, key=lambda pair: pair[0].similarity)
    profiles = list(knowledge.profiles.values()) if knowledge else []
    users = {principal_of(agent) for profile in profiles for agent in profile.agents}
    agents = {agent for _, each in like for agent in each.agents}
    sessions = (
        session
        for profile in profiles
        for parameter in profile.parameters.values()
        for value in parameter.values.values()
        for session in value.sessions
    )
    return Candidate(
        stored.tool,
        similarity=nearest.similarity,
        successes=sum(profile.successes for profile in profiles),
        failures=sum(profile.failures for profile in profiles),
        sessions=max(len(agents), len(set(islice(sessions, _MAX_SESSIONS)))),
        execution_ids=tuple(document.execution_ids[-3:]),
        principals=frozenset(by | users),
    )


async def _tools_beside(tool: ToolKey, memory: Memory) -> list[str]:
    """Return the names of the server's tools, registered or called."""
    registered = await memory.read_server_names(tool.workspace, tool.server_name)
    called = await memory.list_called(tool.workspace, _MAX_CALLED)
    beside = {each.tool_name for each in called if each.server_name == tool.server_name}
    return sorted(registered | beside)


async def _look_first(
    tool: ToolKey,
    call: m.FailedCall,
    reading: ErrorReading,
    annotations: m.ToolAnnotations,
    memory: Memory,
) -> LookFirst | None:
    """Return what to look at where a call that writes may have had its effect; else None."""
    is_harmless = annotations.idempotent_hint and not annotations.destructive_hint
    if (
        not is_outcome_unknown(reading, call.error)
        or is_harmless
        or reads_only(call.tool_name, annotations, call.parameters)
    ):
        return None
    return LookFirst(looking_tool(tool.tool_name, await _tools_beside(tool, memory)))


_OF_VALUES = frozenset(("missing", "not_found", "not_allowed", "invalid", "bad_format"))
_MAX_NAME = 100


async def _stated_first(
    tool: ToolKey, call: m.FailedCall, case: Case, memory: Memory
) -> StatedFirst | None:
    """Return the tool that the error, or the schema of a value at fault, states to call before."""
    message = call.error.message
    at_fault = [fault.path for fault in case.faults if fault.kind in _OF_VALUES and fault.path]
    views = [view for path in at_fault if (view := view_at(case, path)) is not None]
    refusal = refusal_of(message)
    is_implied = refusal is not None and refusal.kind == "precondition"
    if not is_implied and not any(map(may_name_tool, (message, *(v.description for v in views)))):
        return None
    names = await _tools_beside(tool, memory)
    values = (v for v in case.parameters.values() if isinstance(v, str) and len(v) < _MAX_NAME)
    known = case.view.parameters if case.view is not None else ()
    others = {*case.parameters, *known, *values}
    name = find_named_tool(message, tool.tool_name, names, others)
    said_by = "The error"
    if name is None and is_implied:
        name = implied_tool(message, tool.tool_name, names)
    for view in views if name is None else ():
        name = name or find_named_tool(view.description, tool.tool_name, names, others)
        said_by = f"What the schema says of `{view.name}`"
    if name is None:
        return None
    key = ToolKey(tool.workspace, tool.server_name, name)
    schema = stored.tool.input_schema if (stored := await memory.find_tool(key)) else None
    of_tool = view_of(schema, profile_for(await memory.read_knowledge(key), None, "")[0])
    wanted = of_tool.parameters.values() if of_tool is not None else ()
    return StatedFirst(name, frozenset(each.name for each in wanted if each.required), said_by)
