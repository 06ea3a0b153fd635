"""Similar executions: `POST /similar`."""

from typing import cast

from aftercall.json_values import JsonObject, bounded_json
from aftercall.models import SimilarExecution, SimilarRequest, SimilarResponse
from aftercall.redaction import Redactor
from embeddings.protocol import Embedder
from embeddings.text import call_text
from mongo.protocol import EventLog
from retrieval.index.protocol import IndexQuery, Kind, VectorIndex
from retrieval.knowledge.documents import document_id
from retrieval.log import executions
from retrieval.memory import Memory
from retrieval.parameters import MAX_MESSAGE

_OF_ONE_AGENT = 200
"""Documents among which the calls of one agent are looked for."""


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
    """Executions of a tool that are near to the given call, nearest first.

    Of each distinct document the latest that it stands for; of one agent or signature alone, those
    of the latest few that are. With `only_of`, a principal, those that it recorded under the agent
    that is named: what others sent is not for the one who asks.
    """
    if only_of is not None and request.agent is None:
        return SimilarResponse(executions=[])
    looked_at = bounded_json(request.parameters, max_chars=MAX_MESSAGE)
    parameters = redactor.parameters(request.tool_name, cast("JsonObject", looked_at))
    context = None if request.context is None else redactor.text(request.context[:MAX_MESSAGE])
    [vector] = await embedder.embed([call_text(request.tool_name, parameters, context)], "query")
    succeeded = request.outcome == "success" and request.signature is None
    kind: Kind = "success" if succeeded else "reflection"
    tool = request.server_name, request.tool_name
    asked = request.signature
    query = IndexQuery(
        workspaces=(workspace,), kind=kind, vector=vector, terms="",
        limit=request.limit if request.agent is None else _OF_ONE_AGENT,
        tool_name=request.tool_name, server_name=request.server_name,
        document_ids=None if asked is None else (document_id(workspace, kind, *tool, asked),),
    )  # fmt: skip
    hits = (await index.search([query]))[0]
    documents = await memory.documents(workspace, [hit.document_id for hit in hits])
    few = 0 if request.agent or asked else -1
    latest = {
        execution_id: hit.similarity
        for hit in hits
        if (document := documents.get(hit.document_id))
        for execution_id in document.execution_ids[few:]
    }
    stored = await executions(log, workspace, list(latest))
    found = [
        SimilarExecution(
            execution=redactor.call(each.execution),
            similarity=round(latest[each.execution.execution_id], 4),
        )
        for each in stored
        if request.agent in (None, each.execution.agent) and only_of in (None, each.principal)
    ]
    ranked = sorted(found, key=lambda hit: -hit.similarity)
    return SimilarResponse(executions=ranked[: request.limit])
