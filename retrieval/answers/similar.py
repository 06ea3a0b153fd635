"""Similar executions: `POST /similar`."""

from collections.abc import Iterable
from typing import cast

from aftercall.json_values import JsonObject, bounded_json
from aftercall.models import LikeCall, SimilarExecution, SimilarRequest, SimilarResponse
from aftercall.redaction import Redactor
from embeddings.protocol import Embedder
from embeddings.text import call_text
from mongo.protocol import EventLog
from mongo.records import ToolKey
from retrieval.answers.proposers.case import profile_for
from retrieval.index.protocol import IndexQuery, VectorIndex
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.rows.documents import Document, Kind, document_id
from retrieval.knowledge.rows.log import read_executions
from retrieval.knowledge.session.recent_calls import (
    CallQuestion,
    RecentCall,
    rank_calls,
    word_cosines,
    words_of_call,
)
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.values.parameters import MAX_MESSAGE
from retrieval.knowledge.values.scalars import type_of

_IN_ANSWER = 3
_COMPARED = 60
"""Latest different calls that an answer is held against: 0.6 ms; 500 take 4.6."""
_LEAST = 0.1
"""Likeness of two calls below which they share no word that states something."""
_DOCUMENTS = 50
_OF_ONE_AGENT = 200
"""Documents whose latest calls are looked at too; more where one agent alone is asked for."""


async def find_similar(
    workspace: str,
    request: SimilarRequest,
    *,
    log: EventLog,
    memory: Memory,
    index: VectorIndex,
    embedder: Embedder,
    redactor: Redactor,
    only_of: str | None = None,
) -> SimilarResponse:
    """Return the executions of a tool that are most like the given call, the likest first.

    They all differ, as far as there are so many: in parameters, context or error. Candidates are
    the latest calls of the tool, and of each kind of calls (a document) the latest few, however
    old. For one signature it is the latest few failures, alike or not. With `only_of`, a principal,
    it is those that it recorded under the agent that is named: what others sent is not for the
    asker.
    """
    if only_of is not None and request.agent is None:
        return SimilarResponse(executions=[])
    looked_at = bounded_json(request.parameters, max_chars=MAX_MESSAGE)
    parameters = redactor.parameters(request.tool_name, cast("JsonObject", looked_at))
    context = None if request.context is None else redactor.text(request.context[:MAX_MESSAGE])
    [vector] = await embedder.embed([call_text(request.tool_name, parameters, context)], "query")
    signature = request.signature
    outcome = request.outcome if signature is None else "failure"
    kind: Kind = "success" if outcome == "success" else "reflection"
    tool = request.server_name, request.tool_name
    query = IndexQuery(
        workspaces=(workspace,), kind=kind, vector=vector, terms="",
        limit=_DOCUMENTS if request.agent is None else _OF_ONE_AGENT,
        tool_name=request.tool_name, server_name=request.server_name,
        document_ids=None if signature is None
        else (document_id(workspace, kind, *tool, signature),),
    )  # fmt: skip
    hits = (await index.search_points([query]))[0]
    documents = (await memory.read_documents(workspace, [hit.document_id for hit in hits])).values()
    servers = {request.server_name, *(each.server_name for each in documents)}
    tools = [] if signature else [ToolKey(workspace, each, request.tool_name) for each in servers]
    question = CallQuestion.from_call(parameters, context, vector)
    while True:
        calls = [call for each in tools for call in await memory.calls.of_tool(each)]
        calls += await _find_older(log, workspace, documents, calls)
        latest: dict[bytes | str, RecentCall] = {}
        for call in sorted(calls, key=lambda each: (each.position, each.execution_id)):
            is_asked_for = call.outcome == outcome and request.agent in (None, call.agent)
            if is_asked_for and only_of in (None, call.principal):
                latest[call.what if signature is None else call.execution_id] = call
        ranked = await rank_calls(latest.values(), question, embedder, request.limit)
        alike = {call.execution_id: likeness for call, likeness in ranked}
        found = await read_executions(log, workspace, list(alike))
        if len(found) == len(alike):
            break
        memory.calls.clear_calls()  # some were erased since they were read
    return SimilarResponse(
        executions=[
            SimilarExecution(
                execution=redactor.call(each.execution),
                similarity=round(alike[each.execution.execution_id], 4),
            )
            for each in found
        ]
    )


async def like_calls(
    tool: ToolKey,
    parameters: JsonObject,
    context: str | None,
    *,
    log: EventLog,
    memory: Memory,
    redactor: Redactor,
    agent: str,
    only_of: str | None = None,
) -> list[LikeCall]:
    """Return at most three calls of a tool that worked and share rare words with a call.

    Words alone decide, so that an answer waits for no model. With `only_of`, a principal, it is
    those that it recorded. From another agent's calls only values that are common knowledge are
    shown, and the types of the others.
    """
    latest: dict[bytes, RecentCall] = {}
    for recent in await memory.calls.of_tool(tool, 2 * _COMPARED):
        if recent.outcome == "success" and only_of in (None, recent.principal):
            latest[recent.what] = recent
    calls = list(latest.values())[-_COMPARED:]
    cosines = word_cosines(calls, words_of_call(parameters, context))
    order = sorted(zip(cosines, calls, strict=True), key=lambda each: (-each[0], -each[1].position))
    alike = {call.execution_id: cosine for cosine, call in order[:_IN_ANSWER] if cosine >= _LEAST}
    profile, _ = profile_for(await memory.read_knowledge(tool), None, agent)
    found = []
    for each in await read_executions(log, tool.workspace, list(alike)):
        call, is_own = redactor.call(each.execution), each.execution.agent == agent
        found.append(
            LikeCall(
                execution_id=call.execution_id,
                parameters=call.parameters
                if is_own
                else _shared_parameters(call.parameters, profile),
                context=call.context if is_own else None,
                likeness=alike[call.execution_id],
            )
        )
    return found


def _shared_parameters(parameters: JsonObject, profile: ToolProfile | None) -> JsonObject:
    """Return the parameters, with types for values that are not common knowledge."""
    found: JsonObject = {}
    for name, value in parameters.items():
        seen = profile.parameters.get(name) if profile is not None else None
        is_common = seen is not None and seen.count_common(value) > 0
        found[name] = value if is_common else f"<{type_of(value)}>"
    return found


async def _find_older(
    log: EventLog, workspace: str, documents: Iterable[Document], known: Iterable[RecentCall]
) -> list[RecentCall]:
    """Return the latest calls of documents, but for those that are known."""
    ids = dict.fromkeys(name for document in documents for name in document.execution_ids)
    for call in known:
        ids.pop(call.execution_id, None)
    return [
        RecentCall.from_stored(each) for each in await read_executions(log, workspace, list(ids))
    ]
